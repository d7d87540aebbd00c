/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_MEMBERS_H_INCLUDED
#define ZC_MEMBERS_H_INCLUDED

/* Windows that processes of other worlds are members of. When one of those dies, CH4 is told for each such
 * window, and goes on with the other processes (patches/0123). There are lists of these windows, one for each
 * VCI.
 *
 * A window with a process that has died cannot be freed: that takes a barrier of all. */

#include "zc_impl.h"

struct MPIDI_ZC_foreign;

/* Is a process of another world a member of @win? It is called inside the lock of the window's VCI. */
bool MPIDI_ZC_members_of_several_worlds(const MPIR_Win * win);

/* Is called for a new window, when its memory has been shared: notes it if there is a process of another
 * world. */
int MPIDI_ZC_members_add(MPIR_Win * win);

/* @win is being freed, or could not be made. */
void MPIDI_ZC_members_remove(MPIR_Win * win);

/* The process of @foreign has died. It is called inside the lock of its VCI, outside UCP's callbacks. */
void MPIDI_ZC_members_lost(const struct MPIDI_ZC_foreign *foreign);

/* The workers and the context are about to be destroyed: gives up what windows have of them that could not be
 * freed. */
void MPIDI_ZC_members_end(void);

#endif /* ZC_MEMBERS_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WIN_H_INCLUDED
#define ZC_WIN_H_INCLUDED

/* The memory of a window as UCX sees it; MPIDI_ZC_win_t and MPIDI_ZC_target_t are in
 * zc_pre.h. A target without a key is reached by active messages only. */

#include "zc_impl.h"

#define MPIDI_ZC_WIN(win) ((win)->dev.netmod.zc)

/* Connects to the target of @rank, whose key is still packed: use MPIDI_ZC_win_target(). */
MPIDI_ZC_target_t *MPIDI_ZC_win_connect(MPIR_Win * win, int rank);

/* The target of @rank, which others may never be: it is connected with its first use, and its
 * key unpacked. NULL: only active messages get there. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_target_t *MPIDI_ZC_win_target(MPIR_Win * win, int rank)
{
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];

    if (unlikely(__atomic_load_n(&target->packed, __ATOMIC_ACQUIRE))) {
        return MPIDI_ZC_win_connect(win, rank);
    }
    return target->rkey ? target : NULL;
}

/* Waits until all that UCX does through @win is done, at the targets, too. */
int MPIDI_ZC_win_flush(MPIR_Win * win);
int MPIDI_ZC_win_flush_target(int rank, MPIR_Win * win);

/* UCP's callback at the end of an operation. @user_data: an MPIR_Request or NULL. */
void MPIDI_ZC_rma_done(void *request, ucs_status_t status, void *user_data);

#endif /* ZC_WIN_H_INCLUDED */

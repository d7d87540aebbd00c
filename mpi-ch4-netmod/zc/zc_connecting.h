/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONNECTING_H_INCLUDED
#define ZC_CONNECTING_H_INCLUDED

/* While processes of two worlds are being connected, one leader of each tells the other one the addresses
 * of all in its communicator, and that one tells the rest of its own. Some of these may know a process
 * long before that process knows them, and could not be told that it leaves (zc_path.h). So
 *
 *   - the leader waits until nobody is away before it looks addresses up, and lets nobody leave until its
 *     call ends;
 *   - a process does not leave in such a call (patch 0120). No leader's call ends before all
 *     processes of its communicator have begun theirs, since they agree on a context;
 *   - nor does it while it has a port open, since that has its address in its name;
 *   - nor while its communicator gets a VCI for which addresses are exchanged (zc_foreign_vcis.h). No such call
 *     ends before all its processes have made their connections of that VCI, so each knows the others there when
 *     one of them leaves.
 *
 * The first function is called in MPI_Init, the second in MPI_Finalize; any thread may call the others. */

#include <stdbool.h>

void MPIDI_ZC_connecting_init(void);
void MPIDI_ZC_connecting_end(void);

/* The caller, which has no lock of a VCI, is in such a call from here on, or not any more. */
void MPIDI_ZC_connecting_begin(void);
void MPIDI_ZC_connecting_done(void);

/* Is a thread of this process in such a call? */
bool MPIDI_ZC_connecting(void);

/* Returns how many ports are open. */
int MPIDI_ZC_connecting_ports(void);

/* The caller, which has no lock of a VCI, is going to look addresses up. Makes progress until nobody is
 * away; from then on nobody leaves. */
int MPIDI_ZC_connecting_hold(void);

#endif /* ZC_CONNECTING_H_INCLUDED */

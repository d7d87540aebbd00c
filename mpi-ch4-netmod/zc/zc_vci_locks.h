/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_VCI_LOCKS_H_INCLUDED
#define ZC_VCI_LOCKS_H_INCLUDED

/* Some things are about all VCIs at once: a rank that leaves destroys all workers (zc_detach.h). Who does
 * them has the locks of all VCIs, so no other thread sends or makes progress meanwhile.
 *
 * A thread has one VCI's lock, as a rule. If it has another one, that is VCI 0's, which it has waited for
 * while it had the other: CH4 does so at the end of a request whose communicator is the last one of another
 * world (MPIDIU_avt_release_ref()), and zc_windows.c. So none that has VCI 0's lock waits for another one
 * (zc_foreign_vcis.h says so, too), and who needs all takes them from the highest number down, VCI 0's last:
 *
 *   VCI n-1 ─▶ ... ─▶ VCI 1 ─▶ VCI 0
 *
 * Where threads are not in MPI at the same time (below MPI_THREAD_MULTIPLE) there are no locks, nor in
 * MPI_Finalize. */

/* Takes the locks of all VCIs. The caller has that of VCI 0, and other threads may have it in between. */
void MPIDI_ZC_vci_locks_enter(void);

/* Gives them back, but for that of VCI 0. */
void MPIDI_ZC_vci_locks_exit(void);

#endif /* ZC_VCI_LOCKS_H_INCLUDED */

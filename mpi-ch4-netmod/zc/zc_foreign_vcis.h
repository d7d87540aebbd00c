/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FOREIGN_VCIS_H_INCLUDED
#define ZC_FOREIGN_VCIS_H_INCLUDED

/* This file gives communicators across worlds a VCI, and processes of other worlds a connection for
 * each VCI.
 *
 * CH4 learns of a process with its address of VCI 0, whose communicators are those that were made by
 * connecting, spawning or merging. Any other one across worlds is made from those, and has a VCI that
 * all its processes have: worlds need not have the same number of VCIs. When the first communicator of
 * a VCI is made, its processes exchange their addresses of that VCI over VCI 0, and each makes a
 * connection to each other one, which is opened when it is first used:
 *
 *   a communicator is made                 n, the least number of VCIs that one of its processes has
 *     MPI_Bcast     number of the communicator                        VCI: that number modulo n
 *     MPI_Allreduce VCIs there are, and VCIs whose addresses are known
 *     MPI_Allgather addresses, unless all processes have all
 *     MPI_Allreduce before and after that: has one of them failed? Then the VCI is 0
 *
 *   CH4's address vector ──▶ foreign, of VCI 0 ──▶ others: foreign of VCI 1, 2, ...
 *                              lane                          address: lane
 *
 * Where the first process has one VCI, which all can know from the MPI_Bcast, that is all. No process leaves
 * while addresses are exchanged (zc_connecting.h).
 *
 * The connections of a process end with that of VCI 0, and are lost with it when it has died. The thread
 * that finds that out has the lock of VCI 0, and may have one of another VCI's, so the others are put on
 * lists, and each VCI ends its own when it makes progress. No thread that has the lock of VCI 0 waits
 * for another one's. */

#include "zc_impl.h"

struct MPIDI_ZC_foreign;

/* Chooses the VCI of @comm, which may be across worlds and has VCI 0 yet. It is collective over @comm.
 * *@seq: the number of the communicator, which is replaced. */
int MPIDI_ZC_foreign_vcis_choose(MPIR_Comm * comm, int *seq);

/* Returns the peer on @vci, which is not 0, of the process that @foreign is the connection of VCI 0
 * to. Where there is none (NULL, in MPI_Finalize) it is one that nothing can be sent to. */
MPIDI_ZC_addr_t *MPIDI_ZC_foreign_vcis_peer(const struct MPIDI_ZC_foreign *foreign, int vci);

/* CH4 gives @foreign, which is of VCI 0, up: those of the other VCIs end. It is called inside the lock
 * of VCI 0. */
void MPIDI_ZC_foreign_vcis_give_up(struct MPIDI_ZC_foreign *foreign);

/* The process of @foreign, which is of VCI 0, has died: so it has for the other VCIs, which may have no
 * endpoint that would tell them. It is called inside the lock of VCI 0. */
void MPIDI_ZC_foreign_vcis_tell_lost(const struct MPIDI_ZC_foreign *foreign);

/* Ends the connections of @vci that have been given up, and what waits for those whose process has
 * died. It is called inside the lock of @vci, outside UCP's callbacks. */
void MPIDI_ZC_foreign_vcis_end(MPIDI_ZC_vci_t * vci);

#endif /* ZC_FOREIGN_VCIS_H_INCLUDED */

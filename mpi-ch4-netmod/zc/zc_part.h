/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PART_H_INCLUDED
#define ZC_PART_H_INCLUDED

/* Partitioned communication is CH4's own, on VCI 0. The netmod sees to its end when a process of
 * another world dies.
 *
 *    sender                          receiver
 *      MPI_Psend_init                  MPI_Precv_init
 *         SEND_INIT ─────────────────────▶ matched, once
 *      MPI_Start: waits                MPI_Start: waits
 *         ◀─────────────────────────── CTS
 *      last MPI_Pready
 *         SEND_DATA ─────────────────────▶ complete
 *
 * A request that waits for a process when that has died, or is started after that, ends with an
 * error. From its CTS on a send waits for the program alone, and then for UCX, which ends the
 * transfer. */

#include "zc_impl.h"

/* Starts @request, as MPIDIG_part_start(). */
int MPIDI_ZC_part_start(MPIR_Request * request);

/* These functions are called inside the lock of VCI 0, or by the landing thread inside the gate. */

/* Receives a SEND_INIT, which waits for its receive if there is none. */
int MPIDI_ZC_part_init_arrived(uint64_t sender, void *am_hdr);

/* Notes that a message of another world answers @request, a CTS or its data. It is called before CH4
 * handles the message. */
void MPIDI_ZC_part_answered(MPIR_Request * request);

/* Ends @request, which has been started and has no transfer under way, with the error that the
 * process is lost. Does nothing if it has ended. */
void MPIDI_ZC_part_end(MPIR_Request * request);

/* Receives that wait for a SEND_INIT of the process of @foreign, which is dead, wait no more. */
void MPIDI_ZC_part_withdraw(const struct MPIDI_ZC_foreign *foreign);

#endif /* ZC_PART_H_INCLUDED */

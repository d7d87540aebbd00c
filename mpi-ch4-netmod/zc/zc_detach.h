/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_DETACH_H_INCLUDED
#define ZC_DETACH_H_INCLUDED

/* A rank gives up all that it has of UCX, while the others go on, and comes back with another
 * address: docs/detached-ranks.md. Its holder tells it to (zc_order.h), and only with
 * MPIR_CVAR_CH4_ZC_DETACH. The paths to the other ranks are zc_path.h's.
 *
 *               LEAVE, and nothing is in the way            all paths are quiet
 *   ATTACHED ───────────────────────────────────▶ LEAVING ──────────────────────▶ DETACHED
 *      ▲ ▲                                           │                              │  ▲
 *      │ └──── a rank refuses, or does not answer ───┘     BIND, a higher incarnation │  │ STALE
 *      │                                                                            ▼  │
 *      └──────────────── BOUND by all ranks ────────────────────────────────────── BINDING
 *
 * The program goes on in all states but DETACHED, in which the thread that makes progress (the
 * landing thread, while the program computes) waits for the token, and keeps the others out of MPI:
 * it has the locks of all VCIs (zc_vci_locks.h). It takes them for each step of the negotiation,
 * too, but not to wait for the next one.
 *
 * All functions are called inside the lock of VCI 0, or by the landing thread inside the gate, unless
 * their comment says otherwise. */

#include <stdbool.h>

/* Is called in MPI_Init, when the addresses of all ranks are known. */
int MPIDI_ZC_detach_init(void);

/* Looks for an order, and takes the steps that are possible. It is called outside UCP's callbacks,
 * whenever there is progress on VCI 0. It may destroy all workers, and make others; and where there are
 * several VCIs, other threads may have the lock of VCI 0 meanwhile. */
void MPIDI_ZC_detach_progress(void);

/* The caller, which makes progress on VCI 0, has another lock than VCIs', for which a thread that has the
 * lock of a VCI may wait. So no steps are taken, where there are several VCIs, until it says no. */
void MPIDI_ZC_detach_put_off(bool put_off);

/* Is there to be progress within a tenth of a second? Any thread may call this. */
bool MPIDI_ZC_detach_hurries(void);

/* Takes no more orders, and waits until all paths are open. It is called in MPI_Finalize, when no
 * other thread is in MPI. */
void MPIDI_ZC_detach_finalize(void);

/* Frees what is left. */
void MPIDI_ZC_detach_free(void);

#endif /* ZC_DETACH_H_INCLUDED */

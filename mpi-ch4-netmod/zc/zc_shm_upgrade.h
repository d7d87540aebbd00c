/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SHM_UPGRADE_H_INCLUDED
#define ZC_SHM_UPGRADE_H_INCLUDED

/* A connection can continue over shared memory, and processes of one machine exchange the masks of
 * their processors.
 *
 * A connection to a process of another world begins over the network, whose addresses are short
 * enough for the name of a port. When it is open, two processes on one machine exchange the masks of
 * their processors (zc_processors.h). If they can share memory, each also offers the other its whole
 * address. When both have, each makes an endpoint over shared memory, and sends by that:
 *
 *   one process                               the other
 *      HOST   processors, address ───────────▶  endpoint over shared memory
 *      ◀─────────── HOST  processors, address
 *   endpoint over shared memory
 *
 * Messages are numbered, so those that are still on the network lose nothing. The endpoint over
 * shared memory goes with its connection, so processes may connect and part as often as they like.
 *
 * UCX pairs the endpoints of two processes in the order in which each process made its own, so
 * both must make them in the same order. Therefore a connection ends on neither side before both
 * have an endpoint over shared memory, or none (zc_disconnect.h), and the next connection waits
 * for that end.
 *
 * All functions are called inside the lock of the connection's VCI. */

#include "zc_impl.h"

struct MPIDI_ZC_foreign;

/* CH4 knows @f, which is of VCI 0, from here on. */
void MPIDI_ZC_shm_upgrade_attach(struct MPIDI_ZC_foreign *f);

/* @f, which CH4 knows, is open. If the peer is on this machine, it is sent a HOST, and one of its
 * own that has arrived already is handled. */
void MPIDI_ZC_shm_upgrade_begin(struct MPIDI_ZC_foreign *f);

/* Ends with @f. */
void MPIDI_ZC_shm_upgrade_end(struct MPIDI_ZC_foreign *f);

/* UCP's callback for HOST. */
ucs_status_t MPIDI_ZC_host_handler(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_SHM_UPGRADE_H_INCLUDED */

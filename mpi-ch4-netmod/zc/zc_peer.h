/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PEER_H_INCLUDED
#define ZC_PEER_H_INCLUDED

/* Endpoints to processes of our own MPI_COMM_WORLD. Most ranks of a large job never
 * talk to most others, and an endpoint costs kilobytes: it is made when the first
 * message goes there, or comes from there. (Those to other worlds: zc_foreign.h.) */

#include "zc_impl.h"

/* Makes @peer's endpoint; called with the lock of VCI 0. */
int MPIDI_ZC_peer_connect(MPIDI_ZC_addr_t * peer);

/* @peer->ep, made now if there is none. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_peer_endpoint(MPIDI_ZC_addr_t * peer)
{
    return likely(peer->ep) ? MPI_SUCCESS : MPIDI_ZC_peer_connect(peer);
}

#endif /* ZC_PEER_H_INCLUDED */

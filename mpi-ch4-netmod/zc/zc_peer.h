/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PEER_H_INCLUDED
#define ZC_PEER_H_INCLUDED

/* Endpoints to processes of our own MPI_COMM_WORLD. Most ranks of a large job never
 * talk to most others, and an endpoint costs kilobytes: it is made when the first
 * message of a VCI goes there, or comes from there. (Those to other worlds: zc_foreign.h.) */

/* What leaves by an endpoint over TCP leaves in a row: a word waits until the megabytes before
 * it have gone. So what is announced has connections of its own, one for each direction; each
 * carries one side's bulk, and what UCP says to fetch that, which has the other direction to
 * itself. They are made when something is first announced.
 *
 *        lower rank                                         higher rank
 *           ep    ◀───── all else, of both ───────────────────▶    ep
 *          bulk   ═════▶ announced by the lower, its data ════▶  (UCP's)
 *                 ◀───── UCP: where it is wanted ─────────────
 *         (UCP's) ◀═════ announced by the higher, its data ════   bulk
 *                 ─────▶ UCP: where it is wanted ────────────▶
 *
 * UCP connects the nth endpoint that one process makes to another with the nth that the other
 * makes, or makes it there. So the higher rank makes one that it does not use before its own.
 * Sequence numbers put into order what comes over different connections.
 *
 * A process to which something is announced makes its own before it fetches anything: zc_am.c. */

#include "zc_impl.h"

/* Peers are elements of CH4's table of the world. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_world_rank_of(const MPIDI_ZC_addr_t * peer)
{
    const char *first = (const char *) &MPIDI_ZC_AV(&MPIDIU_get_av(0, 0));
    return (int) (((const char *) peer - first) / sizeof(MPIDI_av_entry_t));
}

/* Those to other worlds have one of VCI 0 only: CH4 keeps their communicators there. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_lane_t *MPIDI_ZC_lane_of(MPIDI_ZC_addr_t * peer, int vci)
{
    return likely(vci == 0) ? &peer->lane :
        &MPIDI_ZC_VCI(vci).lanes[MPIDI_ZC_world_rank_of(peer)];
}

/* The way to @rank is cut: ends the job, but in finalize. */
void MPIDI_ZC_peer_lost(int rank, const char *why);

/* Makes the endpoint of @lane, which is @peer's of @vci; called with the lock of @vci. */
int MPIDI_ZC_lane_connect(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci);

/* @lane->ep, made now if there is none. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_lane_endpoint(const MPIDI_ZC_addr_t * peer,
                                                    MPIDI_ZC_lane_t * lane, int vci)
{
    return likely(lane->ep) ? MPI_SUCCESS : MPIDI_ZC_lane_connect(peer, lane, vci);
}

/* Makes the endpoint for bulk of @lane, which has one for all else. If that fails, there will be
 * none, which is counted, and told once. Called with the lock of @vci. */
void MPIDI_ZC_lane_connect_bulk(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci);

/* By which what is announced on @lane, which has an endpoint, leaves. */
MPL_STATIC_INLINE_PREFIX ucp_ep_h MPIDI_ZC_lane_bulk_endpoint(const MPIDI_ZC_addr_t * peer,
                                                              MPIDI_ZC_lane_t * lane, int vci)
{
    if (unlikely(lane->bulk_apart && lane->bulk == 0)) {
        MPIDI_ZC_lane_connect_bulk(peer, lane, vci);
    }
    return lane->bulk ? MPIDI_ZC_VCI(vci).bulk.eps[lane->bulk] : lane->ep;
}

/* Messages of so many bytes are announced on @lane, which has an endpoint. */
MPL_STATIC_INLINE_PREFIX size_t MPIDI_ZC_lane_threshold(const MPIDI_ZC_lane_t * lane)
{
    return lane->one_copy ? MPIDI_ZC_global.params.one_copy_threshold :
        MPIDI_ZC_global.params.rndv_threshold;
}

#endif /* ZC_PEER_H_INCLUDED */

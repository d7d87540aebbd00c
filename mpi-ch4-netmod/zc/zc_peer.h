/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PEER_H_INCLUDED
#define ZC_PEER_H_INCLUDED

/* This file makes the endpoints to processes of this MPI_COMM_WORLD. Most ranks of a large job
 * never communicate with most others, and an endpoint costs kilobytes, so it is made when the
 * first message of a VCI is sent to a rank or received from it. (zc_foreign.h makes those to other
 * worlds.) */

/* Over TCP, all messages of an endpoint leave in one sequence: a short one waits until the
 * megabytes before it have been sent. So announced messages have connections of their own, one for
 * each direction. Each carries the bulk of one side, and in the other direction only UCP's
 * requests to fetch it. They are made when a message is announced, but not for the first
 * MPIDI_ZC_BULK_SHARED bytes of a side: these take the connection that there is. To connect takes
 * several round trips, each of which waits until the other process makes progress; and most
 * processes have little to send to most others.
 *
 *        lower rank                                         higher rank
 *           ep    ◀───── all other messages ──────────────────▶    ep
 *          bulk   ═════▶ messages that the lower announces ═══▶  (UCP's)
 *                 ◀───── UCP's requests to fetch them ────────
 *         (UCP's) ◀═════ messages that the higher announces ═══   bulk
 *                 ─────▶ UCP's requests to fetch them ───────▶
 *
 * UCP connects the nth endpoint that one process makes to another with the nth that the other
 * process makes, or makes one there. So the higher rank makes one that it does not use before its
 * own. Where ranks may leave (zc_path.h) the lower one makes both, too: only its own endpoint can be
 * flushed. Sequence numbers restore the order of messages from different connections.
 *
 * A process to which a message is announced over a connection for bulk makes its own endpoint before it
 * fetches data (zc_am.c). The header of a message says which connection it has taken. */

#include "zc_foreign_vcis.h"
#include "zc_impl.h"

/* Returns the rank of @peer, which is an element of CH4's table of the world. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_world_rank_of(const MPIDI_ZC_addr_t * peer)
{
    const char *first = (const char *) &MPIDI_ZC_AV(&MPIDIU_get_av(0, 0));
    return (int) (((const char *) peer - first) / sizeof(MPIDI_av_entry_t));
}

/* Returns the peer that messages of @vci are exchanged with. One of another world is another peer on
 * each VCI, with a lane and a number of its own. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_addr_t *MPIDI_ZC_peer_on(MPIDI_av_entry_t * av, int vci)
{
    MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(av);
    return likely(vci == 0 || !(peer->self & MPIDI_ZC_FOREIGN)) ? peer :
        MPIDI_ZC_foreign_vcis_peer(peer->foreign, vci);
}

/* Returns the lane of @peer, which is MPIDI_ZC_peer_on(), on @vci. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_lane_t *MPIDI_ZC_lane_of(MPIDI_ZC_addr_t * peer, int vci)
{
    return likely(vci == 0) || unlikely(peer->self & MPIDI_ZC_FOREIGN) ? &peer->lane :
        &MPIDI_ZC_VCI(vci).lanes[MPIDI_ZC_world_rank_of(peer)];
}

/* Ends the job, since the connection to @rank is lost. In finalize it only reports that. */
void MPIDI_ZC_peer_lost(int rank, const char *why);

/* Makes the endpoint of @lane, which is @peer's of @vci; if @peer is of another world, it opens the
 * connection. Where messages are parked it does nothing, which is no error. It is called inside the
 * lock of @vci. */
int MPIDI_ZC_lane_connect(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci);

/* Makes the first endpoint of @lane, which is that of @rank on @vci. The lane does not use it unless @ep
 * is its own. */
int MPIDI_ZC_lane_connect_first(int rank, MPIDI_ZC_lane_t * lane, int vci, ucp_ep_h * ep);

/* Is @rank on the same node as this process? */
bool MPIDI_ZC_peer_is_local(int rank);

/* Makes an endpoint to @rank that no lane has. */
ucs_status_t MPIDI_ZC_peer_endpoint(int rank, int vci, ucp_ep_h * ep);

/* Makes an endpoint of VCI 0 to a process at @address, whose loss is ignored. */
ucs_status_t MPIDI_ZC_peer_endpoint_for_answer(const void *address, ucp_ep_h * ep);

/* Makes @lane->ep if there is none. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_lane_endpoint(const MPIDI_ZC_addr_t * peer,
                                                    MPIDI_ZC_lane_t * lane, int vci)
{
    return likely(lane->ep) ? MPI_SUCCESS : MPIDI_ZC_lane_connect(peer, lane, vci);
}

/* Makes the endpoint for bulk of @lane, which has one for all other messages. If that fails, there
 * will be none, which is counted, and reported once. It is called inside the lock of @vci. */
void MPIDI_ZC_lane_connect_bulk(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci);

/* Returns the endpoint for messages that are announced on @lane, which has an endpoint. None is made in a
 * callback of UCP (zc_am.c says why). */
MPL_STATIC_INLINE_PREFIX ucp_ep_h MPIDI_ZC_lane_bulk_endpoint(const MPIDI_ZC_addr_t * peer,
                                                              MPIDI_ZC_lane_t * lane, int vci)
{
    if (unlikely(lane->bulk_apart && lane->bulk == 0)) {
        if (MPIDI_ZC_VCI(vci).in_callbacks) {
            MPIDI_ZC_am_want_bulk(&MPIDI_ZC_VCI(vci), MPIDI_ZC_world_rank_of(peer));
        } else {
            MPIDI_ZC_lane_connect_bulk(peer, lane, vci);
        }
    }
    return lane->bulk ? MPIDI_ZC_VCI(vci).bulk.eps[lane->bulk] : lane->ep;
}

/* What each side announces before it has an endpoint for bulk. It is little, since all else waits behind
 * it. */
#define MPIDI_ZC_BULK_SHARED (4u << 20)

/* In which that is counted, so that a byte of the lane suffices. */
#define MPIDI_ZC_SHARED_UNIT (32u << 10)

/* Nothing has been announced on @lane since its endpoint was made. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_lane_share_anew(MPIDI_ZC_lane_t * lane)
{
    lane->shared_left = MPIDI_ZC_global.params.bulk_shares ?
        MPIDI_ZC_BULK_SHARED / MPIDI_ZC_SHARED_UNIT : 0;
}

/* Is a message of @bytes, which is being announced on @lane, among those that take the connection of all
 * other messages, though bulk is to have its own? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_lane_shares(MPIDI_ZC_lane_t * lane, size_t bytes)
{
    const size_t units = (bytes + MPIDI_ZC_SHARED_UNIT - 1) / MPIDI_ZC_SHARED_UNIT;

    if (likely(lane->bulk || !lane->bulk_apart) || units > lane->shared_left) {
        return false;
    }
    lane->shared_left -= (uint8_t) units;
    return true;
}

/* Returns the bytes from which a message is announced on @lane, which has an endpoint. */
MPL_STATIC_INLINE_PREFIX size_t MPIDI_ZC_lane_threshold(const MPIDI_ZC_lane_t * lane)
{
    return lane->one_copy ? MPIDI_ZC_global.params.one_copy_threshold :
        MPIDI_ZC_global.params.rndv_threshold;
}

#endif /* ZC_PEER_H_INCLUDED */

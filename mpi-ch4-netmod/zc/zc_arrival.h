/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ARRIVAL_H_INCLUDED
#define ZC_ARRIVAL_H_INCLUDED

/* One message on its way from "its header is here" to "its data is in the user
 * buffer". Matching is CH4's; what the data does meanwhile is decided here.
 *
 *                          matched?
 *                     yes /        \ no
 *   user buffer contiguous?         eager: the request holds it     held ──┐
 *   and long enough?                budget left: taken at once             │
 *    yes /     \ no                   into landing memory  LANDING ─▶ LANDED
 *     DIRECT   BOUNCING             else left at the sender       WAITING  │
 *        │        │                                │                 │     │
 *        │        │                            matched           matched  matched
 *        │        │                                └─▶ DIRECT or     │     │
 *        ▼        ▼                                    BOUNCING      ▼     ▼
 *      done    unpacked                                           delivered to
 *                                                                 the user buffer
 *
 * User memory is written in DIRECT, and on delivery: both are after the match.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the
 * gate. */

#include "zc_impl.h"

typedef enum {
    MPIDI_ZC_WAITING,
    MPIDI_ZC_LANDING,
    MPIDI_ZC_LANDED,
    MPIDI_ZC_DIRECT,
    MPIDI_ZC_BOUNCING,
} MPIDI_ZC_arrival_state_t;

typedef struct MPIDI_ZC_arrival {
    MPIDI_ZC_arrival_state_t state;
    bool matched;
    bool predicted;             /* claim is valid */
    ucs_status_t status;        /* of the landing transfer */
    MPIR_Request *rreq;
    size_t bytes;
    zcp_claim_t claim;
    uint64_t expected;          /* predicted user address or 0 */
    void *descriptor;           /* UCP's, while WAITING */
    zc_landing_t *landing;      /* LANDING, LANDED */
    void *buffer;               /* BOUNCING; owned */
    MPIDI_ZC_vci_t *vci;        /* that it has come over */
    MPIDI_ZC_arrivals_t *list;  /* the one it is on */
    struct MPIDI_ZC_arrival *next, *previous;
} MPIDI_ZC_arrival_t;

/* Of a message with its data at hand: into the user buffer if it is matched, else @rreq
 * holds it until it is. @rreq: what CH4's handler returned. */
int MPIDI_ZC_hold(MPIR_Request * rreq, const void *data, size_t bytes);

/* A message announced by UCP; takes over @descriptor. @may_land: it is a send, from where
 * it may be fetched before the match. */
int MPIDI_ZC_arrival_rndv(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, void *descriptor,
                          size_t bytes, bool may_land);

/* CH4's call when a receive meets the unexpected message of @rreq. */
int MPIDI_ZC_arrival_matched(MPIR_Request * rreq);

/* Lands messages that stood in line for landing memory, oldest first. Each VCI has its
 * own line; the memory is everybody's. */
int MPIDI_ZC_land_queued(MPIDI_ZC_vci_t * vci);

/* Has landing memory come free, over whatever VCI, since somebody in line was refused? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_line_moves(const MPIDI_ZC_vci_t * vci)
{
    return unlikely(vci->queued.first) &&
        vci->seen_releases != __atomic_load_n(&MPIDI_ZC_global.releases, __ATOMIC_RELAXED);
}

/* Frees every arrival that was never matched. */
void MPIDI_ZC_arrivals_drop(MPIDI_ZC_vci_t * vci);

#endif /* ZC_ARRIVAL_H_INCLUDED */

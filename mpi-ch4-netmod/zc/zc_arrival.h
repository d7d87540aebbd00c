/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ARRIVAL_H_INCLUDED
#define ZC_ARRIVAL_H_INCLUDED

/* One announced message on its way from "its header is here" to "its data is in the user
 * buffer". It is matched in zc_match.h; what the data does meanwhile is decided here.
 *
 *                          matched?
 *                     yes /        \ no
 *   user buffer contiguous?         budget left, and worth while (zc_weigh.h): taken at once
 *   and long enough?                  into landing memory  LANDING ─▶ LANDED
 *    yes /     \ no                 else left at the sender       WAITING  │
 *     DIRECT   BOUNCING                            │                 │     │
 *        │        │                            matched           matched  matched
 *        │        │                                └─▶ DIRECT or     │     │
 *        ▼        ▼                                    BOUNCING      ▼     ▼
 *      done    unpacked (zc_stream.h)                             delivered to
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
    bool is_send;               /* and no message of RMA */
    ucs_status_t status;        /* of the landing transfer */
    MPIR_Request *rreq;         /* NULL: not matched */
    size_t bytes;
    MPIDI_ZC_times_t *transfers;        /* among which its own counts, or NULL */
    uint64_t since;             /* ns: when that began */
    zcp_claim_t claim;
    uint64_t expected;          /* predicted user address or 0 */
    void *descriptor;           /* UCP's, or an offer (zc_channel.h), while WAITING */
    void *target;               /* of an offer that has been asked for; NULL: the stream */
    zc_landing_t *landing;      /* LANDING, LANDED */
    MPIDI_ZC_stream_t *stream;  /* BOUNCING; owned */
    MPIDI_ZC_vci_t *vci;        /* that it has come over */
    MPIDI_ZC_arrivals_t *list;  /* the one it is on */
    struct MPIDI_ZC_arrival *next, *previous;
} MPIDI_ZC_arrival_t;

/* Data at hand to the buffer of @rreq, which knows how many bytes come. */
void MPIDI_ZC_copy_out(MPIR_Request * rreq, void *data);

/* A message announced by UCP that @rreq has taken, a send of @sender; takes over @descriptor.
 * The request tells of what goes wrong. */
int MPIDI_ZC_arrival_expected(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                              void *descriptor, size_t bytes);

/* The transfer of @a, which may be gone on return, is over: zc_channel.c. */
void MPIDI_ZC_arrival_fetched(MPIDI_ZC_arrival_t * a, ucs_status_t status);

/* What @a waits for comes by UCP after all; as an active message's handler does. */
ucs_status_t MPIDI_ZC_arrival_data(MPIDI_ZC_arrival_t * a, void *descriptor);

/* The data of @descriptor is not wanted: its sender is told that all is done. */
void MPIDI_ZC_arrival_decline(MPIDI_ZC_vci_t * vci, void *descriptor);

/* Data that was asked for, announced by UCP; the same, but that it is no news to the predictor.
 * @is_send: it is of a send; else an error is the caller's. */
int MPIDI_ZC_arrival_answer(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, void *descriptor,
                            size_t bytes, bool is_send);

/* A send announced by UCP that @message, which is to be queued, stands for. *arrival: set if
 * this succeeds, which takes over @descriptor. */
int MPIDI_ZC_arrival_unexpected(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_message_t * message,
                                void *descriptor, size_t bytes, MPIDI_ZC_arrival_t ** arrival);

/* @rreq has taken it; @arrival may be gone on return. */
int MPIDI_ZC_arrival_matched(MPIDI_ZC_arrival_t * arrival, MPIR_Request * rreq);

/* Lands messages that stood in line for landing memory, oldest first. Each VCI has its
 * own line; the memory is everybody's. */
void MPIDI_ZC_land_queued(MPIDI_ZC_vci_t * vci);

/* Has landing memory come free, over another VCI, since somebody in line was refused? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_line_moves(const MPIDI_ZC_vci_t * vci)
{
    return unlikely(vci->queued.first) &&
        vci->seen_releases != __atomic_load_n(&MPIDI_ZC_global.releases, __ATOMIC_RELAXED);
}

/* Frees every arrival that was never matched. */
void MPIDI_ZC_arrivals_drop(MPIDI_ZC_vci_t * vci);

#endif /* ZC_ARRIVAL_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ARRIVAL_H_INCLUDED
#define ZC_ARRIVAL_H_INCLUDED

/* An arrival is one announced message, from the time when its header has been received to the time
 * when its data is in the user buffer. zc_match.h matches it; this file decides where the data
 * goes.
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
 * Over shared memory UCX waits for ever for data of a process that has died. Those of one-sided
 * operations are matched at once, and the accumulates of other processes would wait for them. They end
 * when the process is dead:
 *
 *   DIRECT, BOUNCING ── the sender is dead ──▶ ABANDONED: the request has ended, and UCX still has the
 *                                              memory that the data were to come to
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
    MPIDI_ZC_ABANDONED,
} MPIDI_ZC_arrival_state_t;

typedef struct MPIDI_ZC_arrival {
    MPIDI_ZC_arrival_state_t state;
    bool matched;
    bool predicted;             /* claim is valid */
    bool is_send;               /* partitioned or not, and no message of RMA */
    ucs_status_t status;        /* LANDED: of the transfer */
    MPIR_Request *rreq;         /* NULL: not matched, or ABANDONED */
    uint64_t sender;
    size_t bytes;
    MPIDI_ZC_times_t *transfers;        /* the times to which its own is added, or NULL */
    uint64_t since;             /* ns: when the transfer began */
    zcp_claim_t claim;
    uint64_t expected;          /* predicted user address or 0 */
    void *descriptor;           /* UCP's, or an offer (zc_channel.h), while WAITING */
    void *target;               /* of an offer that has been pulled; NULL: the stream */
    struct MPIDI_ZC_channel *channel;   /* from which its frame or DATA is awaited */
    zc_landing_t *landing;      /* LANDING, LANDED */
    void *kept;                 /* the same, in memory beside the budget; owned */
    MPIDI_ZC_stream_t *stream;  /* BOUNCING; owned */
    MPIDI_ZC_vci_t *vci;        /* by which its header was received */
    MPIDI_ZC_arrivals_t *list;  /* that it is on */
    struct MPIDI_ZC_arrival *next, *previous;
} MPIDI_ZC_arrival_t;

/* Copies @data to the buffer of @rreq, which holds the number of bytes. */
void MPIDI_ZC_copy_out(MPIR_Request * rreq, void *data);

/* Fetches a message of @sender, announced by UCP, that @rreq has matched. Takes over @descriptor.
 * The status of the request has the error if there is one. */
int MPIDI_ZC_arrival_expected(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                              void *descriptor, size_t bytes);

/* Ends the transfer of @a, and may free @a. zc_channel.c calls this when a frame has arrived. */
void MPIDI_ZC_arrival_fetched(MPIDI_ZC_arrival_t * a, ucs_status_t status);

/* Receives the data of @a, which arrives as DATA by UCP instead of by a channel. Returns what the
 * handler of an active message has to return. */
ucs_status_t MPIDI_ZC_arrival_data(MPIDI_ZC_arrival_t * a, void *descriptor);

/* Declines the data of @descriptor. For its sender the send is then complete. */
void MPIDI_ZC_arrival_decline(MPIDI_ZC_vci_t * vci, void *descriptor);

/* Fetches data that was asked for, and that UCP announces, as MPIDI_ZC_arrival_expected() does, but
 * without the predictor. @is_send: the data is of a send, and the request's status has the error;
 * otherwise the error is returned. */
int MPIDI_ZC_arrival_answer(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                            void *descriptor, size_t bytes, bool is_send);

/* Begins the arrival of a send, announced by UCP, that has no receive yet. @message is its entry
 * in the queue of unexpected messages. If this succeeds, it sets *arrival and takes over
 * @descriptor. */
int MPIDI_ZC_arrival_unexpected(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_message_t * message,
                                void *descriptor, size_t bytes, MPIDI_ZC_arrival_t ** arrival);

/* Delivers @arrival to @rreq, which has matched it, now or when the data is there. May free
 * @arrival. */
int MPIDI_ZC_arrival_matched(MPIDI_ZC_arrival_t * arrival, MPIR_Request * rreq);

/* Lands messages that have been waiting in line for landing memory, the oldest first. Each VCI has
 * a line of its own; all VCIs share the memory. */
void MPIDI_ZC_land_queued(MPIDI_ZC_vci_t * vci);

/* Has another VCI released landing memory since a message in the line of @vci was refused? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_line_moves(const MPIDI_ZC_vci_t * vci)
{
    return unlikely(vci->queued.first) &&
        vci->seen_releases != __atomic_load_n(&MPIDI_ZC_global.releases, __ATOMIC_RELAXED);
}

/* Fetches all that @sender has announced by UCP, whose descriptors are about to end, into memory
 * beside the budget if need be. True: all of it is here. *@memory: false if there is not enough; then
 * the rest stays where it is. */
bool MPIDI_ZC_arrivals_fetch(MPIDI_ZC_vci_t * vci, uint64_t sender, bool * memory);

/* The process of @foreign is dead, and nothing of it comes any more over shared memory: ends its one-sided
 * operations whose data UCX waits for. It is called outside UCP's callbacks. */
void MPIDI_ZC_arrivals_abandon(MPIDI_ZC_vci_t * vci, const struct MPIDI_ZC_foreign *foreign);

/* Frees every arrival that has not been matched. */
void MPIDI_ZC_arrivals_drop(MPIDI_ZC_vci_t * vci);

#endif /* ZC_ARRIVAL_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FLOW_H_INCLUDED
#define ZC_FLOW_H_INCLUDED

/* Flow control: how much a sender may leave at a receiver that has not asked for it.
 *
 *   window    the memory that a receiver sets aside for one sender (a lane)
 *   credit    what is left of it, as the sender knows
 *   owed      memory free again that the receiver has not yet told the sender of
 *   held      memory taken by messages of this sender that wait to be matched
 *
 *   window = credit + owed + held + what is on its way
 *
 *     sender                                     receiver
 *     credit -= cost   ── message ─▶             matched at once:  owed += cost
 *                                                queued:           held += cost, until matched
 *     credit += owed   ◀─ credit, on a packet
 *                         that goes anyway, or
 *                         of its own             owed > window / 4
 *
 * A window begins small: half of the budget is divided among all ranks of the job. Of the
 * other half a receiver adds to the windows of those whose messages are waiting, and takes it
 * back as they are matched if it becomes scarce. So the windows never add up to more than the
 * budget, and neither do the messages. A process of another world has a window of that other
 * half only: it begins without credit, and is told of it when it has said who it is
 * (zc_foreign.h); the credit it is owed comes in packets of their own.
 *
 * A sender without credit announces its message only (CH4's own rendezvous): the envelope is
 * queued in its place, so probes, wildcards and order are as ever, and the sender's request
 * stays incomplete until the message is matched, or the receiver has budget and fetches
 * it. Such an envelope costs no credit. There are never more of them than senders have
 * incomplete sends, and a process that has MPIDI_ZC_HELD_MAX of those waits in its next one:
 * requests of MPICH are finite. Whatever is not a send is never held up.
 *
 * Called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_impl.h"
#include "zc_peer.h"

/* Of a window: no limit. */
#define MPIDI_ZC_UNLIMITED INT32_MAX
/* The longest initial window. */
#define MPIDI_ZC_WINDOW_MAX (4 << 20)
/* What a message costs that is announced by UCP: UCX's descriptor, the arrival, and the
 * message in the queue. */
#define MPIDI_ZC_ANNOUNCED_COST 512

/* The longest message that may be eager. */
#define MPIDI_ZC_EAGER_MAX ((size_t) 1 << 30)

/* Half of the requests that a VCI has in MPICH. */
#define MPIDI_ZC_HELD_MAX 131072

/* Progresses until there is a request to be had for a send that is announced. Without the lock. */
int MPIDI_ZC_flow_await_requests(const MPIDI_ZC_vci_t * vci);

/* The window that each process of our world begins with at this one. */
int32_t MPIDI_ZC_flow_initial_window(size_t budget, int nr_processes, int nr_vcis);

/* Gives the process of another world that sends as @sender its window, as large as there is room
 * for, and tells it of that. False: it could not be told. */
bool MPIDI_ZC_flow_open(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender);

/* That process has gone. What its messages that wait take is given back as they are released. */
void MPIDI_ZC_flow_close(MPIDI_ZC_inbound_t * in);

/* Is a message of @bytes sent with its data, not announced, if it is paid for? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_flow_is_eager(const MPIDI_ZC_lane_t * lane, size_t bytes)
{
    return likely(bytes < MPIDI_ZC_global.params.min_threshold) ||
        bytes < MPIDI_ZC_lane_threshold(lane);
}

/* What it costs. */
MPL_STATIC_INLINE_PREFIX int32_t MPIDI_ZC_flow_cost(bool eager, size_t bytes)
{
    return likely(eager) ? (int32_t) MPIDI_ZC_message_size(bytes) : MPIDI_ZC_ANNOUNCED_COST;
}

/* Pays for a send; false: it has to be announced. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_flow_pay(MPIDI_ZC_lane_t * lane, int32_t cost)
{
    if (unlikely(lane->credit < cost)) {
        return false;
    }
    if (likely(lane->credit != MPIDI_ZC_UNLIMITED)) {
        lane->credit -= cost;
    }
    return true;
}

/* What was paid for has not been sent. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_flow_refund(MPIDI_ZC_lane_t * lane, int32_t cost)
{
    if (lane->credit != MPIDI_ZC_UNLIMITED) {
        lane->credit += cost;
    }
}

/* The receiver of @lane's messages tells of @bytes. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_flow_credit(MPIDI_ZC_lane_t * lane, int32_t bytes)
{
    MPIDI_ZC_flow_refund(lane, bytes);
}

/* What a packet on @lane, which goes anyway, tells its receiver, in MPIDI_ZC_CREDIT_UNIT. */
MPL_STATIC_INLINE_PREFIX uint8_t MPIDI_ZC_flow_piggyback(MPIDI_ZC_lane_t * lane)
{
    MPIDI_ZC_inbound_t *in = &lane->inbound;
    if (likely(in->owed < MPIDI_ZC_CREDIT_UNIT)) {
        return 0;
    }
    const uint32_t units = MPL_MIN(in->owed / MPIDI_ZC_CREDIT_UNIT, UINT8_MAX);
    in->owed -= units * MPIDI_ZC_CREDIT_UNIT;
    return units;
}

/* Tells @sender what it is owed. */
void MPIDI_ZC_flow_return(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender);

/* A message of @sender that was paid for takes no memory any more, or never did. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_flow_consumed(MPIDI_ZC_vci_t * vci,
                                                     MPIDI_ZC_inbound_t * in, uint64_t sender,
                                                     int32_t cost)
{
    in->owed += cost;
    if (unlikely(in->owed > in->window / 4)) {
        MPIDI_ZC_flow_return(vci, in, sender);
    }
}

/* It takes memory until it is matched; @sender may get a larger window. */
void MPIDI_ZC_flow_hold(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        int32_t cost);

/* Its memory is free; @in: NULL if its connection has ended. */
void MPIDI_ZC_flow_release(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                           int32_t cost);

/* @sender has announced a message of @cost for lack of credit, and it is not expected. True: it
 * may be fetched now, and counts as paid for and held. */
bool MPIDI_ZC_flow_admit(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         int32_t cost);

/* @sender has announced a message of @cost for lack of credit, and its receive waits: its window is
 * shorter than what it has under way. */
void MPIDI_ZC_flow_short(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         int32_t cost);

/* UCX's callback for credit that comes in a packet of its own. */
ucs_status_t MPIDI_ZC_credit_handler(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length,
                                     const ucp_am_recv_param_t * param);

#endif /* ZC_FLOW_H_INCLUDED */

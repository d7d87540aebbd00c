/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FLOW_H_INCLUDED
#define ZC_FLOW_H_INCLUDED

/* Flow control limits how much a sender may leave at a receiver that has not asked for it.
 *
 *   window    the memory that a receiver sets aside for one sender (a lane)
 *   credit    what is left of the window, as the sender knows it
 *   owed      memory that is free again, for which the sender has not got its credit back yet
 *   held      memory taken by messages of this sender that wait to be matched
 *
 *   window = credit + owed + held + what is under way
 *
 *     sender                                     receiver
 *     credit -= cost   ── message ─▶             matched at once:  owed += cost
 *                                                queued:           held += cost, until matched
 *     credit += owed   ◀─ credit, on a packet
 *                         that is sent anyway,
 *                         or in one of its own   owed > window / 4
 *
 * A window begins small: half of the budget is divided among all ranks of the job. From the other
 * half a receiver adds to the windows of senders whose messages wait, and takes it back when they
 * have been matched if that half becomes scarce. So the windows never add up to more than the
 * budget, and neither do the messages. A process of another world has a window of that other half
 * only, one for each VCI, so where there are any, half of that half is kept for them to begin with.
 * It begins without credit, and gets its window when it has identified itself (zc_foreign.h). The
 * credit that it is owed is sent in packets of their own.
 *
 * A sender without credit only announces its message (CH4's own rendezvous). The envelope is
 * queued in the message's place, so probes, wildcards and order are the same, and the sender's
 * request stays incomplete until the message is matched, or until the receiver has budget and
 * fetches it. Such an envelope costs no credit. There are never more of them than senders have
 * incomplete sends, and a process that has MPIDI_ZC_HELD_MAX of those waits in its next one, since
 * MPICH has a limited number of requests. Only sends are ever held.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_impl.h"
#include "zc_peer.h"

/* A window of this size has no limit. */
#define MPIDI_ZC_UNLIMITED INT32_MAX
/* The largest window that a sender begins with. */
#define MPIDI_ZC_WINDOW_MAX (4 << 20)
/* The cost of a message that UCP announces: it takes UCX's descriptor, an arrival, and an entry in
 * the queue. */
#define MPIDI_ZC_ANNOUNCED_COST 512

/* The longest message that may be eager. */
#define MPIDI_ZC_EAGER_MAX ((size_t) 1 << 30)

/* A VCI has at most so many sends that are announced for lack of credit: half of the requests
 * that MPICH has for it. */
#define MPIDI_ZC_HELD_MAX 131072

/* Makes progress until there is a request for a send that is announced. It is called without the
 * lock. */
int MPIDI_ZC_flow_await_requests(const MPIDI_ZC_vci_t * vci);

/* Returns the window that each process of this world begins with at this process. */
int32_t MPIDI_ZC_flow_initial_window(size_t budget, int nr_processes, int nr_vcis);

/* Gives the process of another world that sends as @sender its window, as large as there is room
 * for, and sends it the credit. *@begun, which is 0 before: how large that is, of a limited budget.
 * False: it has no window yet, and this has to be called again. */
bool MPIDI_ZC_flow_open(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        uint32_t * begun);

/* Closes the window of that process, which began with @begun bytes, and to which there is no
 * connection any more. What its waiting messages take is given back when they are released. */
void MPIDI_ZC_flow_close(MPIDI_ZC_inbound_t * in, uint32_t begun);

/* Is a message of @bytes sent with its data, and not announced, if it is paid for? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_flow_is_eager(const MPIDI_ZC_lane_t * lane, size_t bytes)
{
    return likely(bytes < MPIDI_ZC_global.params.min_threshold) ||
        bytes < MPIDI_ZC_lane_threshold(lane);
}

/* Returns the cost of a message. */
MPL_STATIC_INLINE_PREFIX int32_t MPIDI_ZC_flow_cost(bool eager, size_t bytes)
{
    return likely(eager) ? (int32_t) MPIDI_ZC_message_size(bytes) : MPIDI_ZC_ANNOUNCED_COST;
}

/* Pays for a send. False: the credit does not suffice, and the message has to be announced. */
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

/* Pays back what was paid for a message that has not been sent. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_flow_refund(MPIDI_ZC_lane_t * lane, int32_t cost)
{
    if (lane->credit != MPIDI_ZC_UNLIMITED) {
        lane->credit += cost;
    }
}

/* Adds credit of @bytes that the receiver of @lane's messages has returned. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_flow_credit(MPIDI_ZC_lane_t * lane, int32_t bytes)
{
    MPIDI_ZC_flow_refund(lane, bytes);
}

/* Takes from what is owed the credit that a packet on @lane returns, in MPIDI_ZC_CREDIT_UNIT. */
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

/* Sends @sender the credit that it is owed. */
void MPIDI_ZC_flow_return(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender);

/* Takes note that a message of @sender that was paid for takes no memory any more, or never did. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_flow_consumed(MPIDI_ZC_vci_t * vci,
                                                     MPIDI_ZC_inbound_t * in, uint64_t sender,
                                                     int32_t cost)
{
    in->owed += cost;
    if (unlikely(in->owed > in->window / 4)) {
        MPIDI_ZC_flow_return(vci, in, sender);
    }
}

/* Takes note that such a message takes memory until it is matched. @sender may get a larger
 * window. */
void MPIDI_ZC_flow_hold(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        int32_t cost);

/* Takes note that its memory has been freed. @in: NULL if its connection has ended. */
void MPIDI_ZC_flow_release(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                           int32_t cost);

/* Decides about a message of @cost that @sender has announced for lack of credit, and that has no
 * receive yet. True: it may be fetched now, and counts as paid for and held. */
bool MPIDI_ZC_flow_admit(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         int32_t cost);

/* Enlarges the window of @sender, which has announced a message of @cost for lack of credit
 * although its receive waits: the window is smaller than what the sender has under way. */
void MPIDI_ZC_flow_short(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         int32_t cost);

/* UCP's callback for CREDIT. */
ucs_status_t MPIDI_ZC_credit_handler(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length,
                                     const ucp_am_recv_param_t * param);

#endif /* ZC_FLOW_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_detach.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_match.h"
#include "zc_outstanding.h"
#include "zc_parked.h"
#include "zc_part.h"
#include "zc_path.h"
#include "zc_peer.h"
#include "zc_sender.h"

/* This file receives CH4's active messages: it restores their order and hands them to CH4's
 * handlers. */

/* A message that overtook an earlier one of the same sender. It has been paid for, or is only
 * announced (zc_flow.h), so there are never more of them than may be queued. */
typedef struct MPIDI_ZC_early {
    struct MPIDI_ZC_early *next;
    uint32_t sequence;
    void *descriptor;           /* UCP's, of a rendezvous; or NULL */
    size_t length;
    size_t header_length;
    char bytes[];               /* header, and the data of an eager message */
} MPIDI_ZC_early_t;

bool MPIDI_ZC_note_send_status(MPIR_Request * sreq, ucs_status_t status)
{
    if (unlikely(MPIDI_ZC_global.over)) {
        return false;
    }
    if (unlikely(status != UCS_OK)) {
        sreq->status.MPI_ERROR = MPIDI_ZC_transfer_error(MPI_SUCCESS, "send", status);
    }
    return true;
}

void MPIDI_ZC_eager_done(void *request, ucs_status_t status, void *user_data)
{
    MPIR_Request *sreq = user_data;

    if (MPIDI_ZC_note_send_status(sreq, status)) {
        MPID_Request_complete(sreq);
    }
    ucp_request_free(request);
}

void MPIDI_ZC_am_send_over(MPIR_Request * sreq, ucs_status_t status)
{
    if (MPIDI_ZC_note_send_status(sreq, status)) {
        const int handler_id = MPIDI_ZC_AM_REQUEST(sreq).handler_id;
        MPIDI_ZC_am_sent(&MPIDI_ZC_AM_REQUEST(sreq));
        if (unlikely(MPIDI_ZC_AM_REQUEST(sreq).lost)) {
            MPIDI_ZC_outstanding_returned(sreq);
        } else {
            MPIDIG_global.origin_cbs[handler_id] (sreq);
        }
    }
}

/* @request: NULL if the message was parked, and sent at once later: zc_parked.h. */
static void free_request(void *request)
{
    if (likely(request)) {
        ucp_request_free(request);
    }
}

void MPIDI_ZC_am_send_done(void *request, ucs_status_t status, void *user_data)
{
    MPIDI_ZC_am_send_over(user_data, status);
    free_request(request);
}

void MPIDI_ZC_am_header_done(void *request, ucs_status_t status, void *user_data)
{
    MPL_free(user_data);
    free_request(request);
}

/* ---- CH4's answers ---- */

int MPIDI_ZC_am_send_header(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci,
                            int handler_id, const void *am_hdr, size_t am_hdr_sz)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t header_length = sizeof(MPIDI_ZC_am_header_t) + am_hdr_sz;
    const MPIDI_ZC_am_header_t own = {
        .sequence = lane->next_send++,
        .sender = peer->self,
        .handler_id = handler_id,
        .src_vci = vci,
        .dst_vci = vci,
    };

    char *header = MPL_malloc(header_length, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!header, mpi_errno, MPI_ERR_OTHER, "**nomem");
    memcpy(header, &own, sizeof(own));
    memcpy(header + sizeof(own), am_hdr, am_hdr_sz);

    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = MPIDI_ZC_am_header_done,
        .user_data = header,
    };
    ucs_status_ptr_t request = MPIDI_ZC_send_or_park(peer, vci, lane->ep, MPIDI_ZC_AM_MESSAGE,
                                                     header, header_length, NULL, 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        MPL_free(header);
    }
    if (unlikely(UCS_PTR_IS_ERR(request)) && peer->foreign) {
        MPIDI_ZC_foreign_refused(peer->foreign, UCS_PTR_STATUS(request));
    }
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");

  fn_exit:
    return mpi_errno;
  fn_fail:
    /* UCP handles a message to the process itself inside the call above, and it may be answered
     * there: it must have its number before. One that fails is not handled, so its number is the
     * last. */
    lane->next_send--;
    goto fn_exit;
}

bool MPIDI_ZC_am_answer(MPIDI_ZC_vci_t * vci, uint64_t sender, int handler_id,
                        const void *am_hdr, size_t am_hdr_sz)
{
    MPIDI_ZC_addr_t *peer = sender & MPIDI_ZC_FOREIGN ? MPIDI_ZC_foreign_sender(sender) :
        &MPIDI_ZC_AV(&MPIDIU_get_av(0, sender));
    if (!peer) {
        return false;
    }
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);

    MPIDI_ZC_bundle_end(vci);
    return MPIDI_ZC_lane_endpoint(peer, lane, vci->number) == MPI_SUCCESS &&
        MPIDI_ZC_am_send_header(peer, lane, vci->number, handler_id, am_hdr,
                                am_hdr_sz) == MPI_SUCCESS;
}

/* ---- messages in order ---- */

/* Receives data that has been asked for. */
static int receive_answer(MPIDI_ZC_vci_t * vci, const void *am_hdr, void *data,
                          const MPIDI_ZC_am_header_t * h, bool * taken)
{
    MPIDIG_send_data_msg_t answer;

    memcpy(&answer, am_hdr, sizeof(answer));
    const uint64_t cookie = (uint64_t) (uintptr_t) answer.rreq_ptr;
    *taken = MPIDI_ZC_match_asked(cookie);
    if (!*taken && unlikely(h->sender & MPIDI_ZC_FOREIGN)) {
        MPIDI_ZC_foreign_answered(answer.rreq_ptr);
    }
    return *taken ? MPIDI_ZC_match_fetched(vci, cookie, data, h->data_size) : MPI_SUCCESS;
}

/* Is the message the answer for a request that has ended, since the connection to its sender has
 * failed? Messages over shared memory may still arrive. */
static bool comes_too_late(const MPIDI_ZC_am_header_t * h, const void *am_hdr)
{
    if (likely(!(h->sender & MPIDI_ZC_FOREIGN))) {
        return false;
    }
    switch (h->handler_id) {
        case MPIDIG_SEND_CTS:
        case MPIDIG_SEND_DATA:
        case MPIDIG_SSEND_ACK:
        case MPIDIG_PART_CTS:
            return MPIDI_ZC_foreign_is_lost(h->sender);
        case MPIDIG_PART_SEND_DATA:
            {
                MPIDIG_part_send_data_msg_t data;
                memcpy(&data, am_hdr, sizeof(data));
                return !MPIDI_ZC_foreign_awaits_part(h->sender, data.rreq_ptr);
            }
        default:
            break;
    }
    if (MPIDI_ZC_outstanding_answers(h->handler_id) || MPIDI_ZC_outstanding_asks(h->handler_id)) {
        return MPIDI_ZC_foreign_is_lost(h->sender);
    }
    /* Windows have been told that it is dead, and its locks given up. */
    return MPIDI_ZC_outstanding_is_message(h->handler_id) &&
        MPIDI_ZC_foreign_sender_is_dead(h->sender);
}

/* The answers to one-sided operations begin with their request. */
_Static_assert(offsetof(MPIDIG_put_ack_msg_t, preq_ptr) == 0 &&
               offsetof(MPIDIG_get_ack_msg_t, greq_ptr) == 0 &&
               offsetof(MPIDIG_acc_ack_msg_t, req_ptr) == 0 &&
               offsetof(MPIDIG_get_acc_ack_msg_t, req_ptr) == 0 &&
               offsetof(MPIDIG_cswap_ack_msg_t, req_ptr) == 0, "an answer of a target");

/* Notes which request of this process a message of another world answers. CH4's handler does the
 * rest. */
static void note_answer(const MPIDI_ZC_am_header_t * h, const void *am_hdr)
{
    if (h->handler_id == MPIDIG_SSEND_ACK) {
        MPIDIG_ssend_ack_msg_t ack;
        memcpy(&ack, am_hdr, sizeof(ack));
        MPIDI_ZC_foreign_acked(ack.sreq_ptr);
    } else if (h->handler_id == MPIDIG_PART_CTS) {
        MPIDIG_part_cts_msg_t cts;
        memcpy(&cts, am_hdr, sizeof(cts));
        MPIDI_ZC_part_answered(cts.sreq_ptr);
    } else if (h->handler_id == MPIDIG_PART_SEND_DATA) {
        MPIDIG_part_send_data_msg_t data;
        memcpy(&data, am_hdr, sizeof(data));
        MPIDI_ZC_part_answered(data.rreq_ptr);
    } else if (MPIDI_ZC_outstanding_answers(h->handler_id)) {
        MPIR_Request *request;
        memcpy(&request, am_hdr, sizeof(request));
        MPIDI_ZC_foreign_acked(request);
    } else if (MPIDI_ZC_outstanding_asks(h->handler_id)) {
        MPIDIG_put_dt_ack_msg_t question;
        memcpy(&question, am_hdr, sizeof(question));
        MPIDI_ZC_AM_REQUEST(question.origin_preq_ptr).data_is_sent = true;
    } else if (MPIDI_ZC_outstanding_brings(h->handler_id)) {
        MPIDIG_put_dat_msg_t data;
        memcpy(&data, am_hdr, sizeof(data));
        MPIDI_ZC_foreign_acked(data.preq_ptr);
    }
}

/* Handles one message that is in order: a send is matched, for all others there is a handler of
 * CH4's. @descriptor: UCP's if the data is still at the sender, else NULL and @data holds it. */
static int dispatch(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, const char *header, void *data,
                    size_t length, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_header_t h;
    memcpy(&h, header, sizeof(h));
    void *am_hdr = (void *) (header + sizeof(h));
    MPIR_Request *rreq = NULL;

    if (likely(h.handler_id == MPIDIG_SEND)) {
        mpi_errno = MPIDI_ZC_match_send(vci, in, h.sender, am_hdr, data, descriptor);
        MPIR_ERR_CHECK(mpi_errno);
        goto fn_exit;
    }
    if (unlikely(h.handler_id == MPIDIG_PART_SEND_INIT)) {
        mpi_errno = MPIDI_ZC_part_init_arrived(h.sender, am_hdr);
        MPIR_ERR_CHECK(mpi_errno);
        goto fn_exit;
    }
    if (comes_too_late(&h, am_hdr)) {
        if (descriptor) {
            MPIDI_ZC_arrival_decline(vci, descriptor);
        }
        goto fn_exit;
    }
    if (h.handler_id == MPIDIG_SEND_DATA) {
        bool taken;
        mpi_errno = receive_answer(vci, am_hdr, data, &h, &taken);
        MPIR_ERR_CHECK(mpi_errno);
        if (taken) {
            goto fn_exit;
        }
    } else if (unlikely(h.sender & MPIDI_ZC_FOREIGN)) {
        note_answer(&h, am_hdr);
    }

    uint32_t attr = 0;
    MPIDIG_AM_ATTR_SET_VCIS(attr, h.src_vci, h.dst_vci);
    if (descriptor) {
        attr |= MPIDIG_AM_ATTR__IS_ASYNC | MPIDIG_AM_ATTR__IS_RNDV;
    }
    mpi_errno = MPIDIG_global.target_msg_cbs[h.handler_id] (am_hdr, data, h.data_size, attr,
                                                            descriptor ? &rreq : NULL);
    MPIR_ERR_CHECK(mpi_errno);

    if (descriptor && rreq) {
        mpi_errno = MPIDI_ZC_arrival_answer(vci, rreq, h.sender, descriptor, h.data_size,
                                            h.handler_id == MPIDIG_SEND_DATA ||
                                            h.handler_id == MPIDIG_PART_SEND_DATA);
        MPIR_ERR_CHECK(mpi_errno);
    } else if (descriptor) {
        MPIDI_ZC_arrival_decline(vci, descriptor);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int keep_early(MPIDI_ZC_inbound_t * in, uint32_t sequence, const void *header,
                      size_t header_length, const void *data, size_t length, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t data_kept = descriptor ? 0 : length;
    /* CH4 reads its header in place, and it begins after ours. */
    const size_t data_at = (header_length + 15) & ~(size_t) 15;

    MPIDI_ZC_early_t *early = MPL_malloc(sizeof(*early) + data_at + data_kept, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!early, mpi_errno, MPI_ERR_OTHER, "**nomem");
    early->sequence = sequence;
    early->descriptor = descriptor;
    early->length = length;
    early->header_length = header_length;
    memcpy(early->bytes, header, header_length);
    if (data_kept) {
        memcpy(early->bytes + data_at, data, data_kept);
    }

    /* Most often the last of them: where one message is late, all others overtake it. */
    MPIDI_ZC_early_t *last = in->early;
    if (!last) {
        early->next = early;
        in->early = early;
    } else {
        MPIDI_ZC_early_t *before = last;
        if ((int32_t) (last->sequence - sequence) < 0) {
            in->early = early;
        } else {
            while ((int32_t) (before->next->sequence - sequence) < 0) {
                before = before->next;
            }
        }
        early->next = before->next;
        before->next = early;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Takes the first message that has overtaken others, which the caller then owns. */
static MPIDI_ZC_early_t *take_early(MPIDI_ZC_inbound_t * in)
{
    MPIDI_ZC_early_t *first = in->early->next;

    if (first == in->early) {
        in->early = NULL;
    } else {
        in->early->next = first->next;
    }
    return first;
}

void MPIDI_ZC_end_job_if(int mpi_errno)
{
    if (unlikely(mpi_errno != MPI_SUCCESS)) {
        char text[MPI_MAX_ERROR_STRING];
        MPIR_Err_get_string(mpi_errno, text, sizeof(text), NULL);
        MPID_Abort(NULL, mpi_errno, 1, text);
    }
}

static void check_memory(const void *allocated)
{
    if (unlikely(!allocated)) {
        int mpi_errno = MPI_SUCCESS;
        MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**nomem");
        MPIDI_ZC_end_job_if(mpi_errno);
    }
}

/* ---- senders that we have no endpoint to ---- */

/* UCX's TCP (1.13) may give a new endpoint a connection that the peer has opened. If the callback
 * that is running belongs to that connection, or if data is just being received over it, UCX loses
 * the buffer and crashes (uct_tcp_ep_replace_ep()). So a message, above all an announced one,
 * waits until UCX's callback has returned and all endpoints to its sender are made. One that was
 * announced over the connection of all other messages needs none but that: nothing but
 * announcements travels over those for bulk before this process has its own endpoint. Nor does a
 * message that is answered with bulk, from within the callback, make an endpoint for that: the answer
 * is announced over the connection of all else (MPIDI_ZC_am_want_bulk()). Where a rank comes back with a
 * port that it has had before (zc_path.h), the two sides count their connections differently, and the
 * new endpoint's may be the one that is being read. */

struct MPIDI_ZC_unconnected {
    struct MPIDI_ZC_unconnected *next;
    uint64_t sender;
    bool announced;             /* it has announced a message over the connections of bulk */
};

/* Does UCP fetch the data of the message? */
static bool comes_by_ucp(const void *descriptor)
{
    return descriptor && !MPIDI_ZC_is_offer(descriptor);
}

/* Does it fetch them over the connections of bulk, if there are any? */
static bool comes_apart(const MPIDI_ZC_am_header_t * header, const void *descriptor)
{
    return comes_by_ucp(descriptor) && !header->shares;
}

/* Are there endpoints for the answers to a message of @sender, which is of this world? Where those are
 * parked, its path has one. @lane: NULL if there is no need to wait for them. @apart: it comes_apart(). */
static bool is_connected(const MPIDI_ZC_vci_t * vci, uint64_t sender,
                         const MPIDI_ZC_lane_t * lane, bool apart)
{
    return !lane || ((lane->ep ||
                      (lane->paused && MPIDI_ZC_path_is_connected((int) sender, vci->number))) &&
                     !(apart && lane->bulk_apart && lane->bulk == 0));
}

/* Returns what it has noted. NULL: there is no memory. */
static const MPIDI_ZC_unconnected_t *note_unconnected(MPIDI_ZC_vci_t * vci, uint64_t sender,
                                                      bool announced)
{
    MPIDI_ZC_unconnected_t *one = MPL_malloc(sizeof(*one), MPL_MEM_OTHER);

    if (likely(one)) {
        one->sender = sender;
        one->announced = announced;
        one->next = vci->unconnected;
        vci->unconnected = one;
        vci->to_do = true;
    }
    return one;
}

static void await_connection(MPIDI_ZC_vci_t * vci, uint64_t sender, bool announced)
{
    check_memory(note_unconnected(vci, sender, announced));
}

void MPIDI_ZC_am_want_bulk(MPIDI_ZC_vci_t * vci, int rank)
{
    const MPIDI_ZC_unconnected_t *last = vci->unconnected;

    if (!last || last->sender != (uint64_t) rank || !last->announced) {
        (void) note_unconnected(vci, rank, true);
    }
}

void MPIDI_ZC_am_await(MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    await_connection(vci, sender, false);
}

void MPIDI_ZC_unconnected_drop(MPIDI_ZC_vci_t * vci)
{
    while (vci->unconnected) {
        MPIDI_ZC_unconnected_t *first = vci->unconnected;
        vci->unconnected = first->next;
        MPL_free(first);
    }
}

/* Handles the messages that are in order now. @lane: as for is_connected(). */
static int dispatch_early(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in,
                          const MPIDI_ZC_lane_t * lane)
{
    int mpi_errno = MPI_SUCCESS;

    while (in->early && in->early->next->sequence == in->next) {
        const MPIDI_ZC_am_header_t *header = (const void *) in->early->next->bytes;
        const bool apart = comes_apart(header, in->early->next->descriptor);
        if (unlikely(!is_connected(vci, header->sender, lane, apart))) {
            await_connection(vci, header->sender, apart);
            break;
        }
        MPIDI_ZC_early_t *early = take_early(in);
        const size_t data_at = (early->header_length + 15) & ~(size_t) 15;
        in->next++;
        mpi_errno = dispatch(vci, in, early->bytes, early->bytes + data_at, early->length,
                             early->descriptor);
        MPL_free(early);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_inbound_drop(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in)
{
    while (in->early) {
        MPIDI_ZC_early_t *early = take_early(in);
        if (comes_by_ucp(early->descriptor)) {
            ucp_am_data_release(vci->worker, early->descriptor);
        }
        MPL_free(early);
    }
}

/* Returns the order of the messages of @sender. @credit: what the packet returns, in
 * MPIDI_ZC_CREDIT_UNIT. *@lane: the lane to @sender, which may not be connected yet; NULL: it is of
 * another world. *@ready: false if messages of that have to wait (zc_sender.h). */
static MPIDI_ZC_inbound_t *inbound_of(MPIDI_ZC_vci_t * vci, uint64_t sender, uint8_t credit,
                                      MPIDI_ZC_lane_t ** lane, bool *ready)
{
    *ready = true;
    if (likely(!(sender & MPIDI_ZC_FOREIGN))) {
        *lane = MPIDI_ZC_lane_of(&MPIDI_ZC_AV(&MPIDIU_get_av(0, sender)), vci->number);
        if (unlikely(credit)) {
            MPIDI_ZC_flow_credit(*lane, credit * MPIDI_ZC_CREDIT_UNIT);
        }
        return &(*lane)->inbound;
    }
    *lane = NULL;
    MPIDI_ZC_inbound_t *in = MPIDI_ZC_sender_inbound(sender, ready);
    check_memory(in);
    return in;
}

/* Receives the header and the data of a message from UCP. */
static void receive(MPIDI_ZC_vci_t * vci, const void *header, size_t header_length, void *data,
                    size_t length, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_header_t h;
    memcpy(&h, header, sizeof(h));

    MPIDI_ZC_lane_t *lane;
    bool ready;
    MPIDI_ZC_inbound_t *in = inbound_of(vci, h.sender, 0, &lane, &ready);
    const bool early = h.sequence != in->next;
    const bool apart = comes_apart(&h, descriptor);
    if (unlikely(early || !ready) || unlikely(!is_connected(vci, h.sender, lane, apart))) {
        mpi_errno = keep_early(in, h.sequence, header, header_length, data, length, descriptor);
        MPIDI_ZC_end_job_if(mpi_errno);
        vci->stats.reordered += early;
        if (!early && lane) {
            await_connection(vci, h.sender, apart);
        }
        return;
    }
    in->next++;
    /* CH4's header holds 8-byte words; UCP promises no alignment. */
    if (likely(((uintptr_t) header & 7) == 0)) {
        mpi_errno = dispatch(vci, in, header, data, length, descriptor);
    } else {
        uint64_t aligned[32];
        void *copy = aligned;
        if (unlikely(header_length > sizeof(aligned))) {
            copy = MPL_malloc(header_length, MPL_MEM_BUFFER);
            check_memory(copy);
        }
        memcpy(copy, header, header_length);
        mpi_errno = dispatch(vci, in, copy, data, length, descriptor);
        if (unlikely(copy != aligned)) {
            MPL_free(copy);
        }
    }
    MPIDI_ZC_end_job_if(mpi_errno);
    if (unlikely(in->early)) {
        mpi_errno = dispatch_early(vci, in, lane);
        MPIDI_ZC_end_job_if(mpi_errno);
    }
}

/* Opens the connection to a process of another world, and handles its messages. */
static void connect_back_foreign(MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    MPIDI_ZC_inbound_t *in = MPIDI_ZC_foreign_connect_back(sender);

    if (in) {
        MPIDI_ZC_end_job_if(dispatch_early(vci, in, NULL));
    }
    MPIDI_ZC_foreign_answer(sender);
}

void MPIDI_ZC_connect_back(MPIDI_ZC_vci_t * vci)
{
    while (vci->unconnected) {
        MPIDI_ZC_unconnected_t *first = vci->unconnected;
        if (first->sender & MPIDI_ZC_FOREIGN) {
            const uint64_t sender = first->sender;
            vci->unconnected = first->next;
            MPL_free(first);
            connect_back_foreign(vci, sender);
            continue;
        }
        MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(&MPIDIU_get_av(0, first->sender));
        MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);

        /* If there is no memory for it, the next send reports that. */
        const bool connected = MPIDI_ZC_lane_endpoint(peer, lane, vci->number) == MPI_SUCCESS &&
            (likely(!lane->paused) ||
             MPIDI_ZC_path_connect((int) first->sender, vci->number) == MPI_SUCCESS);
        if (connected && first->announced) {
            (void) MPIDI_ZC_lane_bulk_endpoint(peer, lane, vci->number);
        }
        vci->unconnected = first->next;
        MPL_free(first);
        MPIDI_ZC_end_job_if(dispatch_early(vci, &lane->inbound, connected ? lane : NULL));
    }
    if (unlikely(MPIDI_ZC_global.paths) && vci->number == 0) {
        MPIDI_ZC_detach_progress();
    } else {
        vci->to_do = false;
    }
}

/* Receives a message in the commonest case, without CH4's callbacks: the receive at the head of
 * the posted queue matches it and has one piece of memory for it. False: it is another case, and
 * nothing has changed. */
static bool receive_at_head(int vci, const MPIDI_ZC_eager_header_t * match, const void *data,
                            MPI_Aint length)
{
#ifdef MPIDI_CH4_DIRECT_NETMOD
    MPIR_Request *rreq = MPIDI_global.per_vci[vci].posted_list;
    if (!rreq || !MPIDIG_match_request(match->src_rank, match->tag, match->context_id, rreq,
                                       MPIDIG_PT2PT_POSTED)) {
        return false;
    }

    int contiguous;
    MPI_Aint room, true_lb;
    MPIR_Datatype *datatype;
    MPL_pointer_attr_t attr;
    MPIDI_Datatype_get_info(MPIDIG_REQUEST(rreq, count), MPIDIG_REQUEST(rreq, datatype),
                            contiguous, room, datatype, true_lb);
    MPIR_GPU_query_pointer_attr(MPIDIG_REQUEST(rreq, buffer), &attr);
    if (!contiguous || length > room || attr.type == MPL_GPU_POINTER_DEV) {
        return false;
    }

    rreq = MPIDIG_rreq_dequeue(match->src_rank, match->tag, match->context_id,
                               &MPIDI_global.per_vci[vci].posted_list, MPIDIG_PT2PT_POSTED);
    if (length > 0) {
        memcpy(MPIR_get_contig_ptr(MPIDIG_REQUEST(rreq, buffer), true_lb), data, length);
    }
    rreq->status.MPI_SOURCE = match->src_rank;
    rreq->status.MPI_TAG = match->tag;
    rreq->status.MPI_ERROR = match->error_bits;
    MPIR_STATUS_SET_COUNT(rreq->status, length);
    MPIR_Datatype_release_if_not_builtin(MPIDIG_REQUEST(rreq, datatype));
    MPID_Request_complete(rreq);
    return true;
#else
    /* A wildcard receive may have a partner in a shared-memory module. */
    return false;
#endif
}

ucs_status_t MPIDI_ZC_am_handler(void *arg, const void *header, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t * param)
{
    const bool rndv = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    MPIDI_ZC_vci_t *vci = arg;
    MPIDI_ZC_offered_t offered = {.descriptor = rndv ? data : NULL,.outer = vci->offered };

    vci->offered = &offered;
    receive(vci, header, header_length, data, length, offered.descriptor);
    vci->offered = offered.outer;
    /* The netmod owns the descriptor of a rendezvous until it receives or releases the data. UCP
     * owns one that has been declined, and then completes the send at the sender. */
    return offered.descriptor ? UCS_INPROGRESS : UCS_OK;
}

/* Does for an offer what MPIDI_ZC_am_handler() does for a rendezvous of UCP. */
ucs_status_t MPIDI_ZC_offer_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_am_header_t h;

    memcpy(&h, header, sizeof(h));
    receive(arg, header, header_length, NULL, 0, MPIDI_ZC_offer_descriptor(arg, h.sender, data));
    return UCS_OK;
}

/* Receives a send without options, of which the header is the short one. */
static void receive_short(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_eager_header_t * h, char *data,
                          size_t bytes)
{
    MPIDI_ZC_lane_t *lane;
    bool ready;
    MPIDI_ZC_inbound_t *in = inbound_of(vci, h->sender, h->credit, &lane, &ready);
    if (likely(h->sequence == in->next && in->early == NULL && ready &&
               is_connected(vci, h->sender, lane, false)) &&
        receive_at_head(vci->number, h, data, bytes)) {
        in->next++;
        MPIDI_ZC_flow_consumed(vci, in, h->sender, MPIDI_ZC_message_size(bytes));
        return;
    }
    const struct {
        MPIDI_ZC_am_header_t am;
        MPIDIG_hdr_t match;
    } full = {
        .am = {
            .sequence = h->sequence,
            .sender = h->sender,
            .handler_id = MPIDIG_SEND,
            .src_vci = vci->number,
            .dst_vci = vci->number,
            .data_size = bytes,
        },
        .match = {
            .src_rank = h->src_rank,
            .tag = h->tag,
            .context_id = h->context_id,
            .error_bits = h->error_bits,
            .data_sz = bytes,
        },
    };
    receive(vci, &full, sizeof(full), data, bytes, NULL);
}

ucs_status_t MPIDI_ZC_am_eager_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param)
{
    /* A short message has its header in front of its data. UCP promises no alignment for either. */
    const bool is_short = header_length == 0;
    MPIDI_ZC_eager_header_t h;
    memcpy(&h, is_short ? data : header, sizeof(h));
    receive_short(arg, &h, is_short ? (char *) data + sizeof(h) : data,
                  is_short ? length - sizeof(h) : length);
    return UCS_OK;
}

ucs_status_t MPIDI_ZC_am_bundle_handler(void *arg, const void *header, size_t header_length,
                                        void *data, size_t length,
                                        const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_bundle_header_t bundle;
    memcpy(&bundle, data, sizeof(bundle));
    MPIDI_ZC_eager_header_t h = {
        .sender = bundle.sender,
        .sequence = bundle.sequence,
        .error_bits = MPIR_ERR_NONE,
        .credit = bundle.credit,
    };

    for (size_t at = sizeof(bundle); at < length; h.sequence++) {
        MPIDI_ZC_bundle_part_t part;
        memcpy(&part, (char *) data + at, sizeof(part));
        h.src_rank = part.src_rank;
        h.tag = part.tag;
        h.context_id = part.context_id;
        receive_short(arg, &h, (char *) data + at + sizeof(part), part.bytes);
        h.credit = 0;
        at += MPIDI_ZC_bundle_part_length(part.bytes);
    }
    return UCS_OK;
}

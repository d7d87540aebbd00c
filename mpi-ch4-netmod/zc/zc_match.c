/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpidig_pt2pt_callbacks.h"
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_match.h"
#include "zc_sender.h"
#include "zc_peer.h"

#ifndef MPIDI_CH4_DIRECT_NETMOD
#error "ch4:zc matches by itself: configure with --without-ch4-shmmods"
#endif

_Static_assert(MPIDI_ZC_ANY_SOURCE == MPI_ANY_SOURCE && MPIDI_ZC_ANY_TAG == MPI_ANY_TAG,
               "another MPICH");
_Static_assert(sizeof(MPIR_Context_id_t) == sizeof(uint16_t), "another MPICH");
_Static_assert(sizeof(MPIDI_ZC_details_t) % 8 == 0, "data after it would not be aligned");

static MPIDI_ZC_details_t *details_of(MPIDI_ZC_message_t * m)
{
    return (MPIDI_ZC_details_t *) m->data;
}

static uint64_t bytes_of(MPIDI_ZC_message_t * m)
{
    return m->kind == MPIDI_ZC_EAGER ? m->room : details_of(m)->bytes;
}

static void complete(MPIR_Request * rreq)
{
    MPIDIG_REQUEST(rreq, req->target_cmpl_cb) (rreq);
}

/* ---- memory and credit ---- */

/* Returns what the sender has paid. */
static int32_t cost_of(MPIDI_ZC_message_t * m)
{
    switch (m->kind) {
        case MPIDI_ZC_EAGER:
            return MPIDI_ZC_message_size(m->room);
        case MPIDI_ZC_ARRIVAL:
            return MPIDI_ZC_ANNOUNCED_COST;
        default:
            return details_of(m)->paid ? MPIDI_ZC_message_size(details_of(m)->bytes) : 0;
    }
}

static MPIDI_ZC_inbound_t *inbound_of(MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    if (unlikely(sender & MPIDI_ZC_FOREIGN)) {
        return MPIDI_ZC_sender_inbound_if_any(sender);
    }
    return &MPIDI_ZC_lane_of(&MPIDI_ZC_AV(&MPIDIU_get_av(0, sender)), vci->number)->inbound;
}

/* Frees @m, which is not in the queue any more. */
static void release(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m)
{
    const uint64_t sender = m->sender;
    const int32_t cost = cost_of(m);
    MPIDI_ZC_inbound_t *in = inbound_of(vci, sender);

    if (unlikely(in && in->held < (uint32_t) cost)) {
        in = NULL;              /* of another world: the entry was freed and made anew since */
    }
    MPIDI_ZC_message_free(&vci->unexpected, m);
    MPIDI_ZC_flow_release(vci, in, sender, cost);
}

/* ---- the queue ---- */

/* Raises one of the events of MPI_T about the queue. @which: 0 enqueued, 1 dequeued. */
static void raise_queue_event(int which, const MPIDI_ZC_message_t * m)
{
    int envelope[2] ATTRIBUTE((unused)) = { m->source, m->tag };
    MPIR_T_DO_EVENT(unexp_message_indices[which], MPI_T_CB_REQUIRE_MPI_RESTRICTED, envelope);
}

static void append(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m)
{
    MPIDI_ZC_unexpected_append(&vci->unexpected, m);
    vci->stats.unexpected++;
    vci->stats.unexpected_max = MPL_MAX(vci->stats.unexpected_max, vci->unexpected.length);
    raise_queue_event(0, m);
    MPIDIG_PVAR_QUEUE_LEVEL_INC(MPIDIG_PT2PT_UNEXP);
}

static void take(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m)
{
    MPIDI_ZC_unexpected_take(&vci->unexpected, m);
    raise_queue_event(1, m);
    MPIDIG_PVAR_QUEUE_LEVEL_DEC(MPIDIG_PT2PT_UNEXP);
}

/* Makes a message with the envelope of @header. NULL: there is no memory. */
static MPIDI_ZC_message_t *message_like(MPIDI_ZC_vci_t * vci, uint64_t sender,
                                        const MPIDIG_hdr_t * header, int kind, size_t room)
{
    MPIDI_ZC_message_t *m = MPIDI_ZC_message_new(&vci->unexpected, room);

    if (m) {
        m->sender = sender;
        m->source = header->src_rank;
        m->tag = header->tag;
        m->context = header->context_id;
        m->error_bits = header->error_bits;
        m->kind = kind;
    }
    return m;
}

/* Makes such a message with details. */
static MPIDI_ZC_message_t *detailed_message(MPIDI_ZC_vci_t * vci, uint64_t sender,
                                            const MPIDIG_hdr_t * header, int kind, size_t room,
                                            bool paid)
{
    MPIDI_ZC_message_t *m = message_like(vci, sender, header, kind,
                                         sizeof(MPIDI_ZC_details_t) + room);
    if (m) {
        *details_of(m) = (MPIDI_ZC_details_t) {
            .sreq = header->sreq_ptr,
            .bytes = header->data_sz,
            .flags = header->flags,
            .paid = paid,
        };
    }
    return m;
}

/* Returns CH4's header for @m. */
static MPIDIG_hdr_t header_of(MPIDI_ZC_message_t * m)
{
    MPIDIG_hdr_t header = {
        .src_rank = m->source,
        .tag = m->tag,
        .context_id = m->context,
        .error_bits = m->error_bits,
        .data_sz = bytes_of(m),
    };
    if (m->kind != MPIDI_ZC_EAGER) {
        header.sreq_ptr = details_of(m)->sreq;
        header.flags = details_of(m)->flags;
    }
    if (m->kind != MPIDI_ZC_ANNOUNCED) {
        header.flags &= MPIDIG_AM_SEND_FLAGS_SYNC;
    }
    return header;
}

/* ---- of other worlds ---- */

/* Returns the connection to the sender of a message for @rreq. NULL: it is of this world. */
static struct MPIDI_ZC_foreign *foreign_of(const MPIR_Request * rreq, uint64_t sender, int source)
{
    return likely(!(sender & MPIDI_ZC_FOREIGN)) ? NULL :
        MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(rreq->comm, source),
                         MPIDI_ZC_foreign_number_vci(sender))->foreign;
}

static void note_fetching(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m)
{
    if (unlikely(m->sender & MPIDI_ZC_FOREIGN)) {
        details_of(m)->next_fetching = NULL;
        if (vci->fetching.first) {
            details_of(vci->fetching.last)->next_fetching = m;
        } else {
            vci->fetching.first = m;
        }
        vci->fetching.last = m;
    }
}

/* Most often @m is the first, since one process answers in order. */
static void forget_fetching(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m)
{
    MPIDI_ZC_message_t *before = NULL;

    if (likely(!(m->sender & MPIDI_ZC_FOREIGN))) {
        return;
    }
    for (MPIDI_ZC_message_t * at = vci->fetching.first; at != m;
         at = details_of(at)->next_fetching) {
        before = at;
    }
    if (before) {
        details_of(before)->next_fetching = details_of(m)->next_fetching;
    } else {
        vci->fetching.first = details_of(m)->next_fetching;
    }
    if (vci->fetching.last == m) {
        vci->fetching.last = before;
    }
}

void MPIDI_ZC_match_lost(MPIDI_ZC_vci_t * vci)
{
    for (MPIDI_ZC_message_t * m = vci->fetching.first, *next; m; m = next) {
        MPIR_Request *rreq = details_of(m)->rreq;
        next = details_of(m)->next_fetching;
        if (!MPIDI_ZC_foreign_is_lost(m->sender)) {
            continue;
        }
        forget_fetching(vci, m);
        /* A message that is not matched yet is asked for when it is, in vain. */
        m->kind = MPIDI_ZC_ANNOUNCED;
        if (rreq) {
            rreq->status.MPI_ERROR = MPIDI_ZC_LOST;
            MPIDIG_REQUEST(rreq, req->status) &= ~MPIDIG_REQ_PEER_SSEND;
            MPIR_STATUS_SET_COUNT(rreq->status, 0);
            release(vci, m);
            complete(rreq);
        }
    }
}

/* Has the process of @source, which may be any, died? */
static bool source_is_lost(const MPIDI_ZC_vci_t * vci, MPIR_Comm * comm, int source)
{
    return unlikely(vci->has_dead) && source >= 0 &&
        MPIDI_ZC_foreign_is_dead(MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(comm, source),
                                                  vci->number)->foreign);
}

static void end_posted(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq)
{
    MPIR_Request **posted = &MPIDI_VCI(vci->number).posted_list;

    DL_DELETE(*posted, rreq);
    MPIDIG_index_removed(posted, MPIDIG_PT2PT_POSTED, rreq);
    MPIDIG_PVAR_QUEUE_LEVEL_DEC(MPIDIG_PT2PT_POSTED);
    MPIR_Datatype_release_if_not_builtin(MPIDIG_REQUEST(rreq, datatype));
    rreq->status.MPI_SOURCE = MPIDIG_REQUEST(rreq, u.recv.source);
    rreq->status.MPI_TAG = MPIDIG_REQUEST(rreq, u.recv.tag);
    rreq->status.MPI_ERROR = MPIDI_ZC_LOST;
    MPIR_STATUS_SET_COUNT(rreq->status, 0);
    MPID_Request_complete(rreq);
}

void MPIDI_ZC_match_end_if_lost(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq)
{
    if (source_is_lost(vci, rreq->comm, MPIDIG_REQUEST(rreq, u.recv.source))) {
        end_posted(vci, rreq);
    }
}

void MPIDI_ZC_match_end_receives(MPIDI_ZC_vci_t * vci)
{
    MPIR_Request *rreq, *next;

    DL_FOREACH_SAFE(MPIDI_VCI(vci->number).posted_list, rreq, next) {
        MPIDI_ZC_match_end_if_lost(vci, rreq);
    }
}

/* ---- a message comes ---- */

/* Receives a message that @rreq, a posted receive, has matched. */
static int receive(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                   MPIDIG_hdr_t * header, const void *data, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    const bool announced = header->flags & MPIDIG_AM_SEND_FLAGS_RTS;
    struct MPIDI_ZC_foreign *foreign = foreign_of(rreq, sender, header->src_rank);

    mpi_errno = MPIDIG_recv_matched(rreq, header, 0, vci->number);
    MPIR_ERR_CHECK(mpi_errno);
    if (unlikely(announced && foreign)) {
        MPIDI_ZC_foreign_settle(foreign);
    } else if (descriptor) {
        mpi_errno = MPIDI_ZC_arrival_expected(vci, rreq, sender, descriptor, header->data_sz);
        MPIR_ERR_CHECK(mpi_errno);
    } else if (!announced) {
        MPIDI_ZC_copy_out(rreq, (void *) data);
        complete(rreq);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Asks for the data of @m, which is FETCHING. False: there is no memory for the question. */
static bool ask(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m)
{
    const MPIDIG_send_cts_msg_t question = {
        .sreq_ptr = details_of(m)->sreq,
        .rreq_ptr = (MPIR_Request *) ((uintptr_t) m | 1),
    };
    return MPIDI_ZC_am_answer(vci, m->sender, MPIDIG_SEND_CTS, &question, sizeof(question));
}

/* Makes the entry of a message that has been announced for lack of credit and has no receive yet.
 * Asks for its data if there is budget. */
static MPIDI_ZC_message_t *announced_message(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in,
                                             uint64_t sender, const MPIDIG_hdr_t * header)
{
    const size_t bytes = header->data_sz;
    const int32_t cost = MPIDI_ZC_message_size(bytes);
    MPIDI_ZC_message_t *m;

    /* In finalize the data might arrive when it is not received any more. */
    const bool may_ask = !MPIDI_ZC_global.closing &&
        (likely(!(sender & MPIDI_ZC_FOREIGN)) || MPIDI_ZC_foreign_sender(sender));

    if (bytes < MPIDI_ZC_global.params.min_threshold && may_ask &&
        MPIDI_ZC_flow_admit(vci, in, sender, cost)) {
        m = detailed_message(vci, sender, header, MPIDI_ZC_FETCHING, bytes, true);
        if (m && ask(vci, m)) {
            note_fetching(vci, m);
            return m;
        }
        if (m) {
            MPIDI_ZC_message_free(&vci->unexpected, m);
        }
        MPIDI_ZC_flow_release(vci, in, sender, cost);
    }
    return detailed_message(vci, sender, header, MPIDI_ZC_ANNOUNCED, 0, false);
}

static int queue_message(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         const MPIDIG_hdr_t * header, const void *data, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t bytes = header->data_sz;
    MPIDI_ZC_message_t *m;

    if (descriptor) {
        m = detailed_message(vci, sender, header, MPIDI_ZC_ARRIVAL, 0, true);
    } else if (header->flags & MPIDIG_AM_SEND_FLAGS_RTS) {
        m = announced_message(vci, in, sender, header);
    } else if (header->flags == 0) {
        m = message_like(vci, sender, header, MPIDI_ZC_EAGER, bytes);
    } else {
        m = detailed_message(vci, sender, header, MPIDI_ZC_FULL, bytes, true);
    }
    MPIR_ERR_CHKANDJUMP(!m, mpi_errno, MPI_ERR_OTHER, "**nomem");

    if (m->kind == MPIDI_ZC_EAGER || m->kind == MPIDI_ZC_FULL) {
        char *to = m->kind == MPIDI_ZC_EAGER ? m->data : (char *) (details_of(m) + 1);
        if (bytes > 0) {
            memcpy(to, data, bytes);
        }
    } else if (descriptor) {
        mpi_errno = MPIDI_ZC_arrival_unexpected(vci, m, descriptor, bytes,
                                                &details_of(m)->arrival);
        MPIR_ERR_CHECK(mpi_errno);
    }
    append(vci, m);
    if (m->kind != MPIDI_ZC_FETCHING) {
        MPIDI_ZC_flow_hold(vci, in, sender, cost_of(m));
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (m) {
        MPIDI_ZC_message_free(&vci->unexpected, m);
    }
    goto fn_exit;
}

int MPIDI_ZC_match_send(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        MPIDIG_hdr_t * header, const void *data, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *rreq = MPIDIG_rreq_dequeue(header->src_rank, header->tag, header->context_id,
                                             &MPIDI_VCI(vci->number).posted_list,
                                             MPIDIG_PT2PT_POSTED);

    if (!rreq) {
        mpi_errno = queue_message(vci, in, sender, header, data, descriptor);
        MPIR_ERR_CHECK(mpi_errno);
        goto fn_exit;
    }
    if (!(header->flags & MPIDIG_AM_SEND_FLAGS_RTS)) {
        MPIDI_ZC_flow_consumed(vci, in, sender, descriptor ? MPIDI_ZC_ANNOUNCED_COST :
                               (int32_t) MPIDI_ZC_message_size(header->data_sz));
    } else {
        MPIDI_ZC_flow_short(vci, in, sender,
                            header->data_sz < MPIDI_ZC_global.params.min_threshold ?
                            (int32_t) MPIDI_ZC_message_size(header->data_sz) :
                            MPIDI_ZC_ANNOUNCED_COST);
    }
    mpi_errno = receive(vci, rreq, sender, header, data, descriptor);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_match_fetched(MPIDI_ZC_vci_t * vci, uint64_t cookie, const void *data, size_t bytes)
{
    MPIDI_ZC_message_t *m = (MPIDI_ZC_message_t *) (uintptr_t) (cookie & ~(uint64_t) 1);
    MPIDI_ZC_details_t *details = details_of(m);
    MPIR_Request *rreq = details->rreq;

    MPIR_Assert(m->kind == MPIDI_ZC_FETCHING && bytes == details->bytes);
    forget_fetching(vci, m);
    if (rreq) {
        MPIDI_ZC_copy_out(rreq, (void *) data);
        release(vci, m);
        complete(rreq);
    } else {
        m->kind = MPIDI_ZC_FULL;
        if (bytes > 0) {
            memcpy(details + 1, data, bytes);
        }
    }
    return MPI_SUCCESS;
}

/* ---- a receive comes ---- */

/* Receives @m, which is out of the queue, into @rreq, which is like a posted receive. */
static int meet(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m, MPIR_Request * rreq)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDIG_hdr_t header = header_of(m);
    struct MPIDI_ZC_foreign *foreign = foreign_of(rreq, m->sender, m->source);

    mpi_errno = MPIDIG_recv_matched(rreq, &header, 0, vci->number);
    MPIR_ERR_CHECK(mpi_errno);
    switch (m->kind) {
        case MPIDI_ZC_EAGER:
            MPIDI_ZC_copy_out(rreq, m->data);
            release(vci, m);
            complete(rreq);
            break;
        case MPIDI_ZC_FULL:
            MPIDI_ZC_copy_out(rreq, details_of(m) + 1);
            release(vci, m);
            complete(rreq);
            break;
        case MPIDI_ZC_ARRIVAL:
            {
                struct MPIDI_ZC_arrival *arrival = details_of(m)->arrival;
                release(vci, m);
                mpi_errno = MPIDI_ZC_arrival_matched(arrival, rreq);
                MPIR_ERR_CHECK(mpi_errno);
                break;
            }
        case MPIDI_ZC_ANNOUNCED:
            /* CH4 has asked for it */
            release(vci, m);
            if (unlikely(foreign)) {
                MPIDI_ZC_foreign_settle(foreign);
            }
            break;
        case MPIDI_ZC_FETCHING:
            details_of(m)->rreq = rreq;
            break;
        default:
            MPIR_Assert(0);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Receives a message in the commonest case: all of it has arrived and fits, and the receive needs
 * no more of CH4 than a complete request. False: it is another case, and nothing has changed. */
static bool receive_at_once(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m, void *buf,
                            MPI_Aint count, MPI_Datatype datatype, MPIR_Request ** req_p)
{
    int contiguous;
    MPI_Aint room, true_lb;
    MPIR_Datatype *type;
    MPL_pointer_attr_t attr;

    if (m->kind != MPIDI_ZC_EAGER || m->error_bits || *req_p) {
        return false;
    }
    MPIDI_Datatype_get_info(count, datatype, contiguous, room, type, true_lb);
    MPIR_GPU_query_pointer_attr(buf, &attr);
    if (!contiguous || m->room > (size_t) room || attr.type == MPL_GPU_POINTER_DEV) {
        return false;
    }
    MPIR_Request *rreq;
    MPIDI_CH4_REQUEST_CREATE(rreq, MPIR_REQUEST_KIND__RECV, vci->number, 1);
    if (!rreq) {
        return false;
    }
    take(vci, m);
    if (m->room > 0) {
        memcpy(MPIR_get_contig_ptr(buf, true_lb), m->data, m->room);
    }
    rreq->status.MPI_SOURCE = m->source;
    rreq->status.MPI_TAG = m->tag;
    MPIR_STATUS_SET_COUNT(rreq->status, m->room);
    MPIR_cc_set(&rreq->cc, 0);
    release(vci, m);
    *req_p = rreq;
    return true;
}

int MPIDI_ZC_match_receive(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * m, void *buf,
                           MPI_Aint count, MPI_Datatype datatype, MPIR_Comm * comm,
                           MPIR_Request ** req_p)
{
    int mpi_errno = MPI_SUCCESS;

    if (likely(receive_at_once(vci, m, buf, count, datatype, req_p))) {
        goto fn_exit;
    }
    MPIR_Request *rreq = *req_p;
    if (rreq) {
        MPIDIG_request_init(rreq, MPIR_REQUEST_KIND__RECV);
    } else {
        rreq = MPIDIG_request_create(MPIR_REQUEST_KIND__RECV, 2, vci->number, vci->number);
        MPIR_ERR_CHKANDSTMT(!rreq, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
        rreq->comm = comm;
        MPIR_Comm_add_ref(comm);
    }
    *req_p = rreq;
    MPIR_Datatype_add_ref_if_not_builtin(datatype);
    MPIDIG_prepare_recv_req(m->source, m->tag, m->context, buf, count, datatype, rreq);
    take(vci, m);
    mpi_errno = meet(vci, m, rreq);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- probes ---- */

static void fill_status(MPIDI_ZC_message_t * m, MPI_Status * status)
{
    if (status != MPI_STATUS_IGNORE) {
        status->MPI_SOURCE = m->source;
        status->MPI_TAG = m->tag;
        MPIR_STATUS_SET_CANCEL_BIT(*status, FALSE);
        MPIR_STATUS_SET_COUNT(*status, bytes_of(m));
    }
}

int MPIDI_ZC_match_probe(MPIDI_ZC_vci_t * vci, int source, int tag, MPIR_Context_id_t context,
                         MPIR_Comm * comm, int *flag, MPI_Status * status)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci->number).lock);
    MPIDI_ZC_message_t *m = MPIDI_ZC_match_find(vci, source, tag, context);
    *flag = m != NULL;
    if (m) {
        fill_status(m, status);
    } else if (source_is_lost(vci, comm, source)) {
        mpi_errno = MPIDI_ZC_LOST;
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci->number).lock);
    return mpi_errno;
}

int MPIDI_ZC_match_mprobe(MPIDI_ZC_vci_t * vci, int source, int tag, MPIR_Context_id_t context,
                          MPIR_Comm * comm, int *flag, MPIR_Request ** message,
                          MPI_Status * status)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci->number).lock);
    MPIDI_ZC_message_t *m = MPIDI_ZC_match_find(vci, source, tag, context);
    *flag = m != NULL;
    if (m) {
        MPIR_Request *req = MPIDIG_request_create(MPIR_REQUEST_KIND__MPROBE, 2, vci->number,
                                                  vci->number);
        MPIR_ERR_CHKANDSTMT(!req, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
        req->comm = comm;
        MPIR_Comm_add_ref(comm);
        fill_status(m, status);
        fill_status(m, &req->status);
        take(vci, m);
        MPIDI_ZC_AM_REQUEST(req).message = m;
        *message = req;
    } else if (source_is_lost(vci, comm, source)) {
        mpi_errno = MPIDI_ZC_LOST;
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci->number).lock);
    return mpi_errno;
  fn_fail:
    *flag = 0;
    goto fn_exit;
}

int MPIDI_ZC_match_mrecv(void *buf, MPI_Aint count, MPI_Datatype datatype, MPIR_Request * message)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(MPIDI_Request_get_vci(message));

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci->number).lock);
    MPIDI_ZC_message_t *m = MPIDI_ZC_AM_REQUEST(message).message;
    MPIDI_ZC_AM_REQUEST(message).message = NULL;
    MPIR_Datatype_add_ref_if_not_builtin(datatype);
    MPIDIG_prepare_recv_req(m->source, m->tag, m->context, buf, count, datatype, message);
    mpi_errno = meet(vci, m, message);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci->number).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_match_drop(MPIDI_ZC_vci_t * vci)
{
    while (vci->unexpected.first) {
        MPIDI_ZC_message_t *m = vci->unexpected.first;
        MPIDI_ZC_unexpected_take(&vci->unexpected, m);
        MPIDI_ZC_message_free(&vci->unexpected, m);
    }
    MPIDI_ZC_unexpected_free(&vci->unexpected);
    vci->fetching.first = vci->fetching.last = NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpidig_rma_callbacks.h"
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_foreign.h"
#include "zc_sender.h"

static void list_append(MPIDI_ZC_arrivals_t * list, MPIDI_ZC_arrival_t * a)
{
    a->list = list;
    a->next = NULL;
    a->previous = list->last;
    if (list->last) {
        list->last->next = a;
    } else {
        list->first = a;
    }
    list->last = a;
}

static void list_remove(MPIDI_ZC_arrival_t * a)
{
    if (a->previous) {
        a->previous->next = a->next;
    } else {
        a->list->first = a->next;
    }
    if (a->next) {
        a->next->previous = a->previous;
    } else {
        a->list->last = a->previous;
    }
}

static void list_move(MPIDI_ZC_arrivals_t * list, MPIDI_ZC_arrival_t * a)
{
    list_remove(a);
    list_append(list, a);
}

static MPIDI_ZC_arrival_t *arrival_new(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                                       size_t bytes)
{
    MPIDI_ZC_arrival_t *a = vci->free_arrivals;
    if (a) {
        vci->free_arrivals = a->next;
    } else {
        a = MPL_malloc(sizeof(*a), MPL_MEM_BUFFER);
        if (!a) {
            return NULL;
        }
    }
    memset(a, 0, sizeof(*a));
    a->vci = vci;
    a->rreq = rreq;
    a->sender = sender;
    a->bytes = bytes;
    list_append(&vci->arrivals, a);
    return a;
}

static void arrival_free(MPIDI_ZC_arrival_t * a)
{
    list_remove(a);
    a->next = a->vci->free_arrivals;
    a->vci->free_arrivals = a;
}

/* Returns where the data of a matched request goes if that is one contiguous piece of memory, or
 * NULL. *room: the bytes that fit there. */
static void *contiguous_target(MPIR_Request * rreq, size_t * room)
{
    MPIDIG_rreq_async_t *async = &(MPIDIG_REQUEST(rreq, req->recv_async));

    *room = 0;
    if (async->is_device_buffer) {
        return NULL;
    } else if (async->recv_type == MPIDIG_RECV_CONTIG) {
        *room = async->iov_one.iov_len;
        return async->iov_one.iov_base;
    } else if (async->recv_type == MPIDIG_RECV_DATATYPE) {
        int dt_contig;
        MPI_Aint size, true_lb;
        MPIR_Datatype *dt_ptr;
        MPIDI_Datatype_get_info(MPIDIG_REQUEST(rreq, count), MPIDIG_REQUEST(rreq, datatype),
                                dt_contig, size, dt_ptr, true_lb);
        if (dt_contig) {
            *room = size;
            return MPIR_get_contig_ptr(MPIDIG_REQUEST(rreq, buffer), true_lb);
        }
    }
    return NULL;
}

/* Returns the address by which the predictor knows a receive. */
static uint64_t user_address(MPIR_Request * rreq)
{
    size_t room;
    void *target = contiguous_target(rreq, &room);
    return (uint64_t) (uintptr_t) (target ? target : MPIDIG_REQUEST(rreq, buffer));
}

static bool is_near(uint64_t sender)
{
    return unlikely(sender & MPIDI_ZC_FOREIGN) ? MPIDI_ZC_foreign_is_near(sender) :
        MPIR_Process.node_map[sender] == MPIR_Process.node_map[MPIR_Process.rank];
}

static bool may_land(uint64_t sender, size_t bytes)
{
    return bytes >= MPIDI_ZC_global.params.landing_threshold &&
        (likely(MPIDI_ZC_global.params.intra_node) || !is_near(sender));
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static MPIDI_ZC_times_t *transfers_of(MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    return is_near(sender) ? &vci->near_transfers : &vci->far_transfers;
}

/* Will the receive get the message faster from landing memory than from its sender? */
static bool pays(const MPIDI_ZC_arrival_t * a)
{
    const bool far = a->transfers == &a->vci->far_transfers;
    return MPIDI_ZC_weigh_lands(&a->vci->weigh, a->transfers,
                                far ? MPIDI_ZC_global.params.network_rate : 0, a->bytes);
}

static void complete(MPIR_Request * rreq)
{
    MPIDIG_REQUEST(rreq, req->target_cmpl_cb) (rreq);
}

static void set_transfer_error(MPIR_Request * rreq, ucs_status_t status)
{
    rreq->status.MPI_ERROR = MPIDI_ZC_transfer_error(rreq->status.MPI_ERROR, "receive", status);
}

/* ---- delivery of what is already here ---- */

static void count_delivery(MPIDI_ZC_stats_t * stats, const zc_delivery_t * how)
{
    if (how->bytes_rebound > 0) {
        stats->messages_rebound++;
    } else {
        stats->messages_copied++;
    }
    stats->bytes_rebound += how->bytes_rebound;
    stats->bytes_copied += how->bytes_copied;
}

/* Gives the predictor the address of the receive that the message has met. */
static void settle(MPIDI_ZC_arrival_t * a)
{
    if (a->predicted) {
        zcp_settle(a->vci->predictor, a->claim, user_address(a->rreq));
        a->predicted = false;
    }
}

/* Notes that landing memory has been released. This VCI's line moves at once, since the
 * application may leave MPI now, and no event of the network wakes the landing thread for it. The
 * lines of other VCIs move when a thread that holds their lock looks. */
static void note_release(MPIDI_ZC_vci_t * vci)
{
    __atomic_fetch_add(&MPIDI_ZC_global.releases, 1, __ATOMIC_SEQ_CST);
    if (unlikely(vci->queued.first) && !MPIDI_ZC_global.closing) {
        MPIDI_ZC_land_queued(vci);
    }
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        const MPIDI_ZC_vci_t *other = &MPIDI_ZC_VCI(v);
        if (other != vci && __atomic_load_n(&other->queued.first, __ATOMIC_RELAXED)) {
            MPIDI_ZC_landing_thread_look();
            break;
        }
    }
}

/* Frees the memory that the message has landed in, or would have. */
static void release(MPIDI_ZC_arrival_t * a)
{
    if (a->landing) {
        zc_landing_release(MPIDI_ZC_global.landing, a->landing);
    }
    MPL_free(a->kept);
}

/* Delivers the landing buffer to the user buffer, as far as it fits. CH4 has noted a truncation in
 * the request's status already. */
static void deliver(MPIDI_ZC_arrival_t * a)
{
    MPIR_Request *rreq = a->rreq;
    MPIDI_ZC_vci_t *vci = a->vci;
    zc_landing_t *landing = a->landing;
    size_t room;
    void *target = contiguous_target(rreq, &room);

    settle(a);
    if (unlikely(a->status != UCS_OK)) {
        set_transfer_error(rreq, a->status);
        MPIR_STATUS_SET_COUNT(rreq->status, 0);
        release(a);
    } else if (target && likely(landing)) {
        const size_t bytes = MPL_MIN(a->bytes, room);
        const uint64_t since = now_ns();
        zc_delivery_t how;
        int err = zc_deliver(MPIDI_ZC_global.landing, landing, target, bytes, &how);
        MPIR_Assert(err == 0);
        MPIDI_ZC_weigh_delivered(&vci->weigh, a->bytes, now_ns() - since);
        count_delivery(&a->vci->stats, &how);
        MPIR_STATUS_SET_COUNT(rreq->status, bytes);
    } else {
        zc_delivery_t how = {.bytes_copied = a->bytes };
        MPIDIG_recv_copy(landing ? zc_landing_data(landing) : a->kept, rreq);
        release(a);
        count_delivery(&a->vci->stats, &how);
    }
    arrival_free(a);
    complete(rreq);
    note_release(vci);
}

/* ---- transfers ---- */

/* Could data of a one-sided operation not be fetched because their sender, which is of another world, is
 * lost? (The kernel, copying between processes of a host, finds one that has died before UCX does.) */
static bool is_lost(const MPIDI_ZC_arrival_t * a, ucs_status_t status)
{
    return a->sender & MPIDI_ZC_FOREIGN &&
        (MPIDI_ZC_is_loss(status) || MPIDI_ZC_foreign_has_ended(a->sender));
}

/* Ends the job, since data of a one-sided operation could not be fetched, though their sender lives. It
 * waits for an answer, and the request has no status that the application could ask for. */
static void end_job(ucs_status_t status)
{
    char text[MPI_MAX_ERROR_STRING];

    snprintf(text, sizeof(text), "zc: rank %d cannot fetch the data of a one-sided operation: %s",
             MPIR_Process.rank, ucs_status_string(status));
    MPID_Abort(NULL, MPI_ERR_OTHER, 1, text);
}

static void end(MPIR_Request * rreq, bool is_lost_rma)
{
    if (unlikely(is_lost_rma)) {
        MPIDIG_rma_data_lost(rreq, false);
    } else {
        complete(rreq);
    }
}

void MPIDI_ZC_arrival_fetched(MPIDI_ZC_arrival_t * a, ucs_status_t status)
{
    MPIR_Request *rreq = a->rreq;
    bool is_lost_rma = false;

    if (unlikely(a->state == MPIDI_ZC_ABANDONED)) {
        if (a->stream) {
            MPIDI_ZC_stream_free(a->stream);
        }
        arrival_free(a);
        return;
    }
    a->vci->nr_fetching--;
    a->vci->nr_landing -= a->state == MPIDI_ZC_LANDING;
    MPIDI_ZC_transfer_over();
    if (a->transfers && likely(status == UCS_OK)) {
        MPIDI_ZC_times_saw(a->transfers, a->bytes, now_ns() - a->since);
    }
    if (unlikely(status != UCS_OK && a->state != MPIDI_ZC_LANDING)) {
        if (!a->is_send && !MPIDI_ZC_global.over) {
            is_lost_rma = is_lost(a, status);
            if (!is_lost_rma) {
                end_job(status);
            }
        }
        set_transfer_error(rreq, status);
    }
    switch (a->state) {
        case MPIDI_ZC_LANDING:
            a->state = MPIDI_ZC_LANDED;
            a->status = status;
            if (a->matched) {
                deliver(a);
            }
            break;
        case MPIDI_ZC_DIRECT:
            MPIR_STATUS_SET_COUNT(rreq->status, a->bytes);
            arrival_free(a);
            end(rreq, is_lost_rma);
            break;
        case MPIDI_ZC_BOUNCING:
            if (likely(status == UCS_OK)) {
                MPIDI_ZC_stream_received(a->stream);
            } else {
                MPIR_STATUS_SET_COUNT(rreq->status, 0);
            }
            MPIDI_ZC_stream_free(a->stream);
            a->stream = NULL;
            arrival_free(a);
            end(rreq, is_lost_rma);
            break;
        default:
            MPIR_Assert(0);
    }
}

static bool is_abandoned(const MPIDI_ZC_arrival_t * a, const struct MPIDI_ZC_foreign *f)
{
    return !a->is_send && !a->channel &&
        (a->state == MPIDI_ZC_DIRECT || a->state == MPIDI_ZC_BOUNCING) && a->sender & MPIDI_ZC_FOREIGN && MPIDI_ZC_foreign_is_to_sender(f, a->sender);
}

void MPIDI_ZC_arrivals_abandon(MPIDI_ZC_vci_t * vci, const struct MPIDI_ZC_foreign *f)
{
    MPIDI_ZC_arrival_t *a = vci->arrivals.first;

    while (a) {
        if (!is_abandoned(a, f)) {
            a = a->next;
            continue;
        }
        MPIR_Request *rreq = a->rreq;
        a->state = MPIDI_ZC_ABANDONED;
        a->rreq = NULL;
        vci->nr_fetching--;
        MPIDI_ZC_transfer_over();
        MPIDIG_rma_data_lost(rreq, true);
        a = vci->arrivals.first;        /* the list may have changed */
    }
}

static void fetch_done(void *request, ucs_status_t status, size_t length, void *user_data)
{
    ucp_request_free(request);
    /* The worker, which is being destroyed, ends what it has of an arrival that has been freed. */
    if (likely(!MPIDI_ZC_global.over)) {
        MPIDI_ZC_arrival_fetched(user_data, status);
    }
}

/* Receives the data of @a by UCP. @target: where it goes; NULL: into the stream of @a. */
static ucs_status_ptr_t receive_data(MPIDI_ZC_arrival_t * a, void *descriptor, void *target)
{
    size_t units = a->bytes;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = fetch_done,
        .user_data = a,
    };

    if (unlikely(!target && a->stream)) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = MPIDI_ZC_global.stream_type;
        target = a->stream;
        units = 1;
    }
    return ucp_am_recv_data_nbx(a->vci->worker, descriptor, target, units, &param);
}

ucs_status_t MPIDI_ZC_arrival_data(MPIDI_ZC_arrival_t * a, void *descriptor)
{
    ucs_status_ptr_t request = receive_data(a, descriptor, a->target);

    if (unlikely(UCS_PTR_IS_ERR(request))) {
        MPIDI_ZC_arrival_fetched(a, UCS_PTR_STATUS(request));
        return UCS_OK;          /* UCP ends the send at the sender */
    }
    return UCS_INPROGRESS;
}

/* Starts to fetch the data of @a from the sender to @target, which has room for all of it: UCP
 * does not truncate a rendezvous. @target: NULL for the stream of @a. May free @a. */
static void fetch(MPIDI_ZC_arrival_t * a, void *descriptor, void *target)
{
    a->vci->nr_fetching++;
    a->vci->nr_landing += a->state == MPIDI_ZC_LANDING;
    MPIDI_ZC_landing_thread_wanted();
    if (a->transfers) {
        a->since = now_ns();
    }
    if (MPIDI_ZC_is_offer(descriptor)) {
        MPIDI_ZC_channel_pull(a, descriptor, target);
        return;
    }
    ucs_status_ptr_t request = receive_data(a, descriptor, target);
    if (unlikely(UCS_PTR_IS_ERR(request))) {
        MPIDI_ZC_arrival_decline(a->vci, descriptor);
        MPIDI_ZC_arrival_fetched(a, UCS_PTR_STATUS(request));
    }
}

void MPIDI_ZC_arrival_decline(MPIDI_ZC_vci_t * vci, void *descriptor)
{
    if (MPIDI_ZC_is_offer(descriptor)) {
        MPIDI_ZC_channel_decline(vci, descriptor);
        return;
    }
    /* The descriptor of a message whose callback is running belongs to UCP until it is taken
     * over. */
    MPIDI_ZC_offered_t *offered = vci->offered;
    while (offered && offered->descriptor != descriptor) {
        offered = offered->outer;
    }
    if (offered) {
        offered->descriptor = NULL;
    } else {
        ucp_am_data_release(vci->worker, descriptor);
    }
}

/* Completes @rreq with @mpi_errno, since there is no memory for what its match needs. */
static void fail(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, void *descriptor, int mpi_errno)
{
    rreq->status.MPI_ERROR = mpi_errno;
    MPIR_STATUS_SET_COUNT(rreq->status, 0);
    MPIDI_ZC_arrival_decline(vci, descriptor);
    complete(rreq);
}

/* Fetches the data of a message whose receive is known: to its place, or, if that is not one piece
 * of sufficient length, through a stream. */
static int fetch_matched(MPIDI_ZC_arrival_t * a, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    size_t room;
    void *target = contiguous_target(a->rreq, &room);

    a->matched = true;
    if (likely(target && room >= a->bytes)) {
        a->state = MPIDI_ZC_DIRECT;
        a->vci->stats.messages_direct++;
        a->vci->stats.bytes_direct += a->bytes;
    } else {
        a->state = MPIDI_ZC_BOUNCING;
        mpi_errno = MPIDI_ZC_stream_receive(a->vci, a->rreq, a->bytes, &a->stream);
        MPIR_ERR_CHECK(mpi_errno);
        target = MPIDI_ZC_stream_whole(a->stream);
        a->vci->stats.bounced++;
    }
    fetch(a, descriptor, target);

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (a->is_send) {
        MPIDI_ZC_vci_t *vci = a->vci;
        MPIR_Request *rreq = a->rreq;
        arrival_free(a);
        fail(vci, rreq, descriptor, mpi_errno);
        mpi_errno = MPI_SUCCESS;
    }
    goto fn_exit;
}

/* Fetches an unexpected message if there is landing memory for it. Otherwise it stays WAITING at
 * the sender, which is ordinary rendezvous: in line if memory may be released, or until it is
 * matched if there can never be enough. Sets *landed; if it is true, @a may have been freed. */
static void land(MPIDI_ZC_arrival_t * a, bool * landed)
{
    MPIDI_ZC_vci_t *vci = a->vci;
    void *descriptor = a->descriptor;
    /* What is released from here on is a reason to try again. */
    const unsigned releases = __atomic_load_n(&MPIDI_ZC_global.releases, __ATOMIC_SEQ_CST);

    int err = zc_landing_acquire(MPIDI_ZC_global.landing, a->bytes,
                                 (void *) (uintptr_t) a->expected, &a->landing);
    *landed = err == 0;
    if (err) {
        if (err != -ENOBUFS) {
            list_move(&vci->arrivals, a);
        } else if (a->list != &vci->queued) {
            list_move(&vci->queued, a);
        }
        if (vci->queued.first == a) {
            vci->seen_releases = releases;
        }
        return;
    }
    list_move(&vci->arrivals, a);
    a->state = MPIDI_ZC_LANDING;
    a->descriptor = NULL;
    vci->stats.landed++;
    vci->stats.landed_by_thread += MPIDI_ZC_global.in_landing_thread;
    fetch(a, descriptor, zc_landing_data(a->landing));
}

void MPIDI_ZC_land_queued(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_arrival_t *a;

    while ((a = vci->queued.first) != NULL) {
        bool landed;
        land(a, &landed);
        if (!landed && a == vci->queued.first) {
            break;
        }
    }
}

/* ---- before the worker is destroyed ---- */

/* Fetches @a, which is WAITING. False: there is no memory. */
static bool keep(MPIDI_ZC_arrival_t * a)
{
    MPIDI_ZC_vci_t *vci = a->vci;
    void *descriptor = a->descriptor, *target;

    if (zc_landing_acquire(MPIDI_ZC_global.landing, a->bytes, (void *) (uintptr_t) a->expected,
                           &a->landing) == 0) {
        target = zc_landing_data(a->landing);
    } else {
        a->landing = NULL;
        target = a->kept = MPL_malloc(a->bytes, MPL_MEM_BUFFER);
        if (!target) {
            return false;
        }
    }
    list_move(&vci->arrivals, a);
    a->state = MPIDI_ZC_LANDING;
    a->descriptor = NULL;
    vci->stats.landed++;
    vci->stats.landed_by_thread += MPIDI_ZC_global.in_landing_thread;
    fetch(a, descriptor, target);
    return true;
}

/* Returns the first arrival of @sender that is in @list and WAITING for UCP, or NULL. */
static MPIDI_ZC_arrival_t *waiting_in(const MPIDI_ZC_arrivals_t * list, uint64_t sender)
{
    MPIDI_ZC_arrival_t *a = list->first;

    while (a && !(a->sender == sender && a->state == MPIDI_ZC_WAITING &&
                  !MPIDI_ZC_is_offer(a->descriptor))) {
        a = a->next;
    }
    return a;
}

bool MPIDI_ZC_arrivals_fetch(MPIDI_ZC_vci_t * vci, uint64_t sender, bool * memory)
{
    MPIDI_ZC_arrival_t *a;

    *memory = true;
    while (*memory && ((a = waiting_in(&vci->queued, sender)) != NULL ||
                       (a = waiting_in(&vci->arrivals, sender)) != NULL)) {
        *memory = keep(a);
    }
    a = vci->arrivals.first;
    while (a && (a->sender != sender || a->state == MPIDI_ZC_LANDED)) {
        a = a->next;
    }
    return *memory && !a;
}

/* ---- events ---- */

void MPIDI_ZC_copy_out(MPIR_Request * rreq, void *data)
{
    const size_t bytes = MPIDIG_recv_in_data_sz(rreq);
    size_t room;
    void *target = contiguous_target(rreq, &room);

    if (likely(target && bytes <= room)) {
        memcpy(target, data, bytes);
        MPIR_STATUS_SET_COUNT(rreq->status, bytes);
    } else {
        MPIDIG_recv_copy(data, rreq);
    }
}

/* Fetches data for @rreq. @transfers: the times to which this one's is added, or NULL. */
static int fetch_answer(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                        void *descriptor, size_t bytes, bool is_send, MPIDI_ZC_times_t * transfers)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_ZC_arrival_t *a = arrival_new(vci, rreq, sender, bytes);
    MPIR_ERR_CHKANDJUMP(!a, mpi_errno, MPI_ERR_OTHER, "**nomem");
    a->is_send = is_send;
    a->transfers = transfers;
    mpi_errno = fetch_matched(a, descriptor);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (!a && is_send) {
        fail(vci, rreq, descriptor, mpi_errno);
        mpi_errno = MPI_SUCCESS;
    }
    goto fn_exit;
}

int MPIDI_ZC_arrival_answer(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                            void *descriptor, size_t bytes, bool is_send)
{
    return fetch_answer(vci, rreq, sender, descriptor, bytes, is_send, NULL);
}

int MPIDI_ZC_arrival_expected(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, uint64_t sender,
                              void *descriptor, size_t bytes)
{
    MPIDI_ZC_times_t *transfers = NULL;

    if (may_land(sender, bytes)) {
        transfers = transfers_of(vci, sender);
        const zcp_receive_t receive = {
            .envelope = {
                .comm = MPIDIG_REQUEST(rreq, u.recv.context_id),
                .source = MPIDIG_REQUEST(rreq, u.recv.source),
                .tag = MPIDIG_REQUEST(rreq, u.recv.tag),
                .bytes = bytes,
            },
            .addr = user_address(rreq),
        };
        zcp_receive(vci->predictor, &receive);
    }
    return fetch_answer(vci, rreq, sender, descriptor, bytes, true, transfers);
}

static void predict(MPIDI_ZC_arrival_t * a, const MPIDI_ZC_message_t * message)
{
    const zcp_envelope_t envelope = {
        .comm = message->context,
        .source = message->source,
        .tag = message->tag,
        .bytes = a->bytes,
    };
    zcp_landing_t guess;

    a->predicted = zcp_arrival(a->vci->predictor, &envelope, &guess) >= 0;
    if (a->predicted) {
        a->claim = guess.claim;
        a->expected = guess.addr;
    }
}

int MPIDI_ZC_arrival_unexpected(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_message_t * message,
                                void *descriptor, size_t bytes, MPIDI_ZC_arrival_t ** arrival)
{
    int mpi_errno = MPI_SUCCESS;
    bool landed = false;

    MPIDI_ZC_arrival_t *a = arrival_new(vci, NULL, message->sender, bytes);
    MPIR_ERR_CHKANDJUMP(!a, mpi_errno, MPI_ERR_OTHER, "**nomem");
    *arrival = a;
    a->is_send = true;
    a->state = MPIDI_ZC_WAITING;
    a->descriptor = descriptor;
    if (!may_land(message->sender, bytes)) {
        goto fn_exit;
    }
    a->transfers = transfers_of(vci, message->sender);
    predict(a, message);
    if (unlikely(MPIDI_ZC_global.closing)) {
        goto fn_exit;
    } else if (!pays(a)) {
        vci->stats.left_at_sender++;
        goto fn_exit;
    } else if (vci->queued.first == NULL) {
        land(a, &landed);
    } else {
        /* those that already stand in line go first */
        list_move(&vci->queued, a);
    }
    vci->stats.budget_refusals += !landed;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_arrival_matched(MPIDI_ZC_arrival_t * a, MPIR_Request * rreq)
{
    int mpi_errno = MPI_SUCCESS;

    a->rreq = rreq;
    a->matched = true;
    switch (a->state) {
        case MPIDI_ZC_LANDED:
            deliver(a);
            break;
        case MPIDI_ZC_WAITING:
            settle(a);
            list_move(&a->vci->arrivals, a);
            mpi_errno = fetch_matched(a, a->descriptor);
            MPIR_ERR_CHECK(mpi_errno);
            break;
        case MPIDI_ZC_LANDING:
            /* delivered when all of it is here */
            break;
        default:
            MPIR_Assert(0);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void drop_list(MPIDI_ZC_arrivals_t * list)
{
    while (list->first) {
        MPIDI_ZC_arrival_t *a = list->first;
        if (a->state == MPIDI_ZC_WAITING && !MPIDI_ZC_is_offer(a->descriptor)) {
            ucp_am_data_release(a->vci->worker, a->descriptor);
        } else {
            release(a);
        }
        if (a->stream) {
            MPIDI_ZC_stream_free(a->stream);
        }
        arrival_free(a);
    }
}

/* Frees messages that overtook one which has never arrived. */
static void drop_early(MPIDI_ZC_vci_t * vci)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_lane_t *lane = vci->lanes ? &vci->lanes[rank] :
            &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank)).lane;
        MPIDI_ZC_inbound_drop(vci, &lane->inbound);
    }
    MPIDI_ZC_sender_drop_messages(vci);
}

void MPIDI_ZC_arrivals_drop(MPIDI_ZC_vci_t * vci)
{
    drop_early(vci);
    drop_list(&vci->arrivals);
    drop_list(&vci->queued);
    while (vci->free_arrivals) {
        MPIDI_ZC_arrival_t *a = vci->free_arrivals;
        vci->free_arrivals = a->next;
        MPL_free(a);
    }
}

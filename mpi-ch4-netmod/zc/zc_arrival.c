/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_arrival.h"

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

static MPIDI_ZC_arrival_t *arrival_new(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, size_t bytes)
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

/* Where the data of a matched request goes if it is one contiguous piece, or
 * NULL; *room: how many bytes fit there. */
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

/* The address by which the predictor knows a receive. */
static uint64_t user_address(MPIR_Request * rreq)
{
    size_t room;
    void *target = contiguous_target(rreq, &room);
    return (uint64_t) (uintptr_t) (target ? target : MPIDIG_REQUEST(rreq, buffer));
}

static zcp_envelope_t envelope_of(MPIR_Request * rreq, size_t bytes)
{
    return (zcp_envelope_t) {
        .comm = MPIDIG_REQUEST(rreq, u.recv.context_id),
        .source = MPIDIG_REQUEST(rreq, u.recv.source),
        .tag = MPIDIG_REQUEST(rreq, u.recv.tag),
        .bytes = bytes,
    };
}

static void complete(MPIR_Request * rreq)
{
    MPIDIG_REQUEST(rreq, req->target_cmpl_cb) (rreq);
}

static void set_transfer_error(MPIR_Request * rreq, ucs_status_t status)
{
    rreq->status.MPI_ERROR =
        MPIR_Err_create_code(rreq->status.MPI_ERROR, MPIR_ERR_RECOVERABLE, __func__, __LINE__,
                             MPI_ERR_OTHER, "**zc_ucx", "**zc_ucx %s %s", "receive",
                             ucs_status_string(status));
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

/* The message has met its receive: the predictor learns where. */
static void settle(MPIDI_ZC_arrival_t * a)
{
    if (a->predicted) {
        zcp_settle(a->vci->predictor, a->claim, user_address(a->rreq));
        a->predicted = false;
    }
}

/* Landing buffer to user buffer. Truncation has already been noted in the
 * request's status by CH4; only what fits is delivered. */
static void deliver(MPIDI_ZC_arrival_t * a)
{
    MPIR_Request *rreq = a->rreq;
    zc_landing_t *landing = a->landing;
    size_t room;
    void *target = contiguous_target(rreq, &room);

    settle(a);
    if (unlikely(a->status != UCS_OK)) {
        set_transfer_error(rreq, a->status);
        MPIR_STATUS_SET_COUNT(rreq->status, 0);
        zc_landing_release(MPIDI_ZC_global.landing, landing);
    } else if (target) {
        const size_t bytes = MPL_MIN(a->bytes, room);
        zc_delivery_t how;
        int err = zc_deliver(MPIDI_ZC_global.landing, landing, target, bytes, &how);
        MPIR_Assert(err == 0);
        count_delivery(&a->vci->stats, &how);
        MPIR_STATUS_SET_COUNT(rreq->status, bytes);
    } else {
        zc_delivery_t how = {.bytes_copied = a->bytes };
        MPIDIG_recv_copy(zc_landing_data(landing), rreq);
        zc_landing_release(MPIDI_ZC_global.landing, landing);
        count_delivery(&a->vci->stats, &how);
    }
    __atomic_fetch_add(&MPIDI_ZC_global.releases, 1, __ATOMIC_SEQ_CST);
    arrival_free(a);
    complete(rreq);
}

/* ---- transfers ---- */

static void fetch_done(void *request, ucs_status_t status, size_t length, void *user_data)
{
    MPIDI_ZC_arrival_t *a = user_data;
    MPIR_Request *rreq = a->rreq;

    a->vci->nr_fetching--;
    a->vci->nr_landing -= a->state == MPIDI_ZC_LANDING;
    MPIDI_ZC_transfer_over(a->vci);
    ucp_request_free(request);
    if (unlikely(status != UCS_OK && a->state != MPIDI_ZC_LANDING)) {
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
            complete(rreq);
            break;
        case MPIDI_ZC_BOUNCING:
            MPIDIG_recv_copy(a->buffer, rreq);
            MPL_free(a->buffer);
            arrival_free(a);
            complete(rreq);
            break;
        default:
            MPIR_Assert(0);
    }
}

/* Starts pulling the data of @a from the sender into @target, which has room
 * for all of it: UCP does not truncate a rendezvous. @a may be gone on return. */
static int fetch(MPIDI_ZC_arrival_t * a, void *descriptor, void *target)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = fetch_done,
        .user_data = a,
    };
    a->vci->nr_fetching++;
    a->vci->nr_landing += a->state == MPIDI_ZC_LANDING;
    MPIDI_ZC_landing_thread_wanted();
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(a->vci->worker, descriptor, target,
                                                    a->bytes, &param);
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_recv_data_nbx");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The receive is known: the data goes where it belongs, or, if that is not one
 * piece of sufficient length, through a buffer of ours. */
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
        a->buffer = target = MPL_malloc(a->bytes, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(!target, mpi_errno, MPI_ERR_OTHER, "**nomem");
        a->vci->stats.bounced++;
    }
    mpi_errno = fetch(a, descriptor, target);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Takes an unexpected message off the wire if there is landing memory for it.
 * Else it stays WAITING at the sender, which is ordinary rendezvous: in line if
 * memory may come free, for good if there can never be enough.
 * *landed: set; @a may be gone if so. */
static int land(MPIDI_ZC_arrival_t * a, bool * landed)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_vci_t *vci = a->vci;
    void *descriptor = a->descriptor;
    /* What comes free from here on is a reason to try again. */
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
        goto fn_exit;
    }
    list_move(&vci->arrivals, a);
    a->state = MPIDI_ZC_LANDING;
    a->descriptor = NULL;
    vci->stats.landed++;
    vci->stats.landed_by_thread += MPIDI_ZC_global.in_landing_thread;
    mpi_errno = fetch(a, descriptor, zc_landing_data(a->landing));
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_land_queued(MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_arrival_t *a;

    while ((a = vci->queued.first) != NULL) {
        bool landed;
        mpi_errno = land(a, &landed);
        MPIR_ERR_CHECK(mpi_errno);
        if (!landed && a == vci->queued.first) {
            break;
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- events ---- */

/* Eager data to the buffer of its receive. */
static void copy_out(MPIR_Request * rreq, void *data)
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

int MPIDI_ZC_hold(MPIR_Request * rreq, const void *data, size_t bytes)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(rreq);

    if (MPIDIG_recv_initialized(rreq)) {
        copy_out(rreq, (void *) data);
        complete(rreq);
    } else {
        am->held = am->held_inline;
        if (bytes > sizeof(am->held_inline)) {
            am->held = MPL_malloc(bytes, MPL_MEM_BUFFER);
            MPIR_ERR_CHKANDJUMP(!am->held, mpi_errno, MPI_ERR_OTHER, "**nomem");
        }
        if (bytes > 0) {
            memcpy(am->held, data, bytes);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void free_held(MPIDI_ZC_am_request_t * am)
{
    if (am->held != am->held_inline) {
        MPL_free(am->held);
    }
    am->held = NULL;
}

static void deliver_held(MPIR_Request * rreq)
{
    copy_out(rreq, MPIDI_ZC_AM_REQUEST(rreq).held);
    free_held(&MPIDI_ZC_AM_REQUEST(rreq));
    complete(rreq);
}

int MPIDI_ZC_arrival_rndv(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, void *descriptor,
                          size_t bytes, bool may_land)
{
    int mpi_errno = MPI_SUCCESS;
    const bool large = may_land && bytes >= MPIDI_ZC_global.params.landing_threshold;

    MPIDI_ZC_arrival_t *a = arrival_new(vci, rreq, bytes);
    MPIR_ERR_CHKANDJUMP(!a, mpi_errno, MPI_ERR_OTHER, "**nomem");

    if (MPIDIG_recv_initialized(rreq)) {
        if (large) {
            zcp_receive_t receive = {
                .envelope = envelope_of(rreq, bytes),
                .addr = user_address(rreq),
            };
            zcp_receive(vci->predictor, &receive);
        }
        mpi_errno = fetch_matched(a, descriptor);
        MPIR_ERR_CHECK(mpi_errno);
    } else {
        MPIDI_ZC_AM_REQUEST(rreq).arrival = a;
        a->state = MPIDI_ZC_WAITING;
        a->descriptor = descriptor;
        if (large) {
            zcp_landing_t guess;
            const zcp_envelope_t envelope = envelope_of(rreq, bytes);
            int known = zcp_arrival(vci->predictor, &envelope, &guess);
            a->predicted = known >= 0;
            if (a->predicted) {
                a->claim = guess.claim;
                a->expected = guess.addr;
            }
            bool landed = false;
            if (unlikely(MPIDI_ZC_global.closing)) {
                goto fn_exit;
            } else if (vci->queued.first == NULL) {
                mpi_errno = land(a, &landed);
                MPIR_ERR_CHECK(mpi_errno);
            } else {
                /* those that already stand in line go first */
                list_move(&vci->queued, a);
            }
            vci->stats.budget_refusals += !landed;
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_arrival_matched(MPIR_Request * rreq)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_arrival_t *a = MPIDI_ZC_AM_REQUEST(rreq).arrival;

    if (likely(!a)) {
        deliver_held(rreq);
        goto fn_exit;
    }
    MPIDI_ZC_AM_REQUEST(rreq).arrival = NULL;
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
        if (a->state == MPIDI_ZC_WAITING) {
            ucp_am_data_release(a->vci->worker, a->descriptor);
        } else if (a->landing) {
            zc_landing_release(MPIDI_ZC_global.landing, a->landing);
        }
        MPL_free(a->buffer);
        arrival_free(a);
    }
}

void MPIDI_ZC_arrivals_drop(MPIDI_ZC_vci_t * vci)
{
    MPIR_Request *unreceived;

    DL_FOREACH(MPIDI_VCI(vci->number).unexp_list, unreceived) {
        MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(unreceived);
        if (!am->arrival && am->held) {
            free_held(am);
        }
    }
    drop_list(&vci->arrivals);
    drop_list(&vci->queued);
    while (vci->free_arrivals) {
        MPIDI_ZC_arrival_t *a = vci->free_arrivals;
        vci->free_arrivals = a->next;
        MPL_free(a);
    }
}

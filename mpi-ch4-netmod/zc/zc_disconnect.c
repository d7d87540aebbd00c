/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connection.h"
#include "zc_foreign.h"

/* MPI_Finalize waits so long for its peers: one may have died, or compute without a landing
 * thread. */
#define FINALIZE_SECONDS 10

static MPIDI_ZC_foreign_t *broken;      /* CLOSE_BROKEN */
static MPIDI_ZC_foreign_t *unclosed;    /* CLOSE_UNCLOSED */
static int nr_closing;          /* from FLUSHING, but not UNCLOSED */

bool MPIDI_ZC_disconnect_may_send(const MPIDI_ZC_foreign_t * f)
{
    return f->disconnect.fin == MPIDI_ZC_FIN_NONE && !f->failed;
}

bool MPIDI_ZC_disconnect_peer_has_finished(const MPIDI_ZC_foreign_t * f)
{
    return f->disconnect.peer != MPIDI_ZC_PEER_OPEN;
}

/* ---- closing the endpoints ---- */

static void free_connection(MPIDI_ZC_foreign_t * f)
{
    MPL_free(f->upid);
    MPL_free(f);
}

/* An endpoint may report its failure until it is closed. */
static void endpoint_closed(MPIDI_ZC_foreign_t * f)
{
    if (--f->disconnect.nr_endpoints == 0) {
        free_connection(f);
        nr_closing--;
    }
}

static void close_done(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    endpoint_closed(user_data);
}

/* UCX may report the failure of an endpoint that it does not close: @f stays, and nothing waits for
 * it. */
static void set_unclosed(MPIDI_ZC_foreign_t * f)
{
    if (f->disconnect.close != MPIDI_ZC_CLOSE_UNCLOSED) {
        f->disconnect.close = MPIDI_ZC_CLOSE_UNCLOSED;
        f->disconnect.next_unclosed = unclosed;
        unclosed = f;
        nr_closing--;
    }
}

static void close_endpoint(MPIDI_ZC_foreign_t * f, ucp_ep_h ep, uint32_t flags)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = flags,
        .cb.send = close_done,
        .user_data = f,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);
    if (!request) {
        endpoint_closed(f);
    } else if (UCS_PTR_IS_ERR(request)) {
        set_unclosed(f);
    }
}

static void close_net_endpoint(MPIDI_ZC_foreign_t * f)
{
    if (f->disconnect.close != MPIDI_ZC_CLOSE_UNCLOSED) {
        f->disconnect.close = MPIDI_ZC_CLOSE_CLOSING;
    }
    close_endpoint(f, f->net_ep, UCP_EP_CLOSE_FLAG_FORCE);
}

/* UCX 1.13 completes what waits on an endpoint in the middle of dealing with its failure, and then
 * goes on with it. An endpoint that was closed in such a callback would be gone by then. */
static void set_broken(MPIDI_ZC_foreign_t * f)
{
    if (f->disconnect.close != MPIDI_ZC_CLOSE_UNCLOSED) {
        f->disconnect.close = MPIDI_ZC_CLOSE_BROKEN;
    }
    f->next = broken;
    broken = f;
}

void MPIDI_ZC_disconnect_progress(void)
{
    MPIDI_ZC_sender_free_gone();
    while (broken) {
        MPIDI_ZC_foreign_t *f = broken;
        broken = f->next;
        close_net_endpoint(f);
    }
}

static void flush_done(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    if (status == UCS_OK) {
        close_net_endpoint(user_data);
    } else {
        set_broken(user_data);
    }
}

/* Flushes the endpoint, which is closed by force afterwards. One that is closed gently stays with
 * UCX for ever, in case the peer still uses it. */
static void flush_net_endpoint(MPIDI_ZC_foreign_t * f)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = flush_done,
        .user_data = f,
    };
    if (f->failed) {
        set_broken(f);
        return;
    }
    ucs_status_ptr_t request = ucp_ep_flush_nbx(f->net_ep, &param);
    if (!request) {
        close_net_endpoint(f);
    } else if (UCS_PTR_IS_ERR(request)) {
        set_broken(f);
    }
}

static void begin_close(MPIDI_ZC_foreign_t * f, int nr_endpoints)
{
    f->disconnect.close = MPIDI_ZC_CLOSE_FLUSHING;
    f->disconnect.nr_endpoints = nr_endpoints;
    nr_closing++;
}

void MPIDI_ZC_disconnect_unused(MPIDI_ZC_foreign_t * f)
{
    if (f->net_ep) {
        begin_close(f, 1);
        set_broken(f);
    } else {
        free_connection(f);
    }
}

static bool is_over(const MPIDI_ZC_foreign_t * f)
{
    const MPIDI_ZC_disconnect_t *d = &f->disconnect;
    const bool is_given_up = f->avtid < 0 && d->fin != MPIDI_ZC_FIN_NONE;
    const bool both_closed = d->fin == MPIDI_ZC_FIN_ACKED && d->peer == MPIDI_ZC_PEER_CLOSED;

    return is_given_up && d->nr_sending == 0 && (both_closed || f->failed);
}

void MPIDI_ZC_disconnect_close_if_over(MPIDI_ZC_foreign_t * f)
{
    if (MPIDI_ZC_global.over || f->disconnect.close != MPIDI_ZC_CLOSE_OPEN || !is_over(f)) {
        return;
    }
    for (MPIDI_ZC_foreign_t ** at = &MPIDI_ZC_connections; *at; at = &(*at)->next) {
        if (*at == f) {
            *at = f->next;
            break;
        }
    }
    if (f->failed && MPIDI_ZC_foreign_process_is_lost(f->id)) {
        MPIDI_ZC_sender_remove_all_of(f->id);
    }
    MPIDI_ZC_shm_upgrade_end(f);
    begin_close(f, f->shm_ep ? 2 : 1);
    if (f->shm_ep) {
        close_endpoint(f, f->shm_ep, 0);
    }
    flush_net_endpoint(f);
}

/* ---- sending ---- */

static void message_sent(void *request, ucs_status_t status, void *user_data)
{
    MPIDI_ZC_foreign_t *f = user_data;

    ucp_request_free(request);
    f->disconnect.nr_sending--;
    f->failed = f->failed || status != UCS_OK;
    MPIDI_ZC_foreign_settle(f);
    MPIDI_ZC_disconnect_close_if_over(f);
}

static void send_message(MPIDI_ZC_foreign_t * f, ucp_ep_h ep, MPIDI_ZC_fin_kind_t kind,
                         bool has_shm)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = message_sent,
        .user_data = f,
    };
    MPIDI_ZC_disconnect_t *d = &f->disconnect;
    MPIDI_ZC_fin_message_t *message = &d->messages[kind];

    *message = (MPIDI_ZC_fin_message_t) {
        .from = MPIDI_ZC_upid_self()->id,
        .number = f->self,
        .acked = d->other,
        .kind = kind,
        .has_shm = has_shm,
    };
    if (!f->failed) {
        d->nr_sending++;        /* before the endpoint fails in sending it */
        ucs_status_ptr_t request = ucp_am_send_nbx(ep, MPIDI_ZC_AM_FIN, NULL, 0, message,
                                                   sizeof(*message), &param);
        if (!UCS_PTR_IS_PTR(request)) {
            d->nr_sending--;
            f->failed = f->failed || UCS_PTR_IS_ERR(request);
        }
    }
}

/* Sends the FINs. A process that finalizes may send a second one, to a peer that has not
 * answered. */
static void send_fin(MPIDI_ZC_foreign_t * f, bool finalizes)
{
    const bool is_first = f->disconnect.fin == MPIDI_ZC_FIN_NONE;
    const bool by_shm = f->shm_ep && is_first;

    if (is_first) {
        f->disconnect.fin = MPIDI_ZC_FIN_SENT;
    }
    send_message(f, f->net_ep, finalizes ? MPIDI_ZC_FIN_FINALIZE : MPIDI_ZC_FIN_PLAIN, by_shm);
    if (by_shm) {
        send_message(f, f->shm_ep, MPIDI_ZC_FIN_SHM, true);
    }
}

void MPIDI_ZC_disconnect(MPIDI_ZC_foreign_t * f)
{
    if (f->disconnect.fin == MPIDI_ZC_FIN_NONE) {
        send_fin(f, false);
    }
    MPIDI_ZC_disconnect_close_if_over(f);
}

/* ---- receiving ---- */

/* All FINs of the peer have arrived. */
static void peer_closed(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_sender_remove(f->disconnect.other);
    f->disconnect.peer = MPIDI_ZC_PEER_CLOSED;
    send_message(f, f->net_ep, MPIDI_ZC_FIN_ACK, false);
    MPIDI_ZC_disconnect_close_if_over(f);
}

/* Returns the connection that @message is about. There may be several to a process, where CH4 gave
 * the earlier one up late on one side (zc_foreign.c). */
static MPIDI_ZC_foreign_t *connection_of(const MPIDI_ZC_fin_message_t * message)
{
    MPIDI_ZC_foreign_t *oldest = NULL;

    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        const bool has_finished = MPIDI_ZC_disconnect_peer_has_finished(f);
        if (f->id != message->from) {
            continue;
        }
        if (message->kind == MPIDI_ZC_FIN_ACK ? f->self == message->acked :
            has_finished && f->disconnect.other == message->number) {
            return f;
        }
        if (!has_finished) {
            oldest = f;         /* the newest is first */
        }
    }
    return message->kind == MPIDI_ZC_FIN_PLAIN ||
        message->kind == MPIDI_ZC_FIN_FINALIZE ? oldest : NULL;
}

static void fin_over_network(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_fin_message_t * message)
{
    if (!f) {
        /* The peer gave the connection up before we connected to it. */
        MPIDI_ZC_sender_remove(message->number);
        return;
    }
    if (message->kind == MPIDI_ZC_FIN_FINALIZE && f->disconnect.fin == MPIDI_ZC_FIN_NONE) {
        send_fin(f, false);
    }
    if (f->disconnect.peer == MPIDI_ZC_PEER_OPEN) {
        f->disconnect.peer = MPIDI_ZC_PEER_FIN_NET;
        f->disconnect.other = message->number;
        if (!message->has_shm || MPIDI_ZC_sender_has_shm_fin(message->number)) {
            peer_closed(f);
        }
    }
}

static void fin_over_shm(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_fin_message_t * message)
{
    MPIDI_ZC_sender_note_shm_fin(message->number);
    if (f && f->disconnect.peer == MPIDI_ZC_PEER_FIN_NET) {
        peer_closed(f);
    }
}

ucs_status_t MPIDI_ZC_fin_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_fin_message_t message;

    if (length != sizeof(message)) {
        return UCS_OK;
    }
    memcpy(&message, data, sizeof(message));
    MPIDI_ZC_foreign_t *f = connection_of(&message);
    switch (message.kind) {
        case MPIDI_ZC_FIN_PLAIN:
        case MPIDI_ZC_FIN_FINALIZE:
            fin_over_network(f, &message);
            break;
        case MPIDI_ZC_FIN_SHM:
            fin_over_shm(f, &message);
            break;
        case MPIDI_ZC_FIN_ACK:
            if (f) {
                f->disconnect.fin = MPIDI_ZC_FIN_ACKED;
                MPIDI_ZC_disconnect_close_if_over(f);
            }
            break;
        default:
            break;
    }
    return UCS_OK;
}

/* ---- the end of all ---- */

void MPIDI_ZC_disconnect_all(void)
{
    MPL_time_t start, now;
    double waited = 0;

    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections, *next; f; f = next) {
        next = f->next;
        if (f->disconnect.peer != MPIDI_ZC_PEER_CLOSED) {
            send_fin(f, true);
        }
        f->avtid = f->lpid = -1;
        MPIDI_ZC_disconnect(f);
    }
    MPL_wtime(&start);
    while ((MPIDI_ZC_connections || nr_closing > 0) && waited < FINALIZE_SECONDS) {
        MPIDI_ZC_disconnect_progress();
        MPIDI_ZC_progress_all();
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
}

static void free_list(MPIDI_ZC_foreign_t ** list)
{
    while (*list) {
        MPIDI_ZC_foreign_t *f = *list;
        *list = f->next;
        if (f->disconnect.close != MPIDI_ZC_CLOSE_UNCLOSED) {
            free_connection(f);
        }
    }
}

void MPIDI_ZC_disconnect_free(void)
{
    free_list(&MPIDI_ZC_connections);
    free_list(&broken);
    while (unclosed) {
        MPIDI_ZC_foreign_t *f = unclosed;
        unclosed = f->disconnect.next_unclosed;
        free_connection(f);
    }
    nr_closing = 0;
}

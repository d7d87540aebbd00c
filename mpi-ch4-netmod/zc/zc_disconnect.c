/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_channel.h"
#include "zc_connection.h"
#include "zc_foreign.h"
#include "zc_foreign_path.h"
#include "zc_path.h"
#include "zc_path_message.h"

/* MPI_Finalize waits so long for its peers: one may have died, or compute without a landing
 * thread. */
#define FINALIZE_SECONDS 10

/* By VCI. */
static struct {
    MPIDI_ZC_foreign_t *broken; /* CLOSE_BROKEN */
    MPIDI_ZC_foreign_t *unclosed;       /* CLOSE_UNCLOSED */
    int nr_closing;             /* from FLUSHING, but not UNCLOSED */
} own[MPIDI_CH4_MAX_VCIS];

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
    MPIDI_ZC_path_remove(f->path);
    MPL_free(f->host);
    MPL_free(f->hello);
    MPL_free(f->address);
    MPL_free(f->upid);
    MPL_free(f);
}

/* An endpoint may report its failure until it is closed. */
static void endpoint_closed(MPIDI_ZC_foreign_t * f)
{
    if (--f->disconnect.nr_endpoints == 0) {
        own[f->vci].nr_closing--;
        free_connection(f);
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
        f->disconnect.next_unclosed = own[f->vci].unclosed;
        own[f->vci].unclosed = f;
        own[f->vci].nr_closing--;
    }
}

static void close_endpoint(MPIDI_ZC_foreign_t * f, ucp_ep_h ep)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
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

/* May free @f. */
static void close_endpoints(MPIDI_ZC_foreign_t * f)
{
    const ucp_ep_h net_ep = f->net_ep, shm_ep = f->shm_ep;

    f->disconnect.close = MPIDI_ZC_CLOSE_CLOSING;
    if (shm_ep) {
        close_endpoint(f, shm_ep);
    }
    close_endpoint(f, net_ep);
}

/* UCX 1.13 completes what waits on an endpoint in the middle of dealing with its failure, and then
 * goes on with it. An endpoint that was closed in such a callback would be gone by then. Nor is a
 * connection freed at once that has failed before it had an endpoint: what waits for it may be being
 * ended (MPIDI_ZC_foreign_settle()). */
static void set_broken(MPIDI_ZC_foreign_t * f)
{
    f->disconnect.close = MPIDI_ZC_CLOSE_BROKEN;
    f->next = own[f->vci].broken;
    own[f->vci].broken = f;
}

bool MPIDI_ZC_disconnect_is_closing(int vci)
{
    return own[vci].nr_closing > 0 || own[vci].broken;
}

void MPIDI_ZC_disconnect_progress(int vci)
{
    MPIDI_ZC_sender_free_gone(vci);
    while (own[vci].broken) {
        MPIDI_ZC_foreign_t *f = own[vci].broken;
        own[vci].broken = f->next;
        if (f->net_ep) {
            close_endpoints(f);
        } else {
            free_connection(f);
        }
    }
}

static void flush_endpoint(MPIDI_ZC_foreign_t * f, ucp_ep_h ep);

static void flushed(MPIDI_ZC_foreign_t * f, ucs_status_t status, bool net)
{
    if (status != UCS_OK) {
        set_broken(f);
    } else if (net) {
        close_endpoints(f);
    } else {
        flush_endpoint(f, f->net_ep);
    }
}

static void net_flushed(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    flushed(user_data, status, true);
}

static void shm_flushed(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    flushed(user_data, status, false);
}

static void flush_endpoint(MPIDI_ZC_foreign_t * f, ucp_ep_h ep)
{
    const bool net = ep == f->net_ep;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = net ? net_flushed : shm_flushed,
        .user_data = f,
    };
    ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        flushed(f, UCS_PTR_STATUS(request), net);
    }
}

/* Flushes the endpoints, which are closed by force afterwards. One that is closed gently stays with
 * UCX for ever, in case the peer still uses it. */
static void begin_close(MPIDI_ZC_foreign_t * f)
{
    if (!f->net_ep) {
        set_broken(f);          /* it has gone with the worker: zc_foreign_path.h */
        return;
    }
    f->disconnect.close = MPIDI_ZC_CLOSE_FLUSHING;
    f->disconnect.nr_endpoints = f->shm_ep ? 2 : 1;
    own[f->vci].nr_closing++;
    if (f->failed) {
        set_broken(f);
    } else {
        flush_endpoint(f, f->shm_ep ? f->shm_ep : f->net_ep);
    }
}

/* Frees @f, which was never open. */
static void drop(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_shm_upgrade_end(f);
    MPIDI_ZC_foreign_remove(f);
    free_connection(f);
}

/* Takes @f, which has failed, out of all tables, with what the peer has sent over it and, if there is
 * no other connection to that process, with all that it has sent. The caller frees @f. */
static void remove_failed(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_sender_remove(f->other);
    if (f->process->connections == f && !f->next_of_process) {
        MPIDI_ZC_sender_remove_all_of(f->process);
    }
    MPIDI_ZC_channel_end(f->channel);
    MPIDI_ZC_shm_upgrade_end(f);
    MPIDI_ZC_foreign_remove(f);
}

bool MPIDI_ZC_disconnect_is_done(const MPIDI_ZC_foreign_t * f)
{
    return f->disconnect.fin == MPIDI_ZC_FIN_ACKED && f->disconnect.peer == MPIDI_ZC_PEER_CLOSED;
}

static bool is_over(const MPIDI_ZC_foreign_t * f)
{
    const MPIDI_ZC_disconnect_t *d = &f->disconnect;
    const bool is_given_up = f->avtid < 0 && d->fin != MPIDI_ZC_FIN_NONE;

    return is_given_up && d->nr_sending == 0 && (MPIDI_ZC_disconnect_is_done(f) || f->failed);
}

void MPIDI_ZC_disconnect_close_if_over(MPIDI_ZC_foreign_t * f)
{
    if (MPIDI_ZC_global.over || f->disconnect.close != MPIDI_ZC_CLOSE_OPEN || !is_over(f)) {
        return;
    }
    if (f->failed) {
        remove_failed(f);
    } else {
        MPIDI_ZC_channel_end(f->channel);
        MPIDI_ZC_shm_upgrade_end(f);
        MPIDI_ZC_foreign_remove(f);
    }
    begin_close(f);
}

/* ---- sending ---- */

static void message_sent(void *request, ucs_status_t status, void *user_data)
{
    MPIDI_ZC_foreign_t *f = user_data;

    ucp_request_free(request);
    f->disconnect.nr_sending--;
    if (status != UCS_OK) {
        MPIDI_ZC_foreign_set_failed(f, status);
    }
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
        .number = f->link.number,
        .acked = f->other,
        .kind = kind,
        .has_shm = has_shm,
    };
    if (!f->failed) {
        d->nr_sending++;        /* before the endpoint fails in sending it */
        ucs_status_ptr_t request = ucp_am_send_nbx(ep, MPIDI_ZC_AM_FIN, NULL, 0, message,
                                                   sizeof(*message), &param);
        if (!UCS_PTR_IS_PTR(request)) {
            d->nr_sending--;
            if (UCS_PTR_IS_ERR(request)) {
                MPIDI_ZC_foreign_set_failed(f, UCS_PTR_STATUS(request));
            }
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
    if (!f->net_ep && f->failed) {
        remove_failed(f);
        set_broken(f);
        return;
    }
    if (!f->net_ep && !MPIDI_ZC_disconnect_is_done(f) &&
        (f->path < 0 || (MPIDI_ZC_foreign_open(f) != MPI_SUCCESS && !f->net_ep))) {
        /* If the peer has opened it, its FIN will come. */
        if (f->other == 0) {
            drop(f);
        }
        return;
    }
    f->disconnect.postponed = !f->failed && !MPIDI_ZC_path_is_open(f->path);
    if (f->disconnect.postponed) {
        MPIDI_ZC_foreign_path_postpone();
        return;
    }
    if (f->disconnect.fin == MPIDI_ZC_FIN_NONE) {
        send_fin(f, false);
    }
    MPIDI_ZC_disconnect_close_if_over(f);
}

/* ---- receiving ---- */

/* All FINs of the peer have arrived. */
static void peer_closed(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_sender_remove(f->other);
    f->disconnect.peer = MPIDI_ZC_PEER_CLOSED;
    send_message(f, f->net_ep, MPIDI_ZC_FIN_ACK, false);
    MPIDI_ZC_disconnect_close_if_over(f);
}

/* May something that the peer has sent before its FIN have to be handled yet: on the path, or on its way by
 * a channel, which the peer closes when the FIN is answered? */
static bool is_early(const MPIDI_ZC_foreign_t * f)
{
    return MPIDI_ZC_channel_pulls(f->channel) ||
        (f->path >= 0 && (!MPIDI_ZC_path_is_open(f->path) || MPIDI_ZC_path_messages_wait()));
}

void MPIDI_ZC_disconnect_answer(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_disconnect_t *d = &f->disconnect;

    if (!d->unanswered) {
        return;
    }
    if (is_early(f)) {
        MPIDI_ZC_foreign_path_postpone();
        return;
    }
    d->unanswered = false;
    if (!f->net_ep && MPIDI_ZC_foreign_open(f) != MPI_SUCCESS && !f->net_ep) {
        /* The peer notices when this process ends. */
        MPIDI_ZC_sender_remove(f->other);
        if (f->avtid < 0) {
            drop(f);
        }
        return;
    }
    if ((f->avtid < 0 || d->finalizes) && d->fin == MPIDI_ZC_FIN_NONE) {
        send_fin(f, false);
    }
    if (!d->has_shm || MPIDI_ZC_sender_has_shm_fin(f->other)) {
        peer_closed(f);
    }
}

/* Returns the connection that @message is about. NULL: it has been closed. */
static MPIDI_ZC_foreign_t *connection_of(int vci, const MPIDI_ZC_fin_message_t * message)
{
    if (message->kind == MPIDI_ZC_FIN_ACK) {
        return MPIDI_ZC_foreign_of_self(message->acked);
    }
    const MPIDI_ZC_process_t *process = MPIDI_ZC_process_find(vci, message->from);
    MPIDI_ZC_foreign_t *f = process ? process->connections : NULL;
    while (f && f->other != message->number) {
        f = f->next_of_process;
    }
    return f;
}

static void fin_over_network(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_fin_message_t * message)
{
    const bool finalizes = message->kind == MPIDI_ZC_FIN_FINALIZE;

    if (!f) {
        return;
    }
    MPIDI_ZC_disconnect_t *d = &f->disconnect;
    if (!f->net_ep || (d->peer == MPIDI_ZC_PEER_OPEN &&
                       (!MPIDI_ZC_sender_is_ready(message->number) || is_early(f)))) {
        d->peer = MPIDI_ZC_PEER_FIN_NET;
        d->unanswered = true;
        d->finalizes = d->finalizes || finalizes;
        d->has_shm = d->has_shm || message->has_shm;
        MPIDI_ZC_am_await(&MPIDI_ZC_VCI(f->vci), message->number);
        return;
    }
    if (finalizes && d->fin == MPIDI_ZC_FIN_NONE) {
        send_fin(f, false);
    }
    if (d->peer == MPIDI_ZC_PEER_OPEN) {
        d->peer = MPIDI_ZC_PEER_FIN_NET;
        if (!message->has_shm || MPIDI_ZC_sender_has_shm_fin(message->number)) {
            peer_closed(f);
        }
    }
}

static void fin_over_shm(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_fin_message_t * message)
{
    MPIDI_ZC_sender_note_shm_fin(message->number);
    if (f && f->disconnect.peer == MPIDI_ZC_PEER_FIN_NET && !f->disconnect.unanswered) {
        peer_closed(f);
    }
}

ucs_status_t MPIDI_ZC_fin_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param)
{
    const MPIDI_ZC_vci_t *vci = arg;
    MPIDI_ZC_fin_message_t message;

    if (length != sizeof(message)) {
        return UCS_OK;
    }
    memcpy(&message, data, sizeof(message));
    MPIDI_ZC_foreign_t *f = connection_of(vci->number, &message);
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

/* May free @f. */
static void finalize(MPIDI_ZC_foreign_t * f)
{
    f->disconnect.finalizing = true;
    if (!f->net_ep && (f->other != 0 || f->path >= 0)) {
        (void) MPIDI_ZC_foreign_open(f);
    }
    if (!f->net_ep) {
        drop(f);
        return;
    }
    if (f->disconnect.peer != MPIDI_ZC_PEER_CLOSED) {
        send_fin(f, true);
    }
    MPIDI_ZC_disconnect(f);
}

/* Ends the connections that it has not ended before. A HELLO may still make new ones, and those are
 * in front of all others. */
static void finalize_new_ones(int vci)
{
    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections[vci], *next;
         f && !f->disconnect.finalizing; f = next) {
        next = f->next;
        finalize(f);
    }
}

/* Does what there is to do. False: all connections have ended. */
static bool finalize_some(void)
{
    bool some = false;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        finalize_new_ones(v);
        MPIDI_ZC_disconnect_progress(v);
        some = some || MPIDI_ZC_connections[v] || own[v].nr_closing > 0;
    }
    return some;
}

void MPIDI_ZC_disconnect_all(void)
{
    MPL_time_t start, now;
    double waited = 0;

    MPL_wtime(&start);
    while (finalize_some() && waited < FINALIZE_SECONDS) {
        MPIDI_ZC_progress_all();
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
}

static void free_all_of(int vci)
{
    while (MPIDI_ZC_connections[vci]) {
        MPIDI_ZC_foreign_t *f = MPIDI_ZC_connections[vci];
        MPIDI_ZC_sender_unbind(f->other);
        drop(f);
    }
    while (own[vci].broken) {
        MPIDI_ZC_foreign_t *f = own[vci].broken;
        own[vci].broken = f->next;
        free_connection(f);
    }
    while (own[vci].unclosed) {
        MPIDI_ZC_foreign_t *f = own[vci].unclosed;
        own[vci].unclosed = f->disconnect.next_unclosed;
        free_connection(f);
    }
    own[vci].nr_closing = 0;
}

void MPIDI_ZC_disconnect_free(void)
{
    for (int v = 0; v < MPIDI_CH4_MAX_VCIS; v++) {
        free_all_of(v);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

enum { AM_DATA = 1, AM_CONTROL = 2 };
enum { MOST_UNDER_WAY = 8, MOST_PARKED = 64 };

typedef struct {
    uint32_t from, incarnation;
    uint64_t number;
} header_t;

typedef enum { PAUSE, HEARD, REBIND, BOUND, REFUSED, LAST, DONE } kind_t;

typedef struct {
    uint32_t kind, from, incarnation;
    uint64_t sent;
} control_t;

typedef struct message {
    struct message *next;
    link_t *link;
    header_t header;
    size_t length;
    char data[];
} message_t;

typedef struct early {
    struct early *next;
    link_t *link;
    header_t header;
    size_t length;
    char data[];
} early_t;

typedef struct {
    link_t *link; /* NULL: of none */
    control_t control;
    char *address;
} control_send_t;

typedef struct closing {
    struct closing *next;
    ucs_status_ptr_t request;
} closing_t;

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory) {
        die("no memory");
    }
    return memory;
}

/* ---- endpoints ---- */

static void peer_lost(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    link_t *link = arg;
    if (ep != link->ep) {
        return; /* of an endpoint that is being closed */
    }
    link->ep_lost = true;
    if (link->state == LINK_OPEN && !(link->last && link->done)) {
        die("rank %u has lost its connection to rank %u: %s", link->rank->self, link->peer,
            ucs_status_string(status));
    }
}

static ucs_status_t connect_to(rank_t *rank, link_t *link, const char *address, ucp_ep_h *ep)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)address,
        .err_mode = rank->by_force ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE,
        .err_handler = {.cb = peer_lost, .arg = link},
    };
    return ucp_ep_create(rank->ucx.worker, &params, ep);
}

/* Closes @ep. rank_tend() frees what UCX does not complete at once. */
static void close_endpoint(rank_t *rank, ucp_ep_h ep, bool force)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    const ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        closing_t *closing = allocate(sizeof(*closing));
        *closing = (closing_t){.next = rank->closing, .request = request};
        rank->closing = closing;
    }
}

/* The mover has gone, or is about to be replaced. Without error handling UCX 1.13 does not close an
 * endpoint by force, and complains if it flushes one whose peer is gone: it stays with the worker.
 */
static void give_up_endpoint(link_t *link)
{
    ucp_ep_h ep = link->ep;
    link->ep = NULL;
    if (ep && link->rank->by_force) {
        close_endpoint(link->rank, ep, true);
    }
}

static void free_closed(rank_t *rank)
{
    for (closing_t **at = &rank->closing; *at;) {
        closing_t *closing = *at;
        if (ucp_request_check_status(closing->request) == UCS_INPROGRESS) {
            at = &closing->next;
            continue;
        }
        ucp_request_free(closing->request);
        *at = closing->next;
        free(closing);
    }
}

char *rank_address(const rank_t *rank, size_t *length)
{
    char *address = allocate(sizeof(lanes_address_t) + rank->ucx.address_length);
    memcpy(address, &rank->lanes_address, sizeof(lanes_address_t));
    memcpy(address + sizeof(lanes_address_t), rank->ucx.address, rank->ucx.address_length);
    *length = sizeof(lanes_address_t) + rank->ucx.address_length;
    return address;
}

void link_init(rank_t *rank, link_t *link, uint32_t peer)
{
    *link = (link_t){.rank = rank, .peer = peer, .parked_end = &link->parked};
}

void link_connect(link_t *link)
{
    const ucs_status_t status =
        connect_to(link->rank, link, link->address + sizeof(lanes_address_t), &link->ep);
    if (status != UCS_OK) {
        die("ucp_ep_create: %s", ucs_status_string(status));
    }
    link->ep_lost = false;
}

/* ---- sending ---- */

static void message_sent(void *request, ucs_status_t status, void *arg)
{
    message_t *message = arg;
    if (status != UCS_OK) {
        die("message %llu to rank %u: %s", (unsigned long long)message->header.number,
            message->link->peer, ucs_status_string(status));
    }
    message->link->under_way--;
    free(message);
    if (request) {
        ucp_request_free(request);
    }
}

static void hand_over(message_t *message)
{
    link_t *link = message->link;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = message_sent,
        .user_data = message,
    };
    /* Not when the program sent it: it may have waited while this process became another
     * incarnation. */
    message->header.incarnation = link->rank->incarnation;
    link->under_way++;
    if (lanes_send(link, message->header.number, message->data, message->length, message)) {
        return;
    }
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(link->ep, AM_DATA, &message->header, sizeof(message->header), message->data,
                        message->length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        message_sent(NULL, UCS_PTR_STATUS(request), message);
    }
}

void link_long_sent(void *token, int status)
{
    message_sent(NULL, status == 0 ? UCS_OK : UCS_ERR_IO_ERROR, token);
}

bool link_accepts(const link_t *link)
{
    return link->state == LINK_OPEN ? link->under_way < MOST_UNDER_WAY
                                    : link->nr_parked < MOST_PARKED;
}

void link_send(link_t *link)
{
    const traffic_name_t name = {
        .from = link->rank->self,
        .to = link->peer,
        .number = ++link->sent,
    };
    const size_t length = traffic_size(name);
    message_t *message = allocate(sizeof(*message) + length);
    *message = (message_t){
        .link = link,
        .header = {.from = name.from, .number = name.number},
        .length = length,
    };
    traffic_fill(name, message->data, length);
    if (link->state == LINK_OPEN) {
        hand_over(message);
    } else {
        *link->parked_end = message;
        link->parked_end = &message->next;
        link->nr_parked++;
    }
}

static void open_again(link_t *link)
{
    message_t *message = link->parked;
    link->state = LINK_OPEN;
    link->moves = false;
    link->parked = NULL;
    link->parked_end = &link->parked;
    link->nr_parked = 0;
    while (message) {
        message_t *next = message->next;
        hand_over(message);
        message = next;
    }
}

static void control_sent(void *request, ucs_status_t status, void *arg)
{
    control_send_t *send = arg;
    if (status != UCS_OK && send->link && send->control.kind != DONE) {
        die("control message %u to rank %u: %s", send->control.kind, send->link->peer,
            ucs_status_string(status));
    }
    if (send->link) {
        send->link->under_way--;
    }
    free(send->address);
    free(send);
    if (request) {
        ucp_request_free(request);
    }
}

/* @link: NULL: the message is of no link. @address: of a REBIND; it is freed. */
static void send_with_address(rank_t *rank, link_t *link, ucp_ep_h ep, kind_t kind, char *address,
                              size_t length)
{
    control_send_t *send = allocate(sizeof(*send));
    const ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = control_sent,
        .user_data = send,
    };
    *send = (control_send_t){
        .link = link,
        .control = {.kind = kind, .from = rank->self, .incarnation = rank->incarnation},
        .address = address,
    };
    if (link) {
        /* Messages that wait come later: the peer must not wait for them. */
        send->control.sent = link->sent - link->nr_parked;
        link->under_way++;
    }
    const ucs_status_ptr_t request = ucp_am_send_nbx(
        ep, AM_CONTROL, &send->control, sizeof(send->control), send->address, length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        control_sent(NULL, UCS_PTR_STATUS(request), send);
    }
}

static void send_control(rank_t *rank, link_t *link, ucp_ep_h ep, kind_t kind)
{
    send_with_address(rank, link, ep, kind, NULL, 0);
}

/* Those of the mover: @address is freed. */
static void send_rebind(link_t *link, char *address, size_t length)
{
    send_with_address(link->rank, link, link->ep, REBIND, address, length);
}

void link_send_last(link_t *link)
{
    send_control(link->rank, link, link->ep, LAST);
}

void link_send_done(link_t *link)
{
    send_control(link->rank, link, link->ep, DONE);
}

/* ---- receiving ---- */

static void check_message(const early_t *message)
{
    const traffic_name_t name = {
        .from = message->header.from,
        .to = message->link->rank->self,
        .number = message->header.number,
    };
    if (message->length != traffic_size(name) ||
        !traffic_check(name, message->data, message->length)) {
        die("message %llu from rank %u is not what was sent", (unsigned long long)name.number,
            name.from);
    }
}

/* A whole message is here. It is delivered when all before it have been. */
static void arrived(early_t *message)
{
    link_t *link = message->link;
    early_t **at = &link->early;

    link->overtaken += message->header.number != link->received + 1;
    while (*at && (*at)->header.number < message->header.number) {
        at = &(*at)->next;
    }
    message->next = *at;
    *at = message;
    while (link->early && link->early->header.number <= link->received + 1) {
        early_t *first = link->early;
        if (first->header.number != link->received + 1) {
            die("message %llu from rank %u has come twice",
                (unsigned long long)first->header.number, link->peer);
        }
        check_message(first);
        link->received++;
        link->early = first->next;
        free(first);
    }
}

void link_long_arrived(link_t *link, uint64_t number, const void *data, size_t length)
{
    early_t *message = allocate(sizeof(*message) + length);
    *message = (early_t){
        .link = link,
        .header = {.from = link->peer, .incarnation = link->incarnation, .number = number},
        .length = length,
    };
    memcpy(message->data, data, length);
    link->by_lane++;
    arrived(message);
}

static void fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    early_t *message = arg;
    if (status != UCS_OK || length != message->length) {
        die("message %llu from rank %u cannot be fetched: %s",
            (unsigned long long)message->header.number, message->link->peer,
            ucs_status_string(status));
    }
    message->link->fetching--;
    arrived(message);
    if (request) {
        ucp_request_free(request);
    }
}

static ucs_status_t data_arrives(void *arg, const void *header, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t *param)
{
    rank_t *rank = arg;
    early_t *message = allocate(sizeof(*message) + length);

    if (header_length != sizeof(message->header)) {
        die("a message with a header of %zu bytes", header_length);
    }
    memcpy(&message->header, header, header_length);
    message->length = length;
    message->link = &rank->links[message->header.from];
    if (message->header.incarnation != message->link->incarnation) {
        die("message %llu of incarnation %u of rank %u, which is at %u",
            (unsigned long long)message->header.number, message->header.incarnation,
            message->link->peer, message->link->incarnation);
    }
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(message->data, data, length);
        arrived(message);
        return UCS_OK;
    }
    const ucp_request_param_t how = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = fetched,
        .user_data = message,
    };
    message->link->fetching++;
    const ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(rank->ucx.worker, data, message->data, length, &how);
    if (UCS_PTR_IS_ERR(request)) {
        die("ucp_am_recv_data_nbx: %s", ucs_status_string(UCS_PTR_STATUS(request)));
    }
    return UCS_INPROGRESS;
}

static void keep_rebind(rank_t *rank, const control_t *control, const void *address, size_t length)
{
    rebind_t *rebind = allocate(sizeof(*rebind) + length);
    *rebind = (rebind_t){
        .next = rank->rebinds,
        .peer = control->from,
        .incarnation = control->incarnation,
        .length = length,
    };
    memcpy(rebind->address, address, length);
    rank->rebinds = rebind;
}

static void note_control(rank_t *rank, link_t *link, const control_t *control)
{
    if (control->kind != REFUSED && control->incarnation != link->incarnation) {
        die("control message %u of incarnation %u of rank %u, which is at %u", control->kind,
            control->incarnation, link->peer, link->incarnation);
    }
    switch ((kind_t)control->kind) {
    case PAUSE:
        if (link->state != LINK_OPEN) {
            die("PAUSE of rank %u in state %d", link->peer, (int)link->state);
        }
        link->state = LINK_PAUSING;
        link->peer_sent = control->sent;
        break;
    case HEARD:
        link->heard = true;
        link->peer_sent = control->sent;
        break;
    case BOUND:
        if (link->state != LINK_BINDING) {
            die("BOUND of rank %u in state %d", link->peer, (int)link->state);
        }
        open_again(link);
        break;
    case LAST:
        link->last = true;
        link->peer_sent = control->sent;
        break;
    case DONE:
        link->done = true;
        break;
    case REFUSED:
        if (link->state != LINK_BINDING) {
            die("REFUSED of rank %u in state %d", link->peer, (int)link->state);
        }
        link->state = LINK_REFUSED;
        break;
    case REBIND:
    default:
        die("control message %u", control->kind);
    }
    (void)rank;
}

static ucs_status_t control_arrives(void *arg, const void *header, size_t header_length, void *data,
                                    size_t length, const ucp_am_recv_param_t *param)
{
    rank_t *rank = arg;
    control_t control;

    (void)param;
    if (header_length != sizeof(control)) {
        die("a control message of %zu bytes", header_length);
    }
    memcpy(&control, header, sizeof(control));
    if (control.from >= rank->size || control.from == rank->self) {
        die("a control message of rank %u", control.from);
    }
    if (control.kind == REBIND) {
        keep_rebind(rank, &control, data, length);
    } else {
        note_control(rank, &rank->links[control.from], &control);
    }
    return UCS_OK;
}

const ucx_handler_t link_handlers[] = {
    {AM_DATA, data_arrives},
    {AM_CONTROL, control_arrives},
};

/* ---- leaving and coming back ---- */

static bool all_is_here(const link_t *link)
{
    return link->received == link->peer_sent && link->fetching == 0;
}

bool link_is_complete(const link_t *link)
{
    return link->last && all_is_here(link) && link->under_way == 0;
}

void link_pause(link_t *link)
{
    if (link->state != LINK_OPEN) {
        die("this process leaves while the link to rank %u is in state %d", link->peer,
            (int)link->state);
    }
    link->state = LINK_PAUSING;
    link->moves = true;
    link->heard = false;
    send_control(link->rank, link, link->ep, PAUSE);
}

void link_detach(link_t *link)
{
    ucp_ep_h ep = link->ep;
    link->ep = NULL;
    link->state = LINK_DETACHED;
    close_endpoint(link->rank, ep, link->rank->by_force);
}

void link_attach(link_t *link)
{
    const rank_t *rank = link->rank;
    size_t length;

    link_connect(link);
    lanes_connect(link);
    link->state = LINK_BINDING;
    if (rank->misleads) {
        char *address = allocate(rank->gone_length);
        memcpy(address, rank->gone, rank->gone_length);
        send_rebind(link, address, rank->gone_length);
    }
    char *address = rank_address(rank, &length);
    send_rebind(link, address, length);
}

/* The mover has come back as another incarnation, at another address. */
static void bind_again(rank_t *rank, link_t *link, const rebind_t *rebind)
{
    if (link->state != LINK_PAUSED) {
        die("REBIND of rank %u in state %d", link->peer, (int)link->state);
    }
    give_up_endpoint(link);
    free(link->address);
    link->address = allocate(rebind->length);
    link->address_length = rebind->length;
    memcpy(link->address, rebind->address, rebind->length);
    link->incarnation = rebind->incarnation;
    link_connect(link);
    lanes_connect(link);
    send_control(rank, link, link->ep, BOUND);
    open_again(link);
}

/* A copy of a process that is elsewhere by now. Its endpoint is no link's, so nothing is lost with
 * it, nor if there is none: then the copy has gone. */
static void refuse(rank_t *rank, const rebind_t *rebind)
{
    ucp_ep_h ep;
    rank->refusals++;
    if (connect_to(rank, &rank->links[rank->self], rebind->address + sizeof(lanes_address_t),
                   &ep) == UCS_OK) {
        send_control(rank, NULL, ep, REFUSED);
        close_endpoint(rank, ep, false);
    }
}

static void take_rebinds(rank_t *rank)
{
    while (rank->rebinds) {
        rebind_t *rebind = rank->rebinds;
        link_t *link = &rank->links[rebind->peer];
        rank->rebinds = rebind->next;
        if (rebind->incarnation > link->incarnation) {
            bind_again(rank, link, rebind);
        } else {
            refuse(rank, rebind);
        }
        free(rebind);
    }
}

static void tend(link_t *link)
{
    if (link->state == LINK_PAUSING && all_is_here(link) && link->under_way == 0) {
        if (!link->moves) {
            link->state = LINK_PAUSED;
            lanes_close_one(link);
            send_control(link->rank, link, link->ep, HEARD);
        } else if (link->heard) {
            link->state = LINK_PAUSED;
        }
    } else if (link->state == LINK_PAUSED && !link->moves && link->ep && link->ep_lost) {
        give_up_endpoint(link);
    }
}

void rank_tend(rank_t *rank)
{
    lanes_poll(rank);
    take_rebinds(rank);
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        if (peer != rank->self) {
            tend(&rank->links[peer]);
        }
    }
    free_closed(rank);
}

bool rank_all(const rank_t *rank, link_state_t state)
{
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        if (peer != rank->self && rank->links[peer].state != state) {
            return false;
        }
    }
    return true;
}

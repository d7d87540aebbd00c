/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/random.h>
#include "zc_handshake.h"
#include "zc_arrival.h"
#include "zc_foreign.h"
#include "zc_offer.h"
#include "zc_peer.h"
#include "zc_sender.h"

/* A process may compute for long before it answers a connection, and no message waits for that. */
enum { HELLO_MS = 600000 };

enum { AT_ONCE = 16, OPENING_TURNS = 64 };

/* ---- short messages ---- */

ucs_status_t MPIDI_ZC_channel_send_short(ucp_ep_h ep, unsigned id, const void *header,
                                         size_t header_length, const void *data, size_t length)
{
    char *copy = MPL_malloc(header_length + length, MPL_MEM_BUFFER);
    if (!copy) {
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(copy, header, header_length);
    if (length > 0) {
        memcpy(copy + header_length, data, length);
    }
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = MPIDI_ZC_am_header_done,
        .user_data = copy,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(ep, id, copy, header_length, copy + header_length,
                                               length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        MPL_free(copy);
    }
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
}

void MPIDI_ZC_channel_must_send(ucs_status_t status)
{
    if (unlikely(status != UCS_OK) && !MPIDI_ZC_global.over) {
        MPIDI_ZC_end_job_if(MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_FATAL, __func__, __LINE__,
                                                 MPI_ERR_OTHER, "**zc_ucx", "**zc_ucx %s %s",
                                                 "ucp_am_send_nbx", ucs_status_string(status)));
    }
}

/* ---- the channels of a VCI ---- */

static void log_line(void *arg, const char *line)
{
    fprintf(stderr, "zc: rank %d: %s\n", MPIR_Process.rank, line);
}

static void *place(void *arg, zcl_lane_t * connection, const zcl_frame_t * frame)
{
    const MPIDI_ZC_arrival_t *a = (const void *) (uintptr_t) frame->id;
    return a && a->bytes == frame->len ? a->target : NULL;
}

/* Finds the address of the device that UCX's TCP uses. */
static bool find_address(struct sockaddr_storage *address, socklen_t * length)
{
    struct ifaddrs *all, *one;
    bool found = false;

    if (getifaddrs(&all) != 0) {
        return false;
    }
    for (one = all; one && !found; one = one->ifa_next) {
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
            !strcmp(one->ifa_name, MPIDI_ZC_global.transport.device)) {
            *length = sizeof(struct sockaddr_in);
            memcpy(address, one->ifa_addr, *length);
            found = true;
        }
    }
    freeifaddrs(all);
    return found;
}

static int open_context(struct MPIDI_ZC_channels *c)
{
    struct sockaddr_storage address;
    socklen_t length;

    if (!find_address(&address, &length)) {
        return -EADDRNOTAVAIL;
    }
    if (getrandom(c->secret, sizeof(c->secret), 0) != sizeof(c->secret)) {
        return -EIO;
    }
    zcl_params_t params = {
        .size = sizeof(params),
        .way = ZCL_WAY_CALLER,
        .hello_timeout_ms = HELLO_MS,
        .local = (const struct sockaddr *) &address,
        .local_len = length,
        .interface = MPIDI_ZC_global.transport.device,
        .secret = c->secret,
        .name = MPIDI_ZC_upid_self()->id,
        .place = place,
        .log = log_line,
    };
    int err = zcl_create(&params, &c->context);
    if (err == -EPERM) {
        /* To bind to a device may need a privilege; the address is enough nearly always. */
        params.interface = NULL;
        err = zcl_create(&params, &c->context);
    }
    if (err == 0) {
        c->descriptor = zcl_descriptor(c->context);
    }
    return err;
}

struct MPIDI_ZC_channels *MPIDI_ZC_channels_of(MPIDI_ZC_vci_t * vci)
{
    if (likely(vci->channels) || !MPIDI_ZC_global.params.channels) {
        return vci->channels;
    }
    struct MPIDI_ZC_channels *c = MPL_calloc(1, sizeof(*c), MPL_MEM_OTHER);
    int err = -ENOMEM;
    if (c) {
        c->free_offers = MPIDI_ZC_NO_OFFER;
        c->next_name = MPIR_Process.size;
        c->of = MPL_calloc(MPIR_Process.size, sizeof(*c->of), MPL_MEM_OTHER);
        err = c->of ? open_context(c) : -ENOMEM;
    }
    if (err) {
        MPIDI_ZC_global.params.channels = false;
        MPIDI_ZC_handshake_note_refusal(vci, strerror(-err));
        if (c) {
            MPL_free(c->of);
            MPL_free(c);
        }
        return NULL;
    }
    __atomic_store_n(&vci->channels, c, __ATOMIC_RELEASE);
    /* The thread sleeps on descriptors, and has to add this one. */
    MPIDI_ZC_landing_thread_look();
    return c;
}

int MPIDI_ZC_channels_descriptor(const MPIDI_ZC_vci_t * vci)
{
    const struct MPIDI_ZC_channels *c = __atomic_load_n(&vci->channels, __ATOMIC_ACQUIRE);
    return c ? c->descriptor : -1;
}

/* The connection has no channel any more. */
static void forget_foreign(MPIDI_ZC_channel_t * channel)
{
    if (channel->foreign) {
        *MPIDI_ZC_foreign_channel(channel->foreign) = NULL;
        channel->foreign = NULL;
    }
}

static void free_foreign(struct MPIDI_ZC_channels *c, MPIDI_ZC_channel_t * channel)
{
    forget_foreign(channel);
    MPIDI_ZC_table_remove(&c->foreign, &channel->link);
    MPL_free(channel);
}

void MPIDI_ZC_channels_free(MPIDI_ZC_vci_t * vci)
{
    struct MPIDI_ZC_channels *c = vci->channels;

    MPIDI_ZC_handshake_drop_messages(vci);
    if (!c) {
        return;
    }
    zcl_destroy(c->context);
    for (MPIDI_ZC_link_t * link; (link = MPIDI_ZC_table_next(&c->foreign, NULL));) {
        free_foreign(c, MPIDI_ZC_TABLE_ENTRY(link, MPIDI_ZC_channel_t, link));
    }
    MPIDI_ZC_table_free(&c->foreign);
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPL_free(c->of[rank]);
    }
    MPL_free(c->of);
    MPL_free(c->offers);
    MPL_free(c);
    vci->channels = NULL;
}

/* As MPIDI_ZC_channel_of(), of the ranks of this world. */
static MPIDI_ZC_channel_t *of_rank(MPIDI_ZC_vci_t * vci, int rank)
{
    MPIDI_ZC_channel_t **channel = &vci->channels->of[rank];

    if (unlikely(!*channel)) {
        *channel = MPL_calloc(1, sizeof(**channel), MPL_MEM_OTHER);
        if (*channel) {
            (*channel)->rank = rank;
            (*channel)->vci = vci;
        }
    }
    return *channel;
}

/* As MPIDI_ZC_channel_of(), of other worlds. */
static MPIDI_ZC_channel_t *of_foreign(MPIDI_ZC_vci_t * vci, struct MPIDI_ZC_foreign *f)
{
    struct MPIDI_ZC_channels *c = vci->channels;
    MPIDI_ZC_channel_t **channel = MPIDI_ZC_foreign_channel(f);

    if (unlikely(!*channel) && c->next_name < INT32_MAX) {
        *channel = MPL_calloc(1, sizeof(**channel), MPL_MEM_OTHER);
        if (*channel) {
            (*channel)->rank = -1;
            (*channel)->foreign = f;
            (*channel)->vci = vci;
            (*channel)->link.number = c->next_name++;
            MPIDI_ZC_table_add(&c->foreign, &(*channel)->link);
        }
    }
    return *channel;
}

MPIDI_ZC_channel_t *MPIDI_ZC_channel_of(MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    if (likely(!(sender & MPIDI_ZC_FOREIGN))) {
        return of_rank(vci, (int) sender);
    }
    struct MPIDI_ZC_foreign *f = MPIDI_ZC_foreign_of_sender(sender);
    return f ? of_foreign(vci, f) : NULL;
}

MPIDI_ZC_addr_t *MPIDI_ZC_channel_peer(const MPIDI_ZC_channel_t * channel)
{
    if (likely(channel->rank >= 0)) {
        return &MPIDI_ZC_AV(&MPIDIU_get_av(0, channel->rank));
    }
    return channel->foreign ? MPIDI_ZC_foreign_peer(channel->foreign) : NULL;
}

MPIDI_ZC_channel_t *MPIDI_ZC_channel_by(const struct MPIDI_ZC_channels *c,
                                        const zcl_lane_t * connection)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (c->of[rank] && c->of[rank]->connection == connection) {
            return c->of[rank];
        }
    }
    for (MPIDI_ZC_link_t * at = MPIDI_ZC_table_next(&c->foreign, NULL); at;
         at = MPIDI_ZC_table_next(&c->foreign, at)) {
        MPIDI_ZC_channel_t *channel = MPIDI_ZC_TABLE_ENTRY(at, MPIDI_ZC_channel_t, link);
        if (channel->connection == connection) {
            return channel;
        }
    }
    return NULL;
}

static bool awaits(const MPIDI_ZC_channel_t * channel)
{
    return channel && channel->state == MPIDI_ZC_CHANNEL_LISTENING && !channel->connection;
}

MPIDI_ZC_channel_t *MPIDI_ZC_channel_awaiting(const struct MPIDI_ZC_channels *c, uint64_t id)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (awaits(c->of[rank]) && MPIDI_ZC_upid_of(rank)->id == id) {
            return c->of[rank];
        }
    }
    for (MPIDI_ZC_link_t * at = MPIDI_ZC_table_next(&c->foreign, NULL); at;
         at = MPIDI_ZC_table_next(&c->foreign, at)) {
        MPIDI_ZC_channel_t *channel = MPIDI_ZC_TABLE_ENTRY(at, MPIDI_ZC_channel_t, link);
        size_t length;
        if (awaits(channel) && channel->foreign &&
            MPIDI_ZC_foreign_upid(channel->foreign, &length)->id == id) {
            return channel;
        }
    }
    return NULL;
}

MPIDI_ZC_channel_t *MPIDI_ZC_channel_to(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane,
                                        int vci)
{
    MPIDI_ZC_vci_t *own = &MPIDI_ZC_VCI(vci);

    if (!lane->channels || !MPIDI_ZC_channels_of(own)) {
        return NULL;
    }
    MPIDI_ZC_channel_t *channel = unlikely(peer->foreign) ? of_foreign(own, peer->foreign) :
        of_rank(own, MPIDI_ZC_world_rank_of(peer));
    if (channel && unlikely(channel->state == MPIDI_ZC_CHANNEL_NONE) && !MPIDI_ZC_global.closing) {
        MPIDI_ZC_handshake_begin(channel);
    }
    return channel && channel->state == MPIDI_ZC_CHANNEL_OPEN ? channel : NULL;
}

/* ---- the receiver ---- */

static uint32_t name_in(const void *offer)
{
    return (uintptr_t) offer >> 32 & 0x7fffffff;
}

/* Returns the channel on which @offer was made. NULL: that has ended. */
static MPIDI_ZC_channel_t *channel_in(MPIDI_ZC_vci_t * vci, const void *offer)
{
    const uint32_t name = name_in(offer);
    struct MPIDI_ZC_channels *c = vci->channels;

    if (likely(name < (uint32_t) MPIR_Process.size)) {
        return of_rank(vci, (int) name);
    }
    return !c ? NULL : MPIDI_ZC_TABLE_ENTRY(MPIDI_ZC_table_find(&c->foreign, name), MPIDI_ZC_channel_t, link);
}

void *MPIDI_ZC_offer_descriptor(MPIDI_ZC_vci_t * vci, uint64_t sender, const void *number)
{
    uint64_t name = sender;
    MPIDI_ZC_offer_number_t n;

    if (unlikely(sender & MPIDI_ZC_FOREIGN)) {
        /* CH4 may have given the connection up here, but not yet at the sender. */
        struct MPIDI_ZC_foreign *f = MPIDI_ZC_sender_connection(sender);
        const MPIDI_ZC_channel_t *channel = f ? *MPIDI_ZC_foreign_channel(f) : NULL;
        name = channel ? channel->link.number : INT32_MAX;
    }
    memcpy(&n, number, sizeof(n));
    return (void *) (uintptr_t) ((uint64_t) 1 << 63 | name << 32 | n);
}

/* Answers an offer on @channel. There is an endpoint to its sender, since offers wait for one
 * (zc_am.c), unless it could not be made. False: its sender, of another world, is lost. */
static bool answer(MPIDI_ZC_channel_t * channel, const void *offer, MPIDI_ZC_pull_name_t name,
                   uint32_t how)
{
    MPIDI_ZC_addr_t *peer = channel ? MPIDI_ZC_channel_peer(channel) : NULL;

    if (unlikely(!peer)) {
        return false;
    }
    MPIDI_ZC_vci_t *vci = channel->vci;
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);
    const MPIDI_ZC_pull_t pull = {
        .sender = peer->self,
        .name = name,
        .number = (uint32_t) (uintptr_t) offer,
        .how = how,
    };

    MPIDI_ZC_bundle_end(vci);
    if (likely(!peer->foreign)) {
        MPIDI_ZC_end_job_if(MPIDI_ZC_lane_endpoint(peer, lane, vci->number));
    }
    const ucs_status_t status = MPIDI_ZC_channel_send_short(lane->ep, MPIDI_ZC_AM_PULL, &pull,
                                                            sizeof(pull), NULL, 0);
    if (unlikely(status != UCS_OK) && peer->foreign) {
        MPIDI_ZC_foreign_refused(peer->foreign, status);
        if (MPIDI_ZC_foreign_has_failed(peer->foreign)) {
            return false;
        }
    }
    MPIDI_ZC_channel_must_send(status);
    return true;
}

/* What @a has asked for is there, or will not come. */
static void forget_pull(MPIDI_ZC_arrival_t * a)
{
    MPIDI_ZC_channel_t *channel = a->channel;

    a->vci->channels->nr_pulls -= a->target != NULL;
    a->channel = NULL;
    if (--channel->nr_pulls == 0 && unlikely(channel->foreign)) {
        MPIDI_ZC_foreign_pulled(channel->foreign);
    }
}

void MPIDI_ZC_channel_pull(MPIDI_ZC_arrival_t * a, const void *offer, void *target)
{
    MPIDI_ZC_channel_t *channel = channel_in(a->vci, offer);

    a->target = target;
    if (unlikely(!answer(channel, offer, (uintptr_t) a,
                         target ? MPIDI_ZC_PULL_FRAME : MPIDI_ZC_PULL_DATA))) {
        MPIDI_ZC_arrival_fetched(a, UCS_ERR_CONNECTION_RESET);
        return;
    }
    a->channel = channel;
    channel->nr_pulls++;
    channel->vci->channels->nr_pulls += target != NULL;
}

bool MPIDI_ZC_channel_pulls(const MPIDI_ZC_channel_t * channel)
{
    return channel && channel->nr_pulls > 0;
}

void MPIDI_ZC_channel_decline(MPIDI_ZC_vci_t * vci, const void *offer)
{
    /* False: its sender is lost, and its send has ended. */
    (void) answer(channel_in(vci, offer), offer, 0, MPIDI_ZC_PULL_NOTHING);
}

/* Does @channel lead to the process that sends as @sender? */
static bool leads_to(const MPIDI_ZC_channel_t * channel, uint64_t sender)
{
    if (likely(channel->rank >= 0)) {
        return sender == (uint64_t) channel->rank;
    }
    return channel->foreign && MPIDI_ZC_foreign_is_to_sender(channel->foreign, sender);
}

/* Does @a await data of @sender? The name of DATA is an address, and the arrival there may have
 * ended with its channel, if that was one to another world. Another arrival may be there by now. */
static bool is_awaited(const MPIDI_ZC_vci_t * vci, const MPIDI_ZC_arrival_t * a, uint64_t sender)
{
    if (likely(!vci->channels->foreign_ended)) {
        return true;
    }
    const MPIDI_ZC_arrival_t *at = vci->arrivals.first;
    while (at && at != a) {
        at = at->next;
    }
    return at && at->channel && leads_to(at->channel, sender);
}

ucs_status_t MPIDI_ZC_data_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_vci_t *vci = arg;
    MPIDI_ZC_data_t h;

    memcpy(&h, header, sizeof(h));
    MPIDI_ZC_arrival_t *a = (MPIDI_ZC_arrival_t *) (uintptr_t) h.name;
    MPIR_Assert(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    if (unlikely(!is_awaited(vci, a, h.sender))) {
        return UCS_OK;          /* UCP ends the send at the sender */
    }
    forget_pull(a);
    return MPIDI_ZC_arrival_data(a, data);
}

/* ---- other worlds ---- */

/* Ends what this process receives on @channel. */
static void end_pulls(MPIDI_ZC_channel_t * channel)
{
    MPIDI_ZC_vci_t *vci = channel->vci;
    MPIDI_ZC_arrival_t *a = vci->arrivals.first;

    while (a) {
        if (a->channel != channel) {
            a = a->next;
            continue;
        }
        forget_pull(a);
        MPIDI_ZC_arrival_fetched(a, UCS_ERR_CONNECTION_RESET);
        a = vci->arrivals.first;        /* the list may have changed */
    }
}

static void end(MPIDI_ZC_channel_t * channel)
{
    MPIDI_ZC_handshake_end(channel);
    MPIDI_ZC_offers_end(channel);
    end_pulls(channel);
    channel->vci->channels->foreign_ended = true;
    free_foreign(channel->vci->channels, channel);
}

/* libzclane may have returned events that belong to the channel, and that are being handled. */
void MPIDI_ZC_channel_end(MPIDI_ZC_channel_t * channel)
{
    if (!channel) {
        return;
    }
    forget_foreign(channel);
    if (channel->vci->channels->in_events) {
        channel->vci->channels->some_ended = true;
    } else {
        end(channel);
    }
}

/* Ends those that have no connection any more. */
static void end_some(struct MPIDI_ZC_channels *c)
{
    MPIDI_ZC_link_t *at = MPIDI_ZC_table_next(&c->foreign, NULL);

    c->some_ended = false;
    while (at) {
        MPIDI_ZC_channel_t *channel = MPIDI_ZC_TABLE_ENTRY(at, MPIDI_ZC_channel_t, link);
        if (channel->foreign) {
            at = MPIDI_ZC_table_next(&c->foreign, at);
        } else {
            end(channel);
            at = MPIDI_ZC_table_next(&c->foreign, NULL);        /* it may have changed */
        }
    }
}

/* ---- progress ---- */

static void arrived(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    if (e->frame.id == 0) {
        MPIDI_ZC_handshake_confirmed(c, e);
        return;
    }
    MPIDI_ZC_arrival_t *a = (MPIDI_ZC_arrival_t *) (uintptr_t) e->frame.id;
    forget_pull(a);
    MPIDI_ZC_arrival_fetched(a, e->landed ? UCS_ERR_INVALID_PARAM : UCS_OK);
}

static void handle_event(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    switch (e->type) {
        case ZCL_EVENT_ACCEPTED:
            MPIDI_ZC_handshake_accepted(c, e);
            break;
        case ZCL_EVENT_OPENED:
            MPIDI_ZC_handshake_opened(c, e);
            break;
        case ZCL_EVENT_ARRIVED:
            arrived(c, e);
            break;
        case ZCL_EVENT_SENT:
            if (e->token) {
                MPIDI_ZC_offer_sent(c, e->token, e->status);
            }
            break;
        case ZCL_EVENT_BROKEN:
            MPIDI_ZC_handshake_broken(c, e);
            break;
        default:
            break;
    }
}

static bool is_due(struct MPIDI_ZC_channels *c)
{
    if (c->nr_pulls + c->nr_frames > 0) {
        return true;
    }
    return c->nr_opening > 0 && ++c->turns % OPENING_TURNS == 0;
}

unsigned MPIDI_ZC_channels_progress(MPIDI_ZC_vci_t * vci, bool look)
{
    struct MPIDI_ZC_channels *c = vci->channels;
    zcl_event_t events[AT_ONCE];
    int nr = 0;

    if (c && (look || is_due(c))) {
        /* -ENOMEM: nothing is lost. */
        nr = zcl_poll(c->context, events, AT_ONCE, 0);
        c->in_events = true;
        for (int i = 0; i < nr; i++) {
            handle_event(c, &events[i]);
        }
        c->in_events = false;
        if (unlikely(c->some_ended)) {
            end_some(c);
        }
    }
    if (unlikely(vci->channel_messages.first)) {
        MPIDI_ZC_handshake_handle_messages(vci);
    }
    return MPL_MAX(nr, 0);
}

bool MPIDI_ZC_channels_send(const MPIDI_ZC_vci_t * vci)
{
    return vci->channels && vci->channels->nr_frames > 0;
}

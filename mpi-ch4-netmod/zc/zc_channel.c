/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/random.h>
#include "zc_handshake.h"
#include "zc_arrival.h"
#include "zc_peer.h"

/* A process may compute for long before it answers a connection, and no message waits for that. */
enum { HELLO_MS = 600000 };

enum { AT_ONCE = 16, OPENING_TURNS = 64 };

/* A message that this process offers. Its number is its place in the table. */
typedef struct MPIDI_ZC_offer {
    MPIR_Request *sreq;         /* NULL: a free place */
    MPIDI_ZC_channel_t *channel;
    const void *data;
    size_t bytes;
    uint32_t next_free;
} offer_t;

#define NONE UINT32_MAX

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

/* Ends the job if @status is an error: the other process would wait for the message for ever. */
static void must_send(ucs_status_t status)
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
        .name = MPIR_Process.rank,
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
        c->free = NONE;
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

void MPIDI_ZC_channels_free(MPIDI_ZC_vci_t * vci)
{
    struct MPIDI_ZC_channels *c = vci->channels;

    MPIDI_ZC_handshake_drop_messages(vci);
    if (!c) {
        return;
    }
    zcl_destroy(c->context);
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPL_free(c->of[rank]);
    }
    MPL_free(c->of);
    MPL_free(c->offers);
    MPL_free(c);
    vci->channels = NULL;
}

MPIDI_ZC_channel_t *MPIDI_ZC_channel_of(MPIDI_ZC_vci_t * vci, int rank)
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

MPIDI_ZC_channel_t *MPIDI_ZC_channel_to(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane,
                                        int vci)
{
    MPIDI_ZC_vci_t *own = &MPIDI_ZC_VCI(vci);

    if (!lane->channels || !MPIDI_ZC_channels_of(own)) {
        return NULL;
    }
    MPIDI_ZC_channel_t *channel = MPIDI_ZC_channel_of(own, MPIDI_ZC_world_rank_of(peer));
    if (channel && unlikely(channel->state == MPIDI_ZC_CHANNEL_NONE) && !MPIDI_ZC_global.closing) {
        MPIDI_ZC_handshake_begin(channel);
    }
    return channel && channel->state == MPIDI_ZC_CHANNEL_OPEN ? channel : NULL;
}

/* ---- the sender ---- */

/* Takes a free place in the table. NONE: there is no memory. */
static MPIDI_ZC_offer_number_t new_offer(struct MPIDI_ZC_channels *c)
{
    if (c->free == NONE) {
        const uint32_t room = MPL_MAX(16, 2 * c->nr_offers);
        offer_t *offers = MPL_realloc(c->offers, room * sizeof(*offers), MPL_MEM_OTHER);
        if (!offers) {
            return NONE;
        }
        for (uint32_t i = room; i-- > c->nr_offers;) {
            offers[i] = (offer_t) {.next_free = c->free };
            c->free = i;
        }
        c->offers = offers;
        c->nr_offers = room;
    }
    const MPIDI_ZC_offer_number_t number = c->free;
    c->free = c->offers[number].next_free;
    return number;
}

static void free_offer(struct MPIDI_ZC_channels *c, MPIDI_ZC_offer_number_t number)
{
    c->offers[number].sreq = NULL;
    c->offers[number].next_free = c->free;
    c->free = number;
}

static MPIDI_ZC_lane_t *lane_to(const MPIDI_ZC_channel_t * channel)
{
    return MPIDI_ZC_lane_of(MPIDI_ZC_channel_peer(channel->rank), channel->vci->number);
}

ucs_status_t MPIDI_ZC_channel_offer(MPIDI_ZC_channel_t * channel, MPIR_Request * sreq,
                                    const char *header, size_t header_length, const void *data,
                                    size_t bytes)
{
    struct MPIDI_ZC_channels *c = channel->vci->channels;
    MPIDI_ZC_lane_t *lane = lane_to(channel);
    const MPIDI_ZC_offer_number_t number = new_offer(c);

    if (number == NONE) {
        return UCS_ERR_NO_MEMORY;
    }
    c->offers[number] = (offer_t) {
        .sreq = sreq,
        .channel = channel,
        .data = data,
        .bytes = bytes,
    };
    const ucs_status_t status = MPIDI_ZC_channel_send_short(lane->ep, MPIDI_ZC_AM_OFFER, header,
                                                            header_length, &number,
                                                            sizeof(number));
    if (unlikely(status != UCS_OK)) {
        free_offer(c, number);
        return status;
    }
    channel->vci->stats.offered++;
    return UCS_OK;
}

/* Sends the data as DATA, by UCP. */
static void send_data(const offer_t * offer, MPIDI_ZC_pull_name_t name)
{
    MPIR_Request *sreq = offer->sreq;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(sreq);
    MPIDI_ZC_lane_t *lane = lane_to(offer->channel);
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_RNDV,
        .cb.send = MPIDI_ZC_am_send_done,
        .user_data = sreq,
    };

    memcpy(am->header_inline, &name, sizeof(name));
    ucs_status_ptr_t request = ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_DATA, am->header_inline,
                                               sizeof(name), offer->data, offer->bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        must_send(UCS_PTR_STATUS(request));
        MPIDI_ZC_am_send_over(sreq, UCS_PTR_STATUS(request));
    }
}

static void send_frame(const offer_t * offer, MPIDI_ZC_pull_name_t name)
{
    const zcl_frame_t frame = {
        .id = name,
        .len = offer->bytes,
        .page_class = ZCL_CLASS_NONE,
    };

    if (zcl_send(offer->channel->connection, &frame, offer->data, offer->sreq) == 0) {
        offer->channel->vci->channels->nr_frames++;
    } else {
        /* There is no memory, or the connection has just broken, which an event will report. */
        send_data(offer, name);
    }
}

ucs_status_t MPIDI_ZC_pull_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_vci_t *vci = arg;
    struct MPIDI_ZC_channels *c = vci->channels;
    MPIDI_ZC_pull_t pull;

    memcpy(&pull, header, sizeof(pull));
    MPIR_Assert(c && pull.number < c->nr_offers && c->offers[pull.number].sreq);
    const offer_t offer = c->offers[pull.number];
    free_offer(c, pull.number);
    MPIDI_ZC_bundle_end(vci);
    switch (pull.how) {
        case MPIDI_ZC_PULL_FRAME:
            send_frame(&offer, pull.name);
            break;
        case MPIDI_ZC_PULL_DATA:
            send_data(&offer, pull.name);
            break;
        default:
            MPIDI_ZC_am_send_over(offer.sreq, UCS_OK);
    }
    return UCS_OK;
}

/* ---- the receiver ---- */

static int rank_in(const void *offer)
{
    return (uintptr_t) offer >> 32 & 0x7fffffff;
}

void *MPIDI_ZC_offer_descriptor(uint64_t sender, const void *number)
{
    MPIDI_ZC_offer_number_t n;
    memcpy(&n, number, sizeof(n));
    return (void *) (uintptr_t) ((uint64_t) 1 << 63 | sender << 32 | n);
}

/* Answers an offer. There is an endpoint to its sender, since offers wait for one (zc_am.c),
 * unless it could not be made. */
static void answer(MPIDI_ZC_vci_t * vci, const void *offer, MPIDI_ZC_pull_name_t name,
                   uint32_t how)
{
    const MPIDI_ZC_pull_t pull = {.name = name,.number = (uint32_t) (uintptr_t) offer,.how = how };
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_channel_peer(rank_in(offer));
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);

    MPIDI_ZC_bundle_end(vci);
    MPIDI_ZC_end_job_if(MPIDI_ZC_lane_endpoint(peer, lane, vci->number));
    must_send(MPIDI_ZC_channel_send_short(lane->ep, MPIDI_ZC_AM_PULL, &pull, sizeof(pull), NULL,
                                          0));
}

void MPIDI_ZC_channel_pull(MPIDI_ZC_arrival_t * a, const void *offer, void *target)
{
    a->target = target;
    a->vci->channels->nr_pulls += target != NULL;
    answer(a->vci, offer, (uintptr_t) a, target ? MPIDI_ZC_PULL_FRAME : MPIDI_ZC_PULL_DATA);
}

void MPIDI_ZC_channel_decline(MPIDI_ZC_vci_t * vci, const void *offer)
{
    answer(vci, offer, 0, MPIDI_ZC_PULL_NOTHING);
}

ucs_status_t MPIDI_ZC_data_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_vci_t *vci = arg;
    MPIDI_ZC_pull_name_t name;

    memcpy(&name, header, sizeof(name));
    MPIDI_ZC_arrival_t *a = (MPIDI_ZC_arrival_t *) (uintptr_t) name;
    MPIR_Assert(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    vci->channels->nr_pulls -= a->target != NULL;
    return MPIDI_ZC_arrival_data(a, data);
}

/* ---- progress ---- */

static void arrived(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    if (e->frame.id == 0) {
        MPIDI_ZC_handshake_confirmed(c, e);
        return;
    }
    c->nr_pulls--;
    MPIDI_ZC_arrival_fetched((MPIDI_ZC_arrival_t *) (uintptr_t) e->frame.id,
                             e->landed ? UCS_ERR_INVALID_PARAM : UCS_OK);
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
                c->nr_frames--;
                MPIDI_ZC_am_send_over(e->token, e->status ? UCS_ERR_CONNECTION_RESET : UCS_OK);
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
        for (int i = 0; i < nr; i++) {
            handle_event(c, &events[i]);
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

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <zcl/lane.h>
#include "zc_channel.h"
#include "zc_arrival.h"
#include "zc_peer.h"

/* A process may compute for long before it answers a connection, and nothing waits for that. */
enum { HELLO_MS = 600000 };

enum { AT_ONCE = 16, OPENING_TURNS = 64 };

struct MPIDI_ZC_channel {
    MPIDI_ZC_channel_state_t state;
    int rank;
    MPIDI_ZC_vci_t *vci;
    zcl_lane_t *connection;     /* NULL: none yet, or none any more */
};

/* Of the sender; its number is its place in the table. */
typedef struct {
    MPIR_Request *sreq;         /* NULL: a free place */
    MPIDI_ZC_channel_t *channel;
    const void *data;
    size_t bytes;
    uint32_t next_free;
} offer_t;

#define NONE UINT32_MAX

_Static_assert(MPIDI_ZC_SECRET_BYTES == ZCL_SECRET_BYTES, "another libzclane");

/* One that has come, and that UCX's callback could not answer: zc_am.c tells why. */
typedef struct MPIDI_ZC_received {
    struct MPIDI_ZC_received *next;
    MPIDI_ZC_handshake_t message;
} received_t;

/* Of a VCI. */
struct MPIDI_ZC_channels {
    zcl_t *context;
    int descriptor;
    unsigned char secret[ZCL_SECRET_BYTES];
    MPIDI_ZC_channel_t **of;    /* by rank */
    offer_t *offers;
    uint32_t nr_offers, free;
    int nr_pulls, nr_frames;    /* that are to come, and to go */
    int nr_opening;             /* channels LISTENING or CONNECTING: looked at now and then */
    int turns;                  /* of progress, since */
};

/* ---- short messages ---- */

/* @header and @data are copied. */
static ucs_status_t tell(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                         const void *data, size_t length)
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

/* The other process waits for a message that could not be sent, and would do so for ever. */
static void must_send(ucs_status_t status)
{
    if (unlikely(status != UCS_OK) && !MPIDI_ZC_global.over) {
        MPIDI_ZC_end_job_if(MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_FATAL, __func__, __LINE__,
                                                 MPI_ERR_OTHER, "**zc_ucx", "**zc_ucx %s %s",
                                                 "ucp_am_send_nbx", ucs_status_string(status)));
    }
}

static MPIDI_ZC_addr_t *peer_of(int rank)
{
    return &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank));
}

/* False: there is no way to. */
static bool tell_peer(MPIDI_ZC_channel_t * channel, const MPIDI_ZC_handshake_t * message)
{
    MPIDI_ZC_addr_t *peer = peer_of(channel->rank);
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, channel->vci->number);

    MPIDI_ZC_bundle_end(channel->vci);
    return MPIDI_ZC_lane_endpoint(peer, lane, channel->vci->number) == MPI_SUCCESS &&
        tell(lane->ep, MPIDI_ZC_AM_CHANNEL, message, sizeof(*message), NULL, 0) == UCS_OK;
}

/* ---- one's own end of all channels ---- */

static void log_line(void *arg, const char *line)
{
    fprintf(stderr, "zc: rank %d: %s\n", MPIR_Process.rank, line);
}

static void *place(void *arg, zcl_lane_t * connection, const zcl_frame_t * frame)
{
    const MPIDI_ZC_arrival_t *a = (const void *) (uintptr_t) frame->id;
    return a && a->bytes == frame->len ? a->target : NULL;
}

/* The address of the device that UCX's TCP goes by. */
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

/* Said once, of all channels that cannot be made. */
static void note_refusal(MPIDI_ZC_vci_t * vci, const char *why)
{
    static bool told;

    vci->stats.channel_refusals++;
    if (!told && !MPIDI_ZC_global.closing) {
        told = true;
        fprintf(stderr, "zc: rank %d sends bulk over UCX's connections: it has no channel of its own"
                " to some or all ranks (%s); of further ones only the statistics tell\n",
                MPIR_Process.rank, why);
    }
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

/* Those of @vci, made with the first; NULL: there will be none. */
static struct MPIDI_ZC_channels *channels_of(MPIDI_ZC_vci_t * vci)
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
        note_refusal(vci, strerror(-err));
        if (c) {
            MPL_free(c->of);
            MPL_free(c);
        }
        return NULL;
    }
    __atomic_store_n(&vci->channels, c, __ATOMIC_RELEASE);
    /* It sleeps on descriptors, of which this is one more. */
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

    while (vci->channel_messages.first) {
        received_t *first = vci->channel_messages.first;
        vci->channel_messages.first = first->next;
        MPL_free(first);
    }
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

/* ---- making a channel ---- */

static void set_state(MPIDI_ZC_channel_t * channel, MPIDI_ZC_channel_state_t state)
{
    const bool was_opening = channel->state == MPIDI_ZC_CHANNEL_LISTENING ||
        channel->state == MPIDI_ZC_CHANNEL_CONNECTING;
    const bool is_opening = state == MPIDI_ZC_CHANNEL_LISTENING ||
        state == MPIDI_ZC_CHANNEL_CONNECTING;

    channel->vci->channels->nr_opening += is_opening - was_opening;
    channel->vci->stats.channels += state == MPIDI_ZC_CHANNEL_OPEN;
    channel->state = state;
}

static void close_connection(MPIDI_ZC_channel_t * channel)
{
    if (channel->connection) {
        (void) zcl_close(channel->connection);
        channel->connection = NULL;
    }
}

static void refuse(MPIDI_ZC_channel_t * channel, const char *why)
{
    close_connection(channel);
    set_state(channel, MPIDI_ZC_CHANNEL_REFUSED);
    note_refusal(channel->vci, why);
}

/* The same, and the other process is told. If it cannot be, it goes on without a channel, too, but
 * looks for one that never comes. */
static void refuse_both(MPIDI_ZC_channel_t * channel, const char *why)
{
    const MPIDI_ZC_handshake_t message = {
        .kind = MPIDI_ZC_HANDSHAKE_REFUSE,
        .sender = MPIR_Process.rank,
    };

    refuse(channel, why);
    if (!MPIDI_ZC_global.closing) {
        (void) tell_peer(channel, &message);
    }
}

static void begin(MPIDI_ZC_channel_t * channel)
{
    const struct MPIDI_ZC_channels *c = channel->vci->channels;
    MPIDI_ZC_handshake_t message = {
        .kind = MPIDI_ZC_HANDSHAKE_ASK,
        .sender = MPIR_Process.rank,
    };
    const bool listens = MPIR_Process.rank < channel->rank;
    socklen_t length = sizeof(message.address);

    if (listens) {
        const int err = zcl_address(c->context, (struct sockaddr *) &message.address, &length);
        if (err) {
            refuse_both(channel, strerror(-err));
            return;
        }
        message.kind = MPIDI_ZC_HANDSHAKE_LISTEN;
        message.address_length = length;
        memcpy(message.secret, c->secret, sizeof(message.secret));
    }
    if (tell_peer(channel, &message)) {
        set_state(channel, listens ? MPIDI_ZC_CHANNEL_LISTENING : MPIDI_ZC_CHANNEL_ASKED);
    } else {
        refuse(channel, "UCX does not send");
    }
}

/* NULL: no memory. */
static MPIDI_ZC_channel_t *channel_of(MPIDI_ZC_vci_t * vci, int rank)
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

    if (!lane->channels || !channels_of(own)) {
        return NULL;
    }
    MPIDI_ZC_channel_t *channel = channel_of(own, MPIDI_ZC_world_rank_of(peer));
    if (channel && unlikely(channel->state == MPIDI_ZC_CHANNEL_NONE) && !MPIDI_ZC_global.closing) {
        begin(channel);
    }
    return channel && channel->state == MPIDI_ZC_CHANNEL_OPEN ? channel : NULL;
}

static void connect_channel(MPIDI_ZC_channel_t * channel, const MPIDI_ZC_handshake_t * message)
{
    const int err = zcl_connect(channel->vci->channels->context,
                                (const struct sockaddr *) &message->address,
                                message->address_length, message->secret, &channel->connection);
    if (err) {
        refuse_both(channel, strerror(-err));
    } else {
        set_state(channel, MPIDI_ZC_CHANNEL_CONNECTING);
    }
}

static void take(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_handshake_t * message)
{
    MPIDI_ZC_channel_t *channel = channel_of(vci, message->sender);

    if (!channel) {
        return;                 /* the other process goes on without a channel */
    }
    switch (message->kind) {
        case MPIDI_ZC_HANDSHAKE_ASK:
            if (channel->state == MPIDI_ZC_CHANNEL_NONE) {
                begin(channel);
            }
            break;
        case MPIDI_ZC_HANDSHAKE_LISTEN:
            if (channel->state == MPIDI_ZC_CHANNEL_NONE ||
                channel->state == MPIDI_ZC_CHANNEL_ASKED) {
                connect_channel(channel, message);
            } else if (channel->state == MPIDI_ZC_CHANNEL_REFUSED) {
                refuse_both(channel, "refused before");
            }
            break;
        case MPIDI_ZC_HANDSHAKE_REFUSE:
            if (channel->state == MPIDI_ZC_CHANNEL_OPEN) {
                MPIDI_ZC_peer_lost(channel->rank, "it has refused an open channel");
            } else if (channel->state != MPIDI_ZC_CHANNEL_REFUSED) {
                refuse(channel, "the other rank has refused");
            }
            break;
    }
}

/* This process has no channels at all, and the other one is told so. */
static void answer_without(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_handshake_t * message)
{
    MPIDI_ZC_channel_t channel = {.rank = message->sender,.vci = vci };
    const MPIDI_ZC_handshake_t answer = {
        .kind = MPIDI_ZC_HANDSHAKE_REFUSE,
        .sender = MPIR_Process.rank,
    };

    if (message->kind != MPIDI_ZC_HANDSHAKE_REFUSE) {
        (void) tell_peer(&channel, &answer);
    }
}

static void take_all(MPIDI_ZC_vci_t * vci)
{
    while (vci->channel_messages.first) {
        received_t *first = vci->channel_messages.first;
        vci->channel_messages.first = first->next;
        if (MPIDI_ZC_global.closing) {
            /* too late for it */
        } else if (channels_of(vci)) {
            take(vci, &first->message);
        } else {
            answer_without(vci, &first->message);
        }
        MPL_free(first);
    }
}

ucs_status_t MPIDI_ZC_channel_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_vci_t *vci = arg;
    received_t *received = MPL_malloc(sizeof(*received), MPL_MEM_OTHER);

    if (received && header_length == sizeof(received->message)) {
        memcpy(&received->message, header, sizeof(received->message));
        received->next = NULL;
        if (vci->channel_messages.first) {
            vci->channel_messages.last->next = received;
        } else {
            vci->channel_messages.first = received;
        }
        vci->channel_messages.last = received;
    } else {
        MPL_free(received);
    }
    return UCS_OK;
}

/* ---- the sender ---- */

/* NONE: no memory. */
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

ucs_status_t MPIDI_ZC_channel_offer(MPIDI_ZC_channel_t * channel, MPIR_Request * sreq,
                                    const char *header, size_t header_length, const void *data,
                                    size_t bytes)
{
    struct MPIDI_ZC_channels *c = channel->vci->channels;
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer_of(channel->rank), channel->vci->number);
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
    const ucs_status_t status = tell(lane->ep, MPIDI_ZC_AM_OFFER, header, header_length, &number,
                                     sizeof(number));
    if (unlikely(status != UCS_OK)) {
        free_offer(c, number);
        return status;
    }
    channel->vci->stats.offered++;
    return UCS_OK;
}

/* By UCP, which tells the receiver where it is. */
static void send_data(const offer_t * offer, MPIDI_ZC_pull_name_t name)
{
    MPIR_Request *sreq = offer->sreq;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(sreq);
    MPIDI_ZC_vci_t *vci = offer->channel->vci;
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer_of(offer->channel->rank), vci->number);
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
        /* No memory; or the connection has just broken, which will be told. */
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

/* There is an endpoint to its sender, since offers wait for one (zc_am.c), unless that could not be
 * made. */
static void answer(MPIDI_ZC_vci_t * vci, const void *offer, MPIDI_ZC_pull_name_t name,
                   uint32_t how)
{
    const MPIDI_ZC_pull_t pull = {.name = name,.number = (uint32_t) (uintptr_t) offer,.how = how };
    MPIDI_ZC_addr_t *peer = peer_of(rank_in(offer));
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);

    MPIDI_ZC_bundle_end(vci);
    MPIDI_ZC_end_job_if(MPIDI_ZC_lane_endpoint(peer, lane, vci->number));
    must_send(tell(lane->ep, MPIDI_ZC_AM_PULL, &pull, sizeof(pull), NULL, 0));
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

static MPIDI_ZC_channel_t *channel_by(struct MPIDI_ZC_channels *c, const zcl_lane_t * connection)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (c->of[rank] && c->of[rank]->connection == connection) {
            return c->of[rank];
        }
    }
    return NULL;
}

static void accepted(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    MPIDI_ZC_channel_t *channel = e->name < (uint64_t) MPIR_Process.size ? c->of[e->name] : NULL;

    if (channel && channel->state == MPIDI_ZC_CHANNEL_LISTENING && !channel->connection) {
        channel->connection = e->lane;
    } else {
        (void) zcl_close(e->lane);
    }
}

static void opened(MPIDI_ZC_channel_t * channel)
{
    const zcl_frame_t confirmation = {.page_class = ZCL_CLASS_NONE };
    const int err = zcl_send(channel->connection, &confirmation, NULL, NULL);

    if (err) {
        refuse_both(channel, strerror(-err));
    } else {
        set_state(channel, MPIDI_ZC_CHANNEL_OPEN);
    }
}

static void broken(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    MPIDI_ZC_channel_t *channel = channel_by(c, e->lane);
    const int err = e->status ? -e->status : ECONNRESET;

    if (!channel) {
        return;                 /* closed, while this was told of */
    }
    close_connection(channel);
    if (channel->state == MPIDI_ZC_CHANNEL_CONNECTING) {
        refuse_both(channel, strerror(err));
    } else if (channel->state == MPIDI_ZC_CHANNEL_LISTENING) {
        /* The other process may take it for open, and then tells why it ends. */
        refuse(channel, strerror(err));
    } else if (channel->state == MPIDI_ZC_CHANNEL_OPEN) {
        set_state(channel, MPIDI_ZC_CHANNEL_REFUSED);
        MPIDI_ZC_peer_lost(channel->rank, strerror(err));
    }
}

static void arrived(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    if (e->frame.id == 0) {
        MPIDI_ZC_channel_t *channel = channel_by(c, e->lane);
        if (channel && channel->state == MPIDI_ZC_CHANNEL_LISTENING) {
            set_state(channel, MPIDI_ZC_CHANNEL_OPEN);
        }
        return;
    }
    c->nr_pulls--;
    MPIDI_ZC_arrival_fetched((MPIDI_ZC_arrival_t *) (uintptr_t) e->frame.id,
                             e->landed ? UCS_ERR_INVALID_PARAM : UCS_OK);
}

static void happened(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    MPIDI_ZC_channel_t *channel;

    switch (e->type) {
        case ZCL_EVENT_ACCEPTED:
            accepted(c, e);
            break;
        case ZCL_EVENT_OPENED:
            channel = channel_by(c, e->lane);
            if (channel && channel->state == MPIDI_ZC_CHANNEL_CONNECTING) {
                opened(channel);
            }
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
            broken(c, e);
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
            happened(c, &events[i]);
        }
    }
    if (unlikely(vci->channel_messages.first)) {
        take_all(vci);
    }
    return MPL_MAX(nr, 0);
}

bool MPIDI_ZC_channels_send(const MPIDI_ZC_vci_t * vci)
{
    return vci->channels && vci->channels->nr_frames > 0;
}

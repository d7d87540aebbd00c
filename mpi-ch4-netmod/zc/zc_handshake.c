/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_foreign.h"
#include "zc_handshake.h"
#include "zc_peer.h"

_Static_assert(MPIDI_ZC_SECRET_BYTES == ZCL_SECRET_BYTES, "another libzclane");

/* A message that has arrived. UCX's callback cannot answer it; zc_am.c explains that. */
typedef struct MPIDI_ZC_received {
    struct MPIDI_ZC_received *next;
    MPIDI_ZC_handshake_t message;
} received_t;

void MPIDI_ZC_handshake_note_refusal(MPIDI_ZC_vci_t * vci, const char *why)
{
    static bool reported;

    vci->stats.channel_refusals++;
    if (!reported && !MPIDI_ZC_global.closing) {
        reported = true;
        fprintf(stderr, "zc: rank %d sends bulk over UCX's connections: it has no channel of its "
                "own to some or all ranks (%s); the statistics count further cases\n",
                MPIR_Process.rank, why);
    }
}

/* False: the message cannot be sent. */
static bool send_message(MPIDI_ZC_vci_t * vci, MPIDI_ZC_addr_t * peer,
                         MPIDI_ZC_handshake_t * message)
{
    if (!peer) {
        return false;
    }
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);

    message->sender = peer->self;
    MPIDI_ZC_bundle_end(vci);
    return MPIDI_ZC_lane_endpoint(peer, lane, vci->number) == MPI_SUCCESS &&
        MPIDI_ZC_channel_send_short(lane->ep, MPIDI_ZC_AM_CHANNEL, message, sizeof(*message),
                                    NULL, 0) == UCS_OK;
}

static bool send_refusal(MPIDI_ZC_vci_t * vci, MPIDI_ZC_addr_t * peer)
{
    MPIDI_ZC_handshake_t message = {.kind = MPIDI_ZC_HANDSHAKE_REFUSE };
    return send_message(vci, peer, &message);
}

/* ---- states ---- */

static bool is_opening(MPIDI_ZC_channel_state_t state)
{
    return state == MPIDI_ZC_CHANNEL_LISTENING || state == MPIDI_ZC_CHANNEL_CONNECTING;
}

static void set_state(MPIDI_ZC_channel_t * channel, MPIDI_ZC_channel_state_t state)
{
    channel->vci->channels->nr_opening += is_opening(state) - is_opening(channel->state);
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
    MPIDI_ZC_handshake_note_refusal(channel->vci, why);
}

/* As refuse(), and sends REFUSE to the other process. If that fails, the other process goes on
 * without a channel as well, but keeps polling for one that never opens. */
static void refuse_both(MPIDI_ZC_channel_t * channel, const char *why)
{
    refuse(channel, why);
    if (!MPIDI_ZC_global.closing) {
        (void) send_refusal(channel->vci, MPIDI_ZC_channel_peer(channel));
    }
}

void MPIDI_ZC_handshake_end(MPIDI_ZC_channel_t * channel)
{
    close_connection(channel);
    set_state(channel, MPIDI_ZC_CHANNEL_REFUSED);
}

/* The process that is lost ends the job, or the connection if it is of another world. */
static void peer_lost(MPIDI_ZC_channel_t * channel, const char *why)
{
    if (channel->foreign) {
        MPIDI_ZC_foreign_lost(channel->foreign);
    } else if (channel->rank >= 0) {
        MPIDI_ZC_peer_lost(channel->rank, why);
    }
}

static bool listens_to(const MPIDI_ZC_channel_t * channel)
{
    size_t length;

    return channel->foreign ?
        MPIDI_ZC_upid_self()->id < MPIDI_ZC_foreign_upid(channel->foreign, &length)->id :
        MPIR_Process.rank < channel->rank;
}

void MPIDI_ZC_handshake_begin(MPIDI_ZC_channel_t * channel)
{
    const struct MPIDI_ZC_channels *c = channel->vci->channels;
    MPIDI_ZC_handshake_t message = {.kind = MPIDI_ZC_HANDSHAKE_ASK };
    const bool listens = listens_to(channel);
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
    if (send_message(channel->vci, MPIDI_ZC_channel_peer(channel), &message)) {
        set_state(channel, listens ? MPIDI_ZC_CHANNEL_LISTENING : MPIDI_ZC_CHANNEL_ASKED);
    } else {
        refuse(channel, "UCX does not send");
    }
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

/* ---- messages ---- */

static void handle_message(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_handshake_t * message)
{
    MPIDI_ZC_channel_t *channel = MPIDI_ZC_channel_of(vci, message->sender);

    if (!channel) {
        return;                 /* the other process goes on without a channel */
    }
    switch (message->kind) {
        case MPIDI_ZC_HANDSHAKE_ASK:
            if (channel->state == MPIDI_ZC_CHANNEL_NONE) {
                MPIDI_ZC_handshake_begin(channel);
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
                peer_lost(channel, "it has refused an open channel");
            } else if (channel->state != MPIDI_ZC_CHANNEL_REFUSED) {
                refuse(channel, "the other rank has refused");
            }
            break;
    }
}

/* This process can have no channels at all. */
static void refuse_message(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_handshake_t * message)
{
    if (message->kind != MPIDI_ZC_HANDSHAKE_REFUSE) {
        (void) send_refusal(vci, message->sender & MPIDI_ZC_FOREIGN ?
                            MPIDI_ZC_foreign_sender(message->sender) :
                            &MPIDI_ZC_AV(&MPIDIU_get_av(0, message->sender)));
    }
}

/* The caller frees it. */
static received_t *take_first(MPIDI_ZC_vci_t * vci)
{
    received_t *first = vci->channel_messages.first;

    vci->channel_messages.first = first->next;
    return first;
}

void MPIDI_ZC_handshake_handle_messages(MPIDI_ZC_vci_t * vci)
{
    while (vci->channel_messages.first) {
        received_t *received = take_first(vci);
        if (MPIDI_ZC_global.closing) {
            /* no channel is opened any more */
        } else if (MPIDI_ZC_channels_of(vci)) {
            handle_message(vci, &received->message);
        } else {
            refuse_message(vci, &received->message);
        }
        MPL_free(received);
    }
}

void MPIDI_ZC_handshake_drop_messages(MPIDI_ZC_vci_t * vci)
{
    while (vci->channel_messages.first) {
        MPL_free(take_first(vci));
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

/* ---- events of libzclane ---- */

void MPIDI_ZC_handshake_accepted(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    MPIDI_ZC_channel_t *channel = MPIDI_ZC_channel_awaiting(c, e->name);

    if (channel) {
        channel->connection = e->lane;
    } else {
        (void) zcl_close(e->lane);
    }
}

void MPIDI_ZC_handshake_opened(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    const zcl_frame_t confirmation = {.page_class = ZCL_CLASS_NONE };
    MPIDI_ZC_channel_t *channel = MPIDI_ZC_channel_by(c, e->lane);

    if (!channel || channel->state != MPIDI_ZC_CHANNEL_CONNECTING) {
        return;
    }
    const int err = zcl_send(channel->connection, &confirmation, NULL, NULL);
    if (err) {
        refuse_both(channel, strerror(-err));
    } else {
        set_state(channel, MPIDI_ZC_CHANNEL_OPEN);
    }
}

void MPIDI_ZC_handshake_confirmed(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    MPIDI_ZC_channel_t *channel = MPIDI_ZC_channel_by(c, e->lane);

    if (channel && channel->state == MPIDI_ZC_CHANNEL_LISTENING) {
        set_state(channel, MPIDI_ZC_CHANNEL_OPEN);
    }
}

void MPIDI_ZC_handshake_broken(struct MPIDI_ZC_channels *c, const zcl_event_t * e)
{
    MPIDI_ZC_channel_t *channel = MPIDI_ZC_channel_by(c, e->lane);
    const int err = e->status ? -e->status : ECONNRESET;

    if (!channel || (channel->rank < 0 && !channel->foreign)) {
        return;                 /* it was closed after libzclane had noticed, or is being closed */
    }
    close_connection(channel);
    if (channel->state == MPIDI_ZC_CHANNEL_CONNECTING) {
        refuse_both(channel, strerror(err));
    } else if (channel->state == MPIDI_ZC_CHANNEL_LISTENING) {
        /* The other process may consider it open, and then reports why it ends. */
        refuse(channel, strerror(err));
    } else if (channel->state == MPIDI_ZC_CHANNEL_OPEN) {
        set_state(channel, MPIDI_ZC_CHANNEL_REFUSED);
        peer_lost(channel, strerror(err));
    }
}

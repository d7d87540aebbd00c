/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_foreign.h"
#include "zc_offer.h"
#include "zc_peer.h"

/* A message that this process offers. Its number is its place in the table. */
typedef struct MPIDI_ZC_offer {
    MPIR_Request *sreq;         /* NULL: a free place */
    MPIDI_ZC_channel_t *channel;
    const void *data;
    size_t bytes;
    bool in_frame;              /* libzclane is sending it */
    uint32_t next_free;
} offer_t;

/* Takes a free place in the table. MPIDI_ZC_NO_OFFER: there is no memory. */
static MPIDI_ZC_offer_number_t new_offer(struct MPIDI_ZC_channels *c)
{
    if (c->free_offers == MPIDI_ZC_NO_OFFER) {
        const uint32_t room = MPL_MAX(16, 2 * c->nr_offers);
        offer_t *offers = MPL_realloc(c->offers, room * sizeof(*offers), MPL_MEM_OTHER);
        if (!offers) {
            return MPIDI_ZC_NO_OFFER;
        }
        for (uint32_t i = room; i-- > c->nr_offers;) {
            offers[i] = (offer_t) {.next_free = c->free_offers };
            c->free_offers = i;
        }
        c->offers = offers;
        c->nr_offers = room;
    }
    const MPIDI_ZC_offer_number_t number = c->free_offers;
    c->free_offers = c->offers[number].next_free;
    return number;
}

static void free_offer(struct MPIDI_ZC_channels *c, MPIDI_ZC_offer_number_t number)
{
    c->offers[number].sreq = NULL;
    c->offers[number].next_free = c->free_offers;
    c->free_offers = number;
}

ucs_status_t MPIDI_ZC_channel_offer(MPIDI_ZC_channel_t * channel, MPIR_Request * sreq,
                                    const char *header, size_t header_length, const void *data,
                                    size_t bytes)
{
    MPIDI_ZC_vci_t *vci = channel->vci;
    struct MPIDI_ZC_channels *c = vci->channels;
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_channel_peer(channel);

    if (unlikely(!peer)) {
        return UCS_ERR_CONNECTION_RESET;        /* of another world, and lost */
    }
    const MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);
    const MPIDI_ZC_offer_number_t number = new_offer(c);
    if (number == MPIDI_ZC_NO_OFFER) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t status = MPIDI_ZC_channel_send_short(lane->ep, MPIDI_ZC_AM_OFFER, header,
                                                      header_length, &number, sizeof(number));
    /* UCX may report the loss of the process in the middle of sending, and the channel has ended. */
    if (status == UCS_OK && unlikely(MPIDI_ZC_foreign_has_failed(peer->foreign))) {
        status = UCS_ERR_CONNECTION_RESET;
    }
    if (unlikely(status != UCS_OK)) {
        free_offer(c, number);
        return status;
    }
    c->offers[number] = (offer_t) {
        .sreq = sreq,
        .channel = channel,
        .data = data,
        .bytes = bytes,
    };
    vci->stats.offered++;
    return UCS_OK;
}

/* Sends the data as DATA, by UCP. */
static void send_data(const offer_t * offer, MPIDI_ZC_pull_name_t name)
{
    MPIR_Request *sreq = offer->sreq;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(sreq);
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_channel_peer(offer->channel);
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_RNDV,
        .cb.send = MPIDI_ZC_am_send_done,
        .user_data = sreq,
    };

    if (unlikely(!peer)) {
        MPIDI_ZC_am_send_over(sreq, UCS_ERR_CONNECTION_RESET);
        return;
    }
    const MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, offer->channel->vci->number);
    const MPIDI_ZC_data_t data = {.sender = peer->self,.name = name };
    memcpy(am->header_inline, &data, sizeof(data));
    ucs_status_ptr_t request = ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_DATA, am->header_inline,
                                               sizeof(data), offer->data, offer->bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        if (likely(!peer->foreign)) {
            MPIDI_ZC_channel_must_send(UCS_PTR_STATUS(request));
        } else if (UCS_PTR_IS_ERR(request)) {
            MPIDI_ZC_foreign_refused(peer->foreign, UCS_PTR_STATUS(request));
        }
        MPIDI_ZC_am_send_over(sreq, UCS_PTR_STATUS(request));
    }
}

/* A token of libzclane is not NULL. */
static void *token_of(MPIDI_ZC_offer_number_t number)
{
    return (void *) ((uintptr_t) number + 1);
}

/* False: the data has to be sent otherwise. */
static bool send_frame(offer_t * offer, MPIDI_ZC_offer_number_t number, MPIDI_ZC_pull_name_t name)
{
    const zcl_frame_t frame = {
        .id = name,
        .len = offer->bytes,
        .page_class = ZCL_CLASS_NONE,
    };

    /* If it fails there is no memory, or the connection has just broken, which an event will
     * report. */
    if (zcl_send(offer->channel->connection, &frame, offer->data, token_of(number)) != 0) {
        return false;
    }
    offer->in_frame = true;
    offer->channel->vci->channels->nr_frames++;
    return true;
}

void MPIDI_ZC_offer_sent(struct MPIDI_ZC_channels *c, void *token, int status)
{
    const MPIDI_ZC_offer_number_t number = (uintptr_t) token - 1;
    MPIR_Request *sreq = c->offers[number].sreq;

    c->nr_frames--;
    free_offer(c, number);
    MPIDI_ZC_am_send_over(sreq, status ? UCS_ERR_CONNECTION_RESET : UCS_OK);
}

/* Is there such an offer to the process that sends as @sender? One to a process of another world
 * may have ended with the connection. */
static bool is_offered(MPIDI_ZC_vci_t * vci, MPIDI_ZC_offer_number_t number, uint64_t sender)
{
    const struct MPIDI_ZC_channels *c = vci->channels;
    const bool exists = c && number < c->nr_offers && c->offers[number].sreq &&
        !c->offers[number].in_frame;

    if (unlikely(sender & MPIDI_ZC_FOREIGN)) {
        const struct MPIDI_ZC_foreign *f = exists ? c->offers[number].channel->foreign : NULL;
        return f && MPIDI_ZC_foreign_is_to_sender(f, sender);
    }
    MPIR_Assert(exists);
    return true;
}

ucs_status_t MPIDI_ZC_pull_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_vci_t *vci = arg;
    struct MPIDI_ZC_channels *c = vci->channels;
    MPIDI_ZC_pull_t pull;

    memcpy(&pull, header, sizeof(pull));
    if (!is_offered(vci, pull.number, pull.sender)) {
        return UCS_OK;
    }
    const offer_t offer = c->offers[pull.number];
    MPIDI_ZC_bundle_end(vci);
    if (pull.how == MPIDI_ZC_PULL_FRAME &&
        likely(send_frame(&c->offers[pull.number], pull.number, pull.name))) {
        return UCS_OK;
    }
    free_offer(c, pull.number);
    if (pull.how == MPIDI_ZC_PULL_NOTHING) {
        MPIDI_ZC_am_send_over(offer.sreq, UCS_OK);
    } else {
        send_data(&offer, pull.name);
    }
    return UCS_OK;
}

void MPIDI_ZC_offers_end(MPIDI_ZC_channel_t * channel)
{
    struct MPIDI_ZC_channels *c = channel->vci->channels;

    for (MPIDI_ZC_offer_number_t n = 0; n < c->nr_offers; n++) {
        MPIR_Request *sreq = c->offers[n].channel == channel ? c->offers[n].sreq : NULL;
        if (sreq) {
            c->nr_frames -= c->offers[n].in_frame;
            free_offer(c, n);
            MPIDI_ZC_am_send_over(sreq, UCS_ERR_CONNECTION_RESET);
        }
    }
}

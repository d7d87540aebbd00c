/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CHANNEL_H_INCLUDED
#define ZC_CHANNEL_H_INCLUDED

/* Channels carry the data of announced messages between processes on different hosts, over TCP
 * connections of libzclane (zcl(7)).
 *
 * UCX announces a message, fetches it and carries it by connections that it shares with all other
 * messages, or by further ones of its own (zc_peer.h). A *channel* replaces these: it is a
 * connection of a pair of processes, for one VCI, that carries data and nothing else. The messages
 * that control the transfer are short active messages of UCP, by the connection of all other
 * messages:
 *
 *   sender                                       receiver
 *      OFFER   header, number of the offer ─────▶  finds a place for the data: zc_arrival.h
 *      ◀───── PULL   that number, name of the data
 *      ══════ frame of that name, by the channel ═▶  straight to its place
 *
 * A PULL can also decline the data, or ask for it as DATA: by UCP, which can unpack while it
 * receives (zc_stream.h).
 *
 * A channel is opened (zc_handshake.h) when the first message is announced to a process. Until it
 * is open, and if it cannot be opened, announced messages travel as without channels.
 *
 * A channel that is open and breaks ends the job, as a connection of UCX does. One to a process of
 * another world ends with the connection to that (zc_foreign.h), and is made on VCI 0 only.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_impl.h"

typedef struct MPIDI_ZC_channel MPIDI_ZC_channel_t;
struct MPIDI_ZC_arrival;

/* ---- offers ----
 *
 * An offer takes the place of UCP's descriptor of a message, which is an address, so that its
 * highest bit is 0:
 *
 *   | 1 | name of the channel, 31 bits | number of the offer, 32 bits |
 *
 * A channel to a rank of this world is named by the rank, one to another world by a number that no
 * other channel of this process ever has. */

MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_is_offer(const void *descriptor)
{
    return (uintptr_t) descriptor >> 63;
}

/* Returns the descriptor of an offer. @number: the payload of the OFFER. */
void *MPIDI_ZC_offer_descriptor(MPIDI_ZC_vci_t * vci, uint64_t sender, const void *number);

/* ---- the sender ---- */

/* Returns the open channel to @peer, or NULL. If there is none, it begins to open one. */
MPIDI_ZC_channel_t *MPIDI_ZC_channel_to(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane,
                                        int vci);

/* Offers @bytes at @data, which stay there until @sreq, an active message of CH4, completes. It
 * copies @header, which is that of the message. */
ucs_status_t MPIDI_ZC_channel_offer(MPIDI_ZC_channel_t * channel, MPIR_Request * sreq,
                                    const char *header, size_t header_length, const void *data,
                                    size_t bytes);

/* ---- the receiver ---- */

/* Asks for the data of an offer, which is the arrival @a. @target: where the data goes; NULL: into
 * the stream of @a. At the end of the transfer it calls MPIDI_ZC_arrival_fetched(). */
void MPIDI_ZC_channel_pull(struct MPIDI_ZC_arrival *a, const void *offer, void *target);

/* Is data awaited that has been asked for on @channel, which may be NULL? */
bool MPIDI_ZC_channel_pulls(const MPIDI_ZC_channel_t * channel);

/* Declines the data of an offer. For its sender the send is then complete. */
void MPIDI_ZC_channel_decline(MPIDI_ZC_vci_t * vci, const void *offer);

/* ---- messages of the netmod itself ---- */

/* Sends a short active message, of which it copies @header and @data. */
ucs_status_t MPIDI_ZC_channel_send_short(ucp_ep_h ep, unsigned id, const void *header,
                                         size_t header_length, const void *data, size_t length);

/* Ends the job if @status is an error: the other process would wait for the message for ever. */
void MPIDI_ZC_channel_must_send(ucs_status_t status);

/* ---- other worlds ---- */

/* The connection that has @channel, which may be NULL, has failed or is being closed: what is under
 * way on the channel ends with an error, and the channel is freed. It is called outside callbacks
 * of libzclane. */
void MPIDI_ZC_channel_end(MPIDI_ZC_channel_t * channel);

/* ---- progress ---- */

/* Makes progress, and returns the number of events. @look: polls even if no transfer is under
 * way. */
unsigned MPIDI_ZC_channels_progress(MPIDI_ZC_vci_t * vci, bool look);

/* Do the channels of this VCI send data? */
bool MPIDI_ZC_channels_send(const MPIDI_ZC_vci_t * vci);

/* Returns a descriptor that is readable while there is something to do. -1: there is no channel.
 * Any thread may call this. */
int MPIDI_ZC_channels_descriptor(const MPIDI_ZC_vci_t * vci);

/* UCP's callbacks for CHANNEL (zc_handshake.c), PULL and DATA. */
ucs_status_t MPIDI_ZC_channel_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_pull_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_data_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param);

void MPIDI_ZC_channels_free(MPIDI_ZC_vci_t * vci);

#endif /* ZC_CHANNEL_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CHANNEL_H_INCLUDED
#define ZC_CHANNEL_H_INCLUDED

/* Bulk between processes on different hosts, over TCP connections of libzclane (zcl(7)).
 *
 * UCX announces a message, fetches it and carries it by connections that it shares with all else,
 * or by further ones of its own (zc_peer.h). A *channel* replaces these: a connection of a pair of
 * processes for each VCI that carries data, and nothing else. What controls the transfer goes by the
 * connection of all else, as short active messages of UCP:
 *
 *   sender                                    receiver
 *      OFFER   header of the message ──────────▶  matched, or landing memory for it: zc_arrival.h
 *      ◀────── PULL  which one, a name for it     where it goes is known by that name
 *      ═══════ frame of that name, by the channel ═▶ straight to there
 *
 *   PULL may also say that the data is not wanted, or that it is to come as DATA: by UCP, which can
 *   unpack while it receives (zc_stream.h).
 *
 * A channel is opened (zc_handshake.h) when the first message is announced to a process. Until it is
 * open, and if it cannot be opened, announced messages travel as without channels.
 *
 * A channel that is open and breaks ends the job, as a connection of UCX's does.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_impl.h"

typedef struct MPIDI_ZC_channel MPIDI_ZC_channel_t;
struct MPIDI_ZC_arrival;

/* ---- offers, as a message's descriptor ----
 *
 *   | 1 | sender's rank, 31 bits | number of the offer, 32 bits |
 *
 * UCP's descriptors are addresses, whose highest bit is 0. */

MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_is_offer(const void *descriptor)
{
    return (uintptr_t) descriptor >> 63;
}

/* @number: of the offer, as it has come. */
void *MPIDI_ZC_offer_descriptor(uint64_t sender, const void *number);

/* ---- the sender ---- */

/* The open channel to @peer, or NULL; one is made if there is none. */
MPIDI_ZC_channel_t *MPIDI_ZC_channel_to(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane,
                                        int vci);

/* Offers @bytes at @data, which stay there until @sreq, an active message of CH4's, completes.
 * @header: of the message, copied. */
ucs_status_t MPIDI_ZC_channel_offer(MPIDI_ZC_channel_t * channel, MPIR_Request * sreq,
                                    const char *header, size_t header_length, const void *data,
                                    size_t bytes);

/* ---- the receiver ---- */

/* Asks for the data of an offer, as @a says. @target: where it goes; NULL: into the stream of
 * @a. MPIDI_ZC_arrival_fetched() tells of its end. */
void MPIDI_ZC_channel_pull(struct MPIDI_ZC_arrival *a, const void *offer, void *target);

/* It is not wanted: its sender is told that all is done. */
void MPIDI_ZC_channel_decline(MPIDI_ZC_vci_t * vci, const void *offer);

/* ---- progress ---- */

/* What is under way; the number of events. @look: even if nothing is known to be. */
unsigned MPIDI_ZC_channels_progress(MPIDI_ZC_vci_t * vci, bool look);

/* Is data being sent, by this VCI's channels? */
bool MPIDI_ZC_channels_send(const MPIDI_ZC_vci_t * vci);

/* Readable while there is something to do; -1: there is no channel. Any thread. */
int MPIDI_ZC_channels_descriptor(const MPIDI_ZC_vci_t * vci);

/* UCP's callbacks. */
ucs_status_t MPIDI_ZC_channel_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_pull_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_data_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param);

void MPIDI_ZC_channels_free(MPIDI_ZC_vci_t * vci);

#endif /* ZC_CHANNEL_H_INCLUDED */

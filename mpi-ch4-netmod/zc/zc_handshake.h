/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HANDSHAKE_H_INCLUDED
#define ZC_HANDSHAKE_H_INCLUDED

/* Two processes open a channel (zc_channel.h) by a handshake. This file is private to zc_channel.c,
 * zc_offer.c and zc_handshake.c.
 *
 * The process that has the first message to announce begins. The lower rank listens, and the higher
 * rank connects (of different worlds: the process with the lower or the higher id):
 *
 *   lower rank                                 higher rank
 *   NONE                                       NONE
 *     │                                          │ it has a message to announce
 *     │   ◀─────────────── ASK ────────────────  ▼
 *     │ ASK, or a message to announce          ASKED
 *     ▼                                          │
 *   LISTENING ──── LISTEN address, secret ────▶  │ from NONE or ASKED
 *     │                                          ▼
 *     │   ◀──── TCP connection, secret ──────  CONNECTING
 *     │                                          │ libzclane has opened it
 *     │   ◀──── frame without data ──────────    ▼
 *     ▼                                        OPEN
 *   OPEN
 *
 * A process that cannot take its next step enters REFUSED and sends REFUSE, upon which the other
 * process enters REFUSED, too. Announced messages then travel as without channels.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate,
 * but outside UCP's callbacks. */

#include <zcl/lane.h>
#include "zc_channel.h"
#include "zc_table.h"
#include "zc_upid.h"

typedef enum {
    MPIDI_ZC_CHANNEL_NONE,
    MPIDI_ZC_CHANNEL_ASKED,
    MPIDI_ZC_CHANNEL_LISTENING,
    MPIDI_ZC_CHANNEL_CONNECTING,
    MPIDI_ZC_CHANNEL_OPEN,
    MPIDI_ZC_CHANNEL_REFUSED,
} MPIDI_ZC_channel_state_t;

struct MPIDI_ZC_channel {
    MPIDI_ZC_channel_state_t state;
    int rank;                   /* -1: of another world */
    struct MPIDI_ZC_foreign *foreign;   /* the connection to that; NULL: it has ended */
    MPIDI_ZC_link_t link;       /* by its name; of another world only */
    MPIDI_ZC_vci_t *vci;
    zcl_lane_t *connection;     /* NULL: there is none yet, or none any more */
    int nr_pulls;               /* arrivals that await data */
};

/* The channels of a VCI. */
struct MPIDI_ZC_channels {
    zcl_t *context;
    int descriptor;
    unsigned char secret[MPIDI_ZC_SECRET_BYTES];
    MPIDI_ZC_channel_t **of;    /* by rank */
    MPIDI_ZC_table_t foreign;   /* to other worlds, by name */
    uint32_t next_name;         /* of the next of those */
    bool in_events;             /* events of libzclane are being handled */
    bool some_ended;            /* meanwhile channels to other worlds have ended */
    bool foreign_ended;         /* at any time a channel to another world has ended */
    struct MPIDI_ZC_offer *offers;      /* by number; zc_offer.c */
    uint32_t nr_offers, free_offers;
    int nr_pulls, nr_frames;    /* that are to be received, and to be sent */
    int nr_opening;             /* channels LISTENING or CONNECTING: polled at intervals */
    int turns;                  /* of progress, since the last of those polls */
};

/* ---- zc_channel.c ---- */

/* Returns the process that @channel leads to. NULL: it is of another world, and the connection has
 * failed or been given up. */
MPIDI_ZC_addr_t *MPIDI_ZC_channel_peer(const MPIDI_ZC_channel_t * channel);

/* Returns the channels of @vci, and makes the table when it is first called. NULL: this process
 * cannot have channels. */
struct MPIDI_ZC_channels *MPIDI_ZC_channels_of(MPIDI_ZC_vci_t * vci);

/* Returns the channel to the process that sends as @sender, and makes an entry if there is none.
 * NULL: there is no memory for it, or no connection to that process. */
MPIDI_ZC_channel_t *MPIDI_ZC_channel_of(MPIDI_ZC_vci_t * vci, uint64_t sender);

/* Returns the channel with @connection, or that waits for a connection of the process with @id, or
 * NULL. */
MPIDI_ZC_channel_t *MPIDI_ZC_channel_by(const struct MPIDI_ZC_channels *c,
                                        const zcl_lane_t * connection);
MPIDI_ZC_channel_t *MPIDI_ZC_channel_awaiting(const struct MPIDI_ZC_channels *c, uint64_t id);

/* ---- zc_handshake.c ---- */

/* Begins to open @channel, which is in state NONE. */
void MPIDI_ZC_handshake_begin(MPIDI_ZC_channel_t * channel);

/* Handles the messages of the peers that have arrived. */
void MPIDI_ZC_handshake_handle_messages(MPIDI_ZC_vci_t * vci);

/* Frees messages that have not been handled. */
void MPIDI_ZC_handshake_drop_messages(MPIDI_ZC_vci_t * vci);

/* libzclane has accepted a connection of the peer, has opened one to the peer, has received a frame
 * without data, or has lost a connection. */
void MPIDI_ZC_handshake_accepted(struct MPIDI_ZC_channels *c, const zcl_event_t * event);
void MPIDI_ZC_handshake_opened(struct MPIDI_ZC_channels *c, const zcl_event_t * event);
void MPIDI_ZC_handshake_confirmed(struct MPIDI_ZC_channels *c, const zcl_event_t * event);
void MPIDI_ZC_handshake_broken(struct MPIDI_ZC_channels *c, const zcl_event_t * event);

/* @channel, to another world, ends. */
void MPIDI_ZC_handshake_end(MPIDI_ZC_channel_t * channel);

/* Counts a channel that could not be opened, and reports the first one on stderr. */
void MPIDI_ZC_handshake_note_refusal(MPIDI_ZC_vci_t * vci, const char *why);

#endif /* ZC_HANDSHAKE_H_INCLUDED */

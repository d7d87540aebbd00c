/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_H
#define LINK_H

/* The path to one peer, and how one side of it leaves and comes back. The *mover* destroys all that
 * it has of UCX, and makes it anew; its *peers* keep theirs.
 *
 *   peer                                                mover
 *   OPEN                                                OPEN
 *     │                                                   │ link_pause(): own sends wait from here
 * on │  ◀──────── PAUSE   number of my last message ──  PAUSING PAUSING   own sends wait from here
 * on                 │ │ all of the mover's messages are here,             │ │ all own ones have
 * been sent                       │ │  ───────── HEARD   number of my last message ─▶   │ all of
 * the peer's messages are here, PAUSED                                                │ all own
 * ones have been sent │                                                 PAUSED │ │ link_detach():
 * the endpoint is gone │ UCX reports a lost connection                   DETACHED │ │
 * link_attach(): to the peer's old address │  ◀──────── REBIND  incarnation, address ───────
 * BINDING │ the incarnation is higher than the last           │ │  ───────── BOUND
 * ─────────────────────────────▶   │ OPEN   what has waited is sent                      OPEN what
 * has waited is sent
 *
 * Messages carry the incarnation of their sender. A REBIND with one that is not higher than the
 * last is that of a stale copy: it is answered with REFUSED, and changes nothing. The copy stays
 * until all peers have answered. If it ended before, UCX 1.13 could end a peer: by an assertion
 * ("got REP message"), if the connection is lost while UCX's own reply to it waits to be sent.
 *
 * Sequence numbers go on across all that. A message that overtakes another waits for it. All
 * functions are called inside the lock of UCX. */

#include "lanes.h"
#include "ucx.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LINK_OPEN,
    LINK_PAUSING,
    LINK_PAUSED,
    LINK_DETACHED,
    LINK_BINDING,
    LINK_REFUSED, /* the peer has answered REFUSED */
} link_state_t;

struct message;
struct early;

typedef struct link {
    struct rank *rank;
    uint32_t peer;
    link_state_t state;
    bool moves;              /* this side is the mover */
    ucp_ep_h ep;             /* NULL: none */
    bool ep_lost;            /* UCX has said so */
    bool heard;              /* mover: HEARD has arrived */
    bool told;               /* mover: that REFUSED has arrived has been said */
    uint32_t incarnation;    /* of the peer */
    uint64_t sent, received; /* messages with numbers 1 to these */
    uint64_t peer_sent;      /* as PAUSE, HEARD or LAST say */
    unsigned under_way;      /* sends, control messages as well, that UCX has not completed */
    unsigned fetching;       /* announced messages */
    struct message *parked, **parked_end;
    unsigned nr_parked;
    struct early *early; /* by their numbers */
    char *address;       /* owned */
    size_t address_length;
    bool last, done;    /* the peer has sent LAST, DONE */
    uint64_t overtaken; /* messages that have waited for another */
    zcl_lane_t *lane;   /* NULL: none */
    bool lane_open;
    uint64_t by_lane; /* messages that have come by it */
} link_t;

/* A REBIND that has arrived: UCX makes no endpoint inside a callback. */
typedef struct rebind {
    struct rebind *next;
    uint32_t peer, incarnation;
    size_t length;
    char address[];
} rebind_t;

/* A process. */
typedef struct rank {
    ucx_t ucx;
    uint32_t self, size;
    uint32_t incarnation;
    link_t *links; /* by rank; its own is not used */
    rebind_t *rebinds;
    bool by_force;       /* endpoints have error handling, and are closed by force */
    uint64_t refusals;   /* of stale copies */
    zcl_way_t lanes_way; /* ZCL_WAY_AUTO: no lanes */
    zcl_t *lanes;
    lanes_address_t lanes_address;
    struct closing *closing; /* endpoints that UCX has not closed yet */
    char *gone;              /* owned: the address before this process left; NULL: it never has */
    size_t gone_length;
    bool misleads; /* each peer first gets a REBIND with that address, as of a copy that has gone */
} rank_t;

/* UCX's handlers, for ucx_open() with a rank_t. */
extern const ucx_handler_t link_handlers[];
enum { LINK_HANDLERS = 2 };

void link_init(rank_t *rank, link_t *link, uint32_t peer);

/* Returns what peers need to reach this process: the address of its lanes, then that of UCX. The
 * caller frees it. */
char *rank_address(const rank_t *rank, size_t *length);

/* For lanes.h: a message has come whole; one has been sent. */
void link_long_arrived(link_t *link, uint64_t number, const void *data, size_t length);
void link_long_sent(void *token, int status);

/* Makes the endpoint. The address is set. */
void link_connect(link_t *link);

/* May the program send another message? False: enough are under way, or wait. */
bool link_accepts(const link_t *link);

/* Sends the next message; it waits while the link is not open. */
void link_send(link_t *link);

/* Tells the peer that no message follows, and that no one is waited for. */
void link_send_last(link_t *link);
void link_send_done(link_t *link);

/* Has everything been sent and received? After LAST. */
bool link_is_complete(const link_t *link);

void link_pause(link_t *link);
void link_detach(link_t *link);
void link_attach(link_t *link);

/* Goes on from state to state, outside UCX's callbacks. */
void rank_tend(rank_t *rank);

/* Are the links of all peers in @state? */
bool rank_all(const rank_t *rank, link_state_t state);

#endif

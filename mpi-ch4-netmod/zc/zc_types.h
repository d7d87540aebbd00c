/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TYPES_H_INCLUDED
#define ZC_TYPES_H_INCLUDED

#include <pthread.h>
#include <stdbool.h>
#include <ucp/api/ucp.h>
#include <zc/zc.h>
#include <zcp/predictor.h>
#include "zc_burst.h"
#include "zc_idle.h"
#include "zc_params.h"
#include "zc_pre.h"
#include "zc_transport.h"
#include "zc_unexpected.h"
#include "zc_weigh.h"

/* The counters of this rank. Messages below the rendezvous threshold are not counted among those
 * that landed or were delivered. */
typedef struct {
    uint64_t messages_direct, bytes_direct;     /* matched: written to the user buffer */
    uint64_t messages_rebound;  /* landed, and the bulk exchanged */
    uint64_t messages_copied;   /* landed, and all copied */
    uint64_t bytes_rebound, bytes_copied;
    uint64_t landed;            /* messages taken off the wire before their match */
    uint64_t landed_by_thread;  /* of those, taken by the landing thread */
    uint64_t bounced;           /* matched, but not contiguous or truncated: via a buffer */
    uint64_t streamed;          /* sent or bounced through a window: zc_stream.h */
    uint64_t budget_refusals;   /* left at the sender for lack of landing memory */
    uint64_t left_at_sender;    /* because fetching them later is faster: zc_weigh.h */
    uint64_t reordered;         /* messages that overtook another */
    uint64_t bundles, bundled;  /* packets of several short sends, and messages in them */
    uint64_t thread_wakeups, thread_looks;
    uint64_t atomics;
    uint64_t endpoints;         /* made, to processes of this world */
    uint64_t foreign_endpoints; /* made, to processes of other worlds, without shared memory's */
    uint64_t foreign_shared;    /* of those, gone on over shared memory */
    uint64_t bulk_endpoints;    /* of those of this world, for bulk */
    uint64_t bulk_refusals;     /* could not be made: bulk shares a connection */
    uint64_t channels;          /* opened */
    uint64_t channel_refusals;  /* could not be opened: bulk travels by UCX */
    uint64_t offered;           /* messages announced on channels */
    uint64_t unexpected;        /* messages that came before their receive, of any size */
    uint64_t unexpected_max;    /* most of them at a time */
    uint64_t unexpected_bytes, unexpected_bytes_max;    /* of the budget: now, and at most */
    uint64_t senders_held;      /* messages announced for lack of credit, and not expected */
    uint64_t unexpected_refusals;       /* of those, left at the sender until matched */
    uint64_t credit_packets;
    uint64_t window_growth;     /* of all VCIs' windows together; only in reports */
    uint64_t detachments;       /* this rank has left, and all of UCX was destroyed */
    uint64_t detach_refusals;   /* it was told to leave, and has not */
    uint64_t detached_us;       /* from destroying UCX to having made it anew, together */
    uint64_t parked;            /* messages that waited until a rank had come back */
    uint64_t window_keys;       /* of ranks that had left since the window was made, received anew */
    uint64_t window_refusals;   /* of these, there was none to be had: active messages go on */
    uint64_t unwatched;         /* times that a process of another world left whose end is not noticed */
} MPIDI_ZC_stats_t;

/* Lists of arrivals; see zc_arrival.h. */
typedef struct {
    struct MPIDI_ZC_arrival *first;
    struct MPIDI_ZC_arrival *last;
} MPIDI_ZC_arrivals_t;

typedef struct MPIDI_ZC_unconnected MPIDI_ZC_unconnected_t;

/* The bundle that is being filled; see zc_bundle.h. */
typedef struct {
    MPIDI_ZC_lane_t *lane;      /* of the last send; NULL: there has been progress since */
    unsigned followers;         /* messages of the burst after its first */
    unsigned waiting;           /* of the followers, those in the packet */
    uint64_t since;             /* ns: when the oldest message began to wait; where none waits,
                                 * when the last follower was sent */
    uint64_t begun;             /* ns: when the first follower was sent that did not wait */
    size_t length;              /* of what is in the packet */
    struct MPIDI_ZC_packet *packet;     /* NULL: none yet, or UCP still reads it */
    MPIR_Request *request;      /* of all messages that wait */
    MPIDI_ZC_burst_t burst;
} MPIDI_ZC_bundle_t;

/* What a callback of UCP may take over. It is on the callback's stack. There are several if a message
 * of another process has this one send itself an answer, which UCP hands over while it is sent. */
typedef struct MPIDI_ZC_offered {
    void *descriptor;           /* NULL: there is none, or it has been declined */
    struct MPIDI_ZC_offered *outer;     /* that of the callback in which this one runs */
} MPIDI_ZC_offered_t;

/* A VCI: a UCP worker and the state of its messages. It is used inside the lock of the VCI, or by
 * the landing thread inside the gate. A report sums the counters of all VCIs. */
typedef struct {
    ucp_worker_h worker;
    int number;
    MPIDI_ZC_idle_t idle;
    MPIDI_ZC_unexpected_t unexpected;   /* messages not yet matched */
    struct {
        MPIDI_ZC_message_t *first, *last;
    } fetching;                 /* messages of other worlds that have been asked for: zc_match.c */
    bool announce_next;         /* the send that CH4 is about to make has no credit */
    bool has_losses;            /* connections to other worlds have been lost: they are dead when no
                                 * events are left */
    bool has_dead;              /* some are dead */
    int nr_held;                /* sends announced for lack of credit that were not asked for yet */
    MPIDI_ZC_arrivals_t arrivals;       /* messages not yet delivered */
    MPIDI_ZC_arrivals_t queued; /* those that wait for landing memory, the oldest first */
    unsigned seen_releases;     /* when the line was last tried */
    MPIDI_ZC_weigh_t weigh;
    MPIDI_ZC_times_t far_transfers, near_transfers;     /* of sends, from other hosts, this one */
    int nr_fetching;            /* transfers that this process has asked a sender for */
    int nr_landing;             /* of those, into landing memory */
    int nr_announced;           /* sends that have been announced and not fetched yet */
    struct MPIDI_ZC_arrival *free_arrivals;
    bool in_callbacks;          /* UCP makes progress, and may be calling back */
    bool to_do;                 /* MPIDI_ZC_connect_back() is to be called: */
    MPIDI_ZC_unconnected_t *unconnected;        /* senders of messages that wait for endpoints */
    /* atomic: connections that end, and those whose process has died: zc_foreign_vcis.h */
    struct MPIDI_ZC_foreign *given_up, *lost;
    bool has_ends;              /* atomic: there are some */
    struct MPIDI_ZC_offered *offered;   /* what UCP's callbacks that are running may take over, the
                                         * innermost first */
    size_t whole_bytes;         /* of messages packed as a whole: zc_stream.h */
    zcp_t *predictor;
    MPIDI_ZC_lane_t *lanes;     /* by rank; NULL: VCI 0, whose are in CH4's table */
    struct {
        ucp_ep_h *eps;          /* from 1 on; owned */
        uint32_t nr, room;
    } bulk;                     /* endpoints for bulk: zc_peer.h */
    struct MPIDI_ZC_channels *channels; /* NULL: none yet, or none; read by any thread */
    struct {
        struct MPIDI_ZC_received *first, *last;
    } channel_messages;         /* handshakes that have arrived, to be handled outside UCP's
                                 * callback */
    MPIDI_ZC_stats_t stats;
    MPIDI_ZC_bundle_t bundle;

    ucp_address_t *address;
    size_t address_length;
    struct MPIDI_ZC_upid *net;  /* what other worlds get, net_length bytes; owned; NULL: not asked for
                                 * yet */
    size_t net_length;
    int wakeup_fd;
} __attribute__ ((aligned(64))) MPIDI_ZC_vci_t;

typedef struct {
    ucp_context_h context;
    ucp_datatype_t stream_type; /* zc_stream.h; 0: not made */
    MPIDI_ZC_transport_t transport;
    bool errors_near;           /* endpoints over shared memory can have error handling */
    MPIDI_ZC_vci_t vcis[MPIDI_CH4_MAX_VCIS];    /* MPIDI_global.n_vcis of them */
    struct MPIDI_ZC_upid *world;        /* of all ranks, stride world_stride; VCI 0's address.
                                         * Shared by the ranks of this host, as are: */
    size_t world_stride;
    struct MPIDI_ZC_upid *nets; /* the same for other worlds, stride net_stride */
    size_t net_stride;
    char *lane_addresses;       /* of all ranks' other VCIs, stride lane_stride */
    size_t lane_stride;
    size_t max_am_header;       /* CH4's share of UCP's longest user header */
    struct MPIDI_ZC_path **paths;       /* by rank, and behind them those to processes of other
                                         * worlds; NULL: no rank ever leaves (zc_path.h) */

    zc_t *landing;              /* of all VCIs */
    unsigned releases;          /* atomic: how often landing memory has been released; wraps */
    int32_t window;             /* of flow control: that each sender begins with; zc_flow.h */
    size_t window_growth;       /* by which all windows may grow, together */
    size_t granted;             /* atomic: by which they have grown */
    size_t begun;               /* atomic: of that, what those of other worlds have begun with */
    MPIDI_ZC_params_t params;

    bool closing;               /* in finalize: nothing new is landed */
    bool rank_died;             /* in finalize: no rank waits for any other from here on */
    bool over;                  /* UCP's callbacks have nothing to do any more */

    /* Signals of the teardown barrier that have been received, by round. */
    int teardown_signals[32];

    bool in_landing_thread;     /* the landing thread is the one that makes progress */
    int watching;               /* atomic: the landing thread looks every few milliseconds */
    bool listening;             /* atomic: it sleeps until there is an event of the network */
    bool timer_wanted;          /* atomic: the application shall set the timer when it leaves MPI */
    bool landing_thread_running;
    pthread_t landing_thread;
    int wakeup_timer_fd;        /* wakes the landing thread */
} MPIDI_ZC_global_t;

extern MPIDI_ZC_global_t MPIDI_ZC_global __attribute__ ((visibility("hidden")));

#define MPIDI_ZC_VCI(number) MPIDI_ZC_global.vcis[number]
#define MPIDI_ZC_AV(av) ((av)->netmod.zc)
#define MPIDI_ZC_AM_REQUEST(req) ((req)->dev.ch4.am.netmod_am.zc)
#define MPIDI_ZC_PART_REQUEST(req) MPIDI_PART_REQUEST(req, netmod.zc)

#endif /* ZC_TYPES_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TYPES_H_INCLUDED
#define ZC_TYPES_H_INCLUDED

#include <pthread.h>
#include <stdbool.h>
#include <ucp/api/ucp.h>
#include <zc/zc.h>
#include <zcp/predictor.h>
#include "zc_bundle.h"
#include "zc_idle.h"
#include "zc_pre.h"
#include "zc_transport.h"

/* UCP active-message identifiers. */
enum {
    MPIDI_ZC_AM_MESSAGE = 0,    /* everything of CH4 but */
    MPIDI_ZC_AM_EAGER = 3,      /* eager sends, zc_eager.h */
    MPIDI_ZC_AM_TEARDOWN = 1,   /* the barrier of finalize */
    MPIDI_ZC_AM_REPORT = 2,     /* statistics, to rank 0 */
    MPIDI_ZC_AM_DYNAMIC = 4,    /* before there is a communicator: zc_spawn.c */
    MPIDI_ZC_AM_BYE = 5,        /* end of a connection: zc_foreign.c */
    MPIDI_ZC_AM_NEAR = 6,       /* an address that reaches over shared memory: zc_foreign.c */
    MPIDI_ZC_AM_BUNDLE = 7,     /* several short sends, zc_bundle.h */
};

/* Counters of this rank. Messages below the
 * rendezvous threshold are not counted: they are not what zc is about. */
typedef struct {
    uint64_t messages_direct, bytes_direct;     /* matched: written to the user buffer */
    uint64_t messages_rebound;  /* landed, and the bulk exchanged */
    uint64_t messages_copied;   /* landed, and all copied */
    uint64_t bytes_rebound, bytes_copied;
    uint64_t landed;            /* messages taken off the wire before their match */
    uint64_t landed_by_thread;  /* of those, taken by the landing thread */
    uint64_t bounced;           /* matched, but not contiguous or truncated: via a buffer */
    uint64_t budget_refusals;   /* left at the sender for lack of landing memory */
    uint64_t reordered;         /* messages that overtook another */
    uint64_t bundles, bundled;  /* packets of several short sends, and messages in them */
    uint64_t thread_wakeups;
    uint64_t atomics;
} MPIDI_ZC_stats_t;

typedef struct {
    size_t rndv_threshold;      /* bytes from which a message is announced first */
    size_t one_copy_threshold;  /* the same where the kernel copies from process to process */
    size_t min_threshold, max_threshold;        /* of the two */
    size_t landing_threshold;   /* bytes from which an unexpected message lands */
    size_t landing_budget;
    uint32_t means;             /* of libzc, bits */
    zcp_kind_t predictor;
    int horizon;
    bool landing_thread;
    bool landing_thread_rests;  /* while there is no processor to spare */
    bool intra_node;            /* land what comes from this host, too */
    bool atomics;               /* UCX's, in windows within one host */
    bool far_atomics;           /* and in others */
    bool bundle;                /* send short messages together where that pays */
    bool bundle_always;         /* and where it does not */
    bool calibrate;             /* measure in this process what rebinding costs */
    char *stats_file;           /* owned; NULL: none */
} MPIDI_ZC_params_t;

/* Lists of arrivals; see zc_arrival.h. */
typedef struct {
    struct MPIDI_ZC_arrival *first;
    struct MPIDI_ZC_arrival *last;
} MPIDI_ZC_arrivals_t;

/* One UCP worker and all that comes over it. Used inside the lock of the VCI, by the
 * landing thread inside the gate. The counters are summed up when somebody asks. */
typedef struct {
    ucp_worker_h worker;
    int number;
    MPIDI_ZC_idle_t idle;
    MPIDI_ZC_arrivals_t arrivals;       /* messages not yet delivered */
    MPIDI_ZC_arrivals_t queued; /* of those, in line for landing memory, oldest first */
    unsigned seen_releases;     /* when the line was last tried */
    int nr_fetching;            /* transfers that we have asked a sender for */
    int nr_landing;             /* of those, into landing memory */
    int nr_announced;           /* sends that a receiver has been told of, and not fetched */
    struct MPIDI_ZC_arrival *free_arrivals;
    zcp_t *predictor;
    MPIDI_ZC_lane_t *lanes;     /* by rank; NULL: VCI 0, whose are in CH4's table */
    MPIDI_ZC_stats_t stats;
    MPIDI_ZC_bundle_t bundle;

    ucp_address_t *address;
    size_t address_length;
    int wakeup_fd;
} __attribute__ ((aligned(64))) MPIDI_ZC_vci_t;

typedef struct {
    ucp_context_h context;
    MPIDI_ZC_transport_t transport;
    MPIDI_ZC_vci_t vcis[MPIDI_CH4_MAX_VCIS];    /* MPIDI_global.n_vcis of them */
    struct MPIDI_ZC_upid *world;        /* of all ranks, stride world_stride; VCI 0's address */
    size_t world_stride;
    char *lane_addresses;       /* of all ranks' other VCIs, stride lane_stride */
    size_t lane_stride;
    size_t max_am_header;       /* CH4's share of UCP's longest user header */

    zc_t *landing;              /* of all VCIs */
    unsigned releases;          /* atomic: how often landing memory came free; wraps */
    MPIDI_ZC_params_t params;

    bool closing;               /* in finalize: nothing new is landed */
    bool deserted;              /* in finalize: a rank has died, nobody waits for anybody */
    bool over;                  /* what UCP still has to say concerns nobody */

    /* Rounds of the teardown barrier that each distance has been heard from. */
    int teardown_heard[32];

    bool in_landing_thread;     /* who is progressing */
    int watching;               /* atomic: the landing thread looks every few milliseconds */
    bool landing_thread_running;
    pthread_t landing_thread;
    int bell_fd;                /* timer that wakes the landing thread */
} MPIDI_ZC_global_t;

extern MPIDI_ZC_global_t MPIDI_ZC_global __attribute__ ((visibility("hidden")));

#define MPIDI_ZC_VCI(number) MPIDI_ZC_global.vcis[number]
#define MPIDI_ZC_AV(av) ((av)->netmod.zc)
#define MPIDI_ZC_AM_REQUEST(req) ((req)->dev.ch4.am.netmod_am.zc)

#endif /* ZC_TYPES_H_INCLUDED */

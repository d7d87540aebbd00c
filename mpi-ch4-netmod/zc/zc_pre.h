/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PRE_H_INCLUDED
#define ZC_PRE_H_INCLUDED

/* CH4 embeds the types of this file in its own objects, and includes it before those exist. */

#include <stdbool.h>
#include <stdint.h>
#include <ucp/api/ucp.h>
#include "zc_wire.h"

/* CH4's headers are at most this long, except for a few of RMA. */
#define MPIDI_ZC_INLINE_AM_HEADER 80

struct MPIDI_ZC_arrival;
struct MPIR_Request;

/* The place of a request in a list of those that wait for a process of another world:
 * zc_foreign.h. */
typedef struct {
    struct MPIR_Request *next, **at;    /* at: NULL: it is in none */
} MPIDI_ZC_waiting_t;

#define MPIDI_ZC_INLINE (sizeof(MPIDI_ZC_am_header_t) + MPIDI_ZC_INLINE_AM_HEADER)

/* The netmod's part of a request that CH4's active-message layer owns. The request is a receive,
 * or a send whose header UCP may read until the send completes. */
typedef struct {
    union {
        char header_inline[MPIDI_ZC_INLINE];
        MPIDI_ZC_waiting_t answer;      /* send that has been announced, or receive */
    };
    MPIDI_ZC_waiting_t ack;     /* send: synchronous; or of one-sided communication */
    struct MPIDI_ZC_message *message;   /* MPI_Mprobe: the message that it has matched; owned */
    union {
        struct MPIDI_ZC_stream *stream; /* send: non-contiguous data, owned */
        struct MPIDI_ZC_packet *packet; /* send: zc_bundle.c, owned */
    };
    char *header;               /* send: points to header_inline or is owned */
    uint16_t handler_id;
    bool announced:1;           /* send: counted in nr_announced */
    bool native:1;              /* one-sided operation: UCX does it */
    bool data_is_sent:1;        /* the same: its target has asked for what follows the datatype */
    bool lost:1;                /* the same: its target is lost: zc_outstanding.h */
    uint8_t vci;                /* send: its VCI */
    int32_t path_to;            /* send: counted for the path of this number (zc_path.h); -1: not */
} MPIDI_ZC_am_request_t;

typedef struct {
    int dummy;
} MPIDI_ZC_request_t;

typedef struct {
    int dummy;
} MPIDI_ZC_comm_t;

typedef struct {
    int dummy;
} MPIDI_ZC_dt_t;

typedef struct {
    int dummy;
} MPIDI_ZC_op_t;

/* The memory of one process of a window. */
typedef struct {
    const char *packed;         /* its key, until the first use; NULL: none, or used. When the process
                                 * has died, none that can be used */
    ucp_ep_h ep;                /* that the key is for; messages may use another one by now */
    ucp_rkey_h rkey;            /* NULL: not used yet, or only active messages get there */
    bool lost;                  /* it has a key, which could not be unpacked */
    uint64_t base;
    int disp_unit;
    int path;                   /* to the process, where ranks may leave: zc_path.h; -1: there is none */
    uint64_t started, flushed;  /* operations, and how many of them have been waited for */
} MPIDI_ZC_target_t;

/* The last key to that memory that has arrived, where ranks may leave: zc_windows.h. */
typedef struct {
    const char *packed;         /* NULL: there was none when the window was made */
    char *copy;                 /* owned; NULL: it is the one of when the window was made */
    uint32_t incarnation;       /* of the target, that it is of */
    bool asked;                 /* for one of the incarnation that the target has now */
} MPIDI_ZC_key_t;

typedef struct {
    MPIDI_ZC_target_t *targets; /* by rank; NULL: active messages only */
    char *keys;                 /* packed, of all targets */
    ucp_mem_h memory;           /* this process's own, as registered */
    uint64_t started, flushed;  /* of all targets together */
    bool atomics;               /* UCX does accumulates where it can: zc_atomic.h */
    uint32_t number;            /* of this window, among those that this process has ever had */
    MPIDI_ZC_key_t *latest;     /* of all targets; NULL: no rank ever leaves */
    struct MPIR_Win *next;      /* that UCX reaches, of this process: zc_windows.h */
    struct MPIR_Win *next_of_vci;       /* with processes of other worlds: zc_members.h */
} MPIDI_ZC_win_t;

/* The netmod's part of a partitioned request. */
typedef union {
    MPIDI_ZC_waiting_t waiting; /* from its first start on */
    uint64_t sender;            /* one of CH4's, for a SEND_INIT that waits for its receive */
} MPIDI_ZC_part_t;

typedef struct {
    int dummy;
} MPIDI_ZC_Global_t;

struct MPIDI_ZC_early;
struct MPIDI_ZC_foreign;

/* The messages of one sender. Flow control (zc_flow.h) counts the last three members, in bytes. */
typedef struct {
    uint32_t next;              /* sequence expected next */
    uint32_t window;
    struct MPIDI_ZC_early *early;       /* messages that overtook another, a ring in the order of
                                         * their sequence numbers: the last, which is followed by
                                         * the first */
    uint32_t owed;
    uint32_t held;
} MPIDI_ZC_inbound_t;

/* The path between a VCI of this process and the VCI of the same number of a peer. No message goes
 * from one number to another, since CH4 gives each communicator one number. */
typedef struct {
    ucp_ep_h ep;                /* NULL: not made yet */
    uint32_t next_send;         /* sequence of the next message */
    uint16_t short_max;         /* data of up to so many bytes is sent as one packet */
    bool one_copy:1;            /* MPIDI_ZC_transport_t */
    bool bundles:1;             /* short messages may wait for each other: zc_bundle.h */
    bool bulk_apart:1;          /* bulk has endpoints of its own: zc_peer.h */
    bool channels:1;            /* bulk may use a channel: zc_channel.h */
    bool paused:1;              /* messages are parked: zc_path.h */
    uint8_t shared_left;        /* what is announced before bulk has an endpoint of its own, in
                                 * MPIDI_ZC_SHARED_UNIT: zc_peer.h */
    MPIDI_ZC_inbound_t inbound; /* of a peer in this MPI_COMM_WORLD */
    int32_t credit;             /* bytes that the receiver has room for: zc_flow.h */
    uint32_t bulk;              /* the place of its endpoint in MPIDI_ZC_vci_t; 0: there is none */
} MPIDI_ZC_lane_t;

/* A peer, in CH4's address vector. */
typedef struct {
    MPIDI_ZC_lane_t lane;       /* of VCI 0; all others: MPIDI_ZC_vci_t */
    uint64_t self;              /* `sender` in the messages of this process */
    struct MPIDI_ZC_foreign *foreign;   /* of a peer in another MPI_COMM_WORLD: zc_foreign.h */
} MPIDI_ZC_addr_t;

#endif /* ZC_PRE_H_INCLUDED */

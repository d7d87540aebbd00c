/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PATH_H_INCLUDED
#define ZC_PATH_H_INCLUDED

/* The path between this process and a rank, while one of the two leaves and comes back with another
 * address. The *mover* leaves (zc_detach.h), its *peers* are all other ranks: any of them may be
 * about to make a connection. There are paths only with MPIR_CVAR_CH4_ZC_DETACH.
 *
 *   peer                                                      mover
 *   OPEN                                                      OPEN
 *     │                                                         │ told to leave: parks from here on
 *     │   ◀────── PAUSE    number of the next message ────── PAUSING
 *   PAUSING   parks from here on                                │
 *     │   ─────── PARKS    number of the next message ──────▶   │
 *     │                                                         │ all of the peer's messages are here,
 *     │   ◀────── FETCHED ─────────────────────────────────── FETCHED   fetched if announced
 *     │ UCX has completed all own sends;                        │
 *     │ all of the mover's messages are here, and fetched       │
 *   PAUSED ────── HEARD ────────────────────────────────────▶ PAUSED    UCX has completed all own
 *     │                                                         │       sends: no packet is under way
 *     │ UCX may report that the connection is lost              │ of all paths: UCX is destroyed, and
 *     │                                                         │ made anew when the token has come
 *     │   ◀────── REBIND   incarnation, new address ──────── BINDING
 *     │ the old endpoint is closed, a new one is made           │
 *   OPEN  ─────── BOUND ────────────────────────────────────▶ OPEN
 *     what was parked is sent                                   what was parked is sent
 *
 * Until the mover is detached it may stay: RESUME opens the peer's path again, on the endpoint that
 * there is. A peer answers PAUSE with REFUSE if it cannot let the mover go, and REBIND with STALE,
 * changing nothing, if the incarnation is not higher than the last, or the path is not PAUSED. Then
 * the mover's path is STALE until UCX has been destroyed: not before all peers have answered, since
 * UCP 1.13 may end a process when it loses a connection that it has not answered yet.
 *
 * Messages keep their numbers over all that. UCP keeps the order of PAUSE to HEARD and of all else
 * that is one fragment, so FETCHED comes behind what completes the peer's sends, and HEARD behind what
 * completes the mover's. Announced messages may have connections of their own (zc_peer.h), which have
 * their own order: both sides count those sends, and are PAUSED when UCP has completed them, and has
 * flushed their endpoints, so that none is still being connected.
 *
 * All functions are called inside the lock of VCI 0, or by the landing thread inside the gate, and
 * outside callbacks of UCP unless their comment says otherwise. */

#include "zc_impl.h"
#include "zc_parked.h"
#include "zc_upid.h"

typedef enum {
    MPIDI_ZC_PATH_OPEN,
    MPIDI_ZC_PATH_PAUSING,
    MPIDI_ZC_PATH_HAS_FETCHED,  /* mover */
    MPIDI_ZC_PATH_PAUSED,
    MPIDI_ZC_PATH_BINDING,      /* mover */
    MPIDI_ZC_PATH_STALE,        /* mover */
} MPIDI_ZC_path_state_t;

typedef struct MPIDI_ZC_path {
    MPIDI_ZC_path_state_t state;
    bool leaves_here;           /* this process is the mover */
    bool numbered;              /* mover: PARKS has arrived */
    bool fetched;               /* peer: FETCHED has arrived */
    bool heard;                 /* mover: HEARD has arrived */
    bool flush_began;           /* of the endpoints for bulk, since the path is PAUSING */
    uint32_t flushing;          /* how many of them UCP still flushes */
    uint32_t bulk_sends;        /* over those, that UCP has not completed */
    uint32_t nr_bulk;
    ucp_ep_h bulk[2];           /* one is not used: zc_peer.h */
    uint32_t round;             /* of the mover's attempts */
    uint32_t own_next;          /* number of the first message that was parked, or will be */
    uint32_t next;              /* the same of the other process */
    uint32_t incarnation;       /* of the other process */
    uint32_t untold;            /* bits: kinds of messages that there was no memory for */
    MPIDI_ZC_refusal_t refusal; /* peer: why it refuses; mover: why the peer does */
    ucp_ep_h ep;                /* while the lane has none: of control messages; NULL: DETACHED */
    MPIDI_ZC_upid_t *upid;      /* of its later incarnations; owned; NULL: the first */
    size_t upid_length;
    MPIDI_ZC_parked_list_t parked;
} MPIDI_ZC_path_t;

/* Makes the paths to all ranks. */
int MPIDI_ZC_paths_init(void);
void MPIDI_ZC_paths_free(void);

/* Returns what is parked for @rank. It is called in callbacks, too. */
MPIDI_ZC_parked_list_t *MPIDI_ZC_path_parked(int rank);

/* Returns the upid that a rank which has come back has now, and its length. NULL: it has never left.
 * Any thread in MPI may call this. */
const MPIDI_ZC_upid_t *MPIDI_ZC_path_upid(int rank, size_t * length);

/* Keeps @address, @length bytes long, as that of @rank. */
int MPIDI_ZC_path_keep_upid(int rank, const void *address, size_t length);

/* Notes an endpoint for bulk to @rank, which has been made. */
void MPIDI_ZC_path_add_bulk(int rank, ucp_ep_h ep);

/* Is it as it should be that the connection @ep to @rank is lost? It is called in callbacks. */
bool MPIDI_ZC_path_expects_loss(int rank, ucp_ep_h ep);

/* Handles the messages that have arrived, and takes the steps that are possible. */
void MPIDI_ZC_paths_progress(void);

/* ---- the mover ---- */

/* Pauses all paths, which are open. False: a connection cannot be made, and nothing is paused. */
bool MPIDI_ZC_paths_pause(uint32_t round);

/* Opens all paths again that are not bound yet, since this process stays. */
void MPIDI_ZC_paths_resume(void);

/* Are all paths PAUSED, and have all messages of this process to itself arrived? */
bool MPIDI_ZC_paths_quiet(void);

/* Returns why this process cannot leave, or NULL. *@rank: the rank that is the reason, or -1. */
const char *MPIDI_ZC_paths_obstacle(int *rank);

/* Returns a rank whose path is not PAUSED, or -1. */
int MPIDI_ZC_paths_silent(void);

/* UCX has been destroyed, and all endpoints with it. */
void MPIDI_ZC_paths_forget_endpoints(void);

/* Sends all ranks the new address, as @incarnation. */
int MPIDI_ZC_paths_bind(uint32_t incarnation);

typedef enum {
    MPIDI_ZC_BINDING_AWAITED,   /* not all ranks have answered */
    MPIDI_ZC_BINDING_DONE,      /* all ranks have accepted it: all paths are open */
    MPIDI_ZC_BINDING_STALE,     /* all ranks have accepted another copy of this rank */
    MPIDI_ZC_BINDING_SPLIT,     /* some ranks have accepted this copy, and some another one */
} MPIDI_ZC_binding_t;

/* What has become of that? It may take any time: an answer is awaited from each rank, since UCX 1.13 ends
 * a rank whose answer is under way to a process that has ended. */
MPIDI_ZC_binding_t MPIDI_ZC_paths_binding(void);

/* ---- both ---- */

/* Are all paths open? */
bool MPIDI_ZC_paths_open(void);

/* Pauses no path from here on: MPI_Finalize has begun. */
void MPIDI_ZC_paths_refuse_all(void);

/* UCP's callback for PATH. */
ucs_status_t MPIDI_ZC_path_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_PATH_H_INCLUDED */

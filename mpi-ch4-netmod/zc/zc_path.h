/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PATH_H_INCLUDED
#define ZC_PATH_H_INCLUDED

/* The path between this process and a rank, while one of the two or both leave and come back with
 * another address. A *mover* leaves (zc_detach.h), its *peers* are all other ranks: any of them may be
 * about to make a connection. There are paths only with MPIR_CVAR_CH4_ZC_DETACH.
 *
 * The two negotiate until nothing of either is under way. The *leader* of that is the mover or, if
 * both leave, who began; if both did, the lower rank:
 *
 *   the other                                                 leader
 *   OPEN                                                      OPEN
 *     │                                                         │ told to leave: parks from here on
 *     │   ◀────── PAUSE    number of the next message ────── PAUSING
 *   PAUSING   parks from here on                                │
 *     │   ─────── PARKS    number of the next message ──────▶   │
 *     │                                                         │ all of the other's messages are here,
 *     │   ◀────── FETCHED ─────────────────────────────── HAS_FETCHED   fetched if announced
 *     │ UCX has completed all own sends;                        │
 *     │ all of the leader's messages are here, and fetched      │
 *   PAUSED ────── HEARD ────────────────────────────────────▶   │
 *     │                                                         │ UCX has completed all own sends:
 *     │   ◀────── QUIET ──────────────────────────────────── PAUSED   no packet is under way
 *     │                                                         │
 *     │ UCX may report that the connection is lost              │ of all paths: UCX is destroyed, and
 *     │                                                         │ made anew when the token has come
 *     │   ◀────── REBIND   incarnation, new address ──────── BINDING
 *     │ the old endpoint is closed, a new one is made           │
 *   OPEN  ─────── BOUND ────────────────────────────────────▶ OPEN
 *     what was parked is sent                                   what was parked is sent
 *
 * Until a mover is detached it may stay. RESUME says so, and opens the path again, on the endpoint that
 * there is, unless the other leaves as well: then the negotiation goes on, whoever leads it. A rank
 * answers PAUSE with REFUSE if it cannot let the mover go, and REBIND with STALE, changing nothing, if
 * it knows the incarnation, or does not expect one. Then the mover's path is STALE until UCX has been
 * destroyed: not before all ranks have answered, since UCP 1.13 may end a process when it loses a
 * connection that it has not answered yet.
 *
 * **Several movers at once.** A rank that is told to leave while it negotiates with a mover, or has
 * done, sends PAUSE all the same, which names that negotiation. It is through with the path when it has had
 * QUIET, and KNOWS, with which the other answers such a PAUSE. The leader may be away by then, and QUIET be
 * lost with the connection: to lose it means the same, since a leader that leaves is never away before.
 *
 * Two movers that come back have each other's old address: zc_anchor.h.
 *
 * Messages keep their numbers over all that. UCP keeps the order of PAUSE to QUIET and of all else
 * that is one fragment, so FETCHED comes behind what completes the other's sends, and HEARD behind what
 * completes the leader's. Announced messages may have connections of their own (zc_peer.h), which have
 * their own order: both sides count those sends, and are PAUSED when UCP has completed them, and has
 * flushed their endpoints, so that none is still being connected. Likewise both flush the endpoint that
 * has been used for windows (zc_windows.h).
 *
 * All functions are called inside the lock of VCI 0, or by the landing thread inside the gate, and
 * outside callbacks of UCP unless their comment says otherwise. */

#include "zc_impl.h"
#include "zc_parked.h"
#include "zc_upid.h"

typedef enum {
    MPIDI_ZC_PATH_OPEN,
    MPIDI_ZC_PATH_PAUSING,
    MPIDI_ZC_PATH_HAS_FETCHED,  /* leader */
    MPIDI_ZC_PATH_PAUSED,
    MPIDI_ZC_PATH_BINDING,      /* this process has come back */
    MPIDI_ZC_PATH_STALE,        /* it has, and another copy had before */
} MPIDI_ZC_path_state_t;

typedef struct MPIDI_ZC_path {
    MPIDI_ZC_path_state_t state;
    bool leads;                 /* this process does */
    bool numbered;              /* leader: PARKS has arrived */
    bool fetched;               /* other: FETCHED has arrived */
    bool heard;                 /* leader: HEARD has arrived */
    bool quiet;                 /* other: QUIET has arrived, or what means the same */
    bool lost;                  /* the connection is, since the other leaves */
    bool anchored;              /* this process is the other's anchor */
    bool returned;              /* and the other is back, and not DONE */
    bool awaits_anchor;         /* the other's ASK is not answered */
    bool company;               /* it is to leave when this process does */
    bool one_sided;             /* the endpoint may have puts and gets of UCX: zc_windows.h */
    uint32_t flushes_begun;     /* of the endpoints for bulk, and then that one, since the path is
                                 * PAUSING */
    uint32_t flushing;          /* how often UCP still flushes one of them, for the program as well */
    uint32_t bulk_sends;        /* over those for bulk, that UCP has not completed */
    uint32_t nr_bulk;
    ucp_ep_h bulk[2];           /* one is not used: zc_peer.h */
    uint32_t round;             /* of the leader's attempts to leave, when it began to lead */
    uint32_t own_round;         /* this process leaves: of its attempts; 0: it does not */
    uint32_t other_round;       /* the other does, likewise */
    uint32_t confirmed;         /* own_round of which the other knows */
    uint32_t given_up, known;   /* RESUME: own_round and other_round at that time */
    uint32_t asked;             /* own_round of the last ASK */
    uint32_t asks;              /* other_round of the other's */
    uint32_t refused;           /* REFUSE: other_round at that time */
    MPIDI_ZC_refusal_t refused_why;
    uint32_t own_next;          /* number of the first message that was parked, or will be */
    uint32_t next;              /* the same of the other process */
    uint32_t incarnation;       /* of the other process */
    uint32_t untold;            /* bits: kinds of messages that there was no memory for */
    MPIDI_ZC_refusal_t refusal; /* why the path cannot be paused: by this process or the other */
    ucp_ep_h ep;                /* while the lane has none: of control messages; NULL: DETACHED, or
                                 * BINDING and the other is not known to be there */
    MPIDI_ZC_upid_t *upid;      /* of its later incarnations; owned; NULL: the first */
    size_t upid_length;
    MPIDI_ZC_parked_list_t parked;
} MPIDI_ZC_path_t;

MPL_STATIC_INLINE_PREFIX MPIDI_ZC_path_t *MPIDI_ZC_path_of(int rank)
{
    return &MPIDI_ZC_global.paths[rank];
}

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

/* Pauses all paths, for the attempt @round. False: a connection cannot be made, or a message of an
 * earlier attempt has not been sent for lack of memory, and nothing is paused. */
bool MPIDI_ZC_paths_pause(uint32_t round);

/* This process stays: opens all paths again but those to ranks that leave. */
void MPIDI_ZC_paths_resume(void);

/* Is there an anchor, are all paths PAUSED, with nothing under way in either direction, and have all
 * messages of this process to itself arrived? */
bool MPIDI_ZC_paths_quiet(void);

/* Returns why this process cannot leave, or NULL. *@rank: the rank that is the reason, or -1. *@passes:
 * it is one that moves, which ends. */
const char *MPIDI_ZC_paths_obstacle(int *rank, bool * passes);

/* Returns a rank that has not answered, or -1. */
int MPIDI_ZC_paths_silent(void);

/* UCX has been destroyed, and all endpoints with it. */
void MPIDI_ZC_paths_forget_endpoints(void);

/* Sends the anchor the new address, as @incarnation, and then the others. */
int MPIDI_ZC_paths_bind(uint32_t incarnation);

typedef enum {
    MPIDI_ZC_BINDING_AWAITED,   /* not all ranks have answered */
    MPIDI_ZC_BINDING_DONE,      /* all ranks have accepted it */
    MPIDI_ZC_BINDING_STALE,     /* another copy of this rank has been accepted */
    MPIDI_ZC_BINDING_SPLIT,     /* some ranks have accepted this copy, and some another one */
} MPIDI_ZC_binding_t;

/* What has become of that? It may take any time: some ranks may be away; and of a copy an answer is
 * awaited from each rank that was asked, since UCX 1.13 ends a rank whose answer is under way to a process
 * that has ended. */
MPIDI_ZC_binding_t MPIDI_ZC_paths_binding(void);

/* ---- both ---- */

/* Are all paths open? */
bool MPIDI_ZC_paths_open(void);

/* Pauses no path from here on: MPI_Finalize has begun. */
void MPIDI_ZC_paths_refuse_all(void);

#endif /* ZC_PATH_H_INCLUDED */

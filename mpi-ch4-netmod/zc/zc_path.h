/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PATH_H_INCLUDED
#define ZC_PATH_H_INCLUDED

/* The path between this process and a rank, while one of the two or both leave and come back with
 * another address. A *mover* leaves (zc_detach.h), its *peers* are all other ranks: any of them may be
 * about to make a connection. There are paths only with MPIR_CVAR_CH4_ZC_DETACH. That to a rank has the
 * number of the rank; those to processes of other worlds have the numbers from MPIR_Process.size on.
 *
 * The two negotiate until nothing of either is under way. The *leader* of that is the mover or, if
 * both leave, who began; if both did, the lower rank:
 *
 *   the other                                                 leader
 *   OPEN                                                      OPEN
 *     │                                                         │ told to leave: parks from here on
 *     │   ◀────── PAUSE    numbers of the next messages ──── PAUSING
 *   PAUSING   parks from here on                                │
 *     │   ─────── PARKS    numbers of the next messages ────▶   │
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
 *     │   ◀────── REBIND   incarnation, new addresses ────── BINDING
 *     │ the old endpoints are closed, a new one is made         │
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
 * **Several VCIs.** The path to a rank has a lane on each, and all lanes are parked together, and go on together.
 * What is told goes by VCI 0, so the connections of the others have an order of their own, as those of
 * announced messages have: PAUSE and PARKS have the numbers of all lanes, and how many packets of credit
 * were sent, which have no numbers; all endpoints are flushed. A lane of another VCI may have an endpoint on
 * one side only, or on none. If one side has it, so has the other when it has heard of that, so that both
 * flush it. REBIND and INTRODUCE have the addresses of all VCIs, and the other VCIs connect to them when
 * there is something to send. A message may come by another VCI before BOUND or RESUME, which it
 * follows; then the path makes the endpoint for its answers, which are parked (MPIDI_ZC_path_connect()).
 *
 * **Other worlds.** To a process of another world, which CH4 knows, there is the same path, by the
 * connection that there is (zc_foreign.h): those processes are peers of a mover as well. On each VCI they have
 * a connection of its own, with numbers of its own, and so each has a path of its own, with one lane, on which
 * all is told that concerns it: the two may have different numbers of VCIs. Messages have the
 * numbers of the connection, which a new address does not change. Two movers of
 * different worlds would have no anchor in common, so one of the two stays: the one that began later or, if
 * that cannot be told, the one with the higher id. A process that parts from another world while that is
 * away says so when it is back. A mover that ends while it is away has no launcher that ends processes of
 * other worlds with it: they watch it (zc_liveness.h). One that takes it for lost, and is told that it is
 * back, answers STALE with that reason, and each is lost to the other.
 *
 * All functions are called inside the locks of all VCIs (zc_vci_locks.h), or by the landing thread inside
 * the gate, and outside callbacks of UCP unless their comment says otherwise. So who has the lock of any
 * VCI may read the state and the incarnation of a path to a rank. That to a process of another world belongs
 * to the VCI of its connection: who has the lock of that makes it, reads it, and frees it. */

#include "zc_impl.h"
#include "zc_liveness.h"
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

/* The part of a path that belongs to a VCI. It is used inside the lock of that. */
typedef struct {
    ucp_ep_h ep;                /* while the lane has none; of VCI 0: of control messages, NULL: DETACHED,
                                 * or BINDING and the other is not known to be there */
    bool one_sided;             /* the endpoint may have puts and gets of UCX: zc_windows.h */
    uint32_t announced;         /* messages that UCP has not completed; some may be parked */
    uint32_t nr_bulk;
    ucp_ep_h bulk[2];           /* one is not used: zc_peer.h */
    uint32_t flushes_begun;     /* of the endpoints for bulk, and then the other, since the path is
                                 * PAUSING */
    uint32_t flushing;          /* how often UCP still flushes one of them, for the program as well */
    bool flush_failed;          /* one of these, of a process of another world that is lost */
    uint32_t own_next;          /* number of the first message that was parked, or will be */
    uint32_t next;              /* the same of the other process */
    uint32_t credits_sent, credits_received;    /* packets, ever */
    uint32_t credits_next;      /* packets that the other process has sent, ever */
    MPIDI_ZC_parked_list_t parked;
} MPIDI_ZC_path_lane_t;

typedef struct MPIDI_ZC_path {
    MPIDI_ZC_path_state_t state;
    int vci;                    /* of the first lane, on which all is told */
    int nr_lanes;               /* on VCIs from that on */
    struct MPIDI_ZC_foreign *foreign;   /* the connection, if it is of another world; else NULL */
    struct MPIDI_ZC_path_received *early;       /* of that: a PAUSE that came before CH4 knew it; owned */
    MPIDI_ZC_liveness_t *watch;    /* of that, while it leaves or is away; owned; NULL: its end is not noticed */
    bool leads;                 /* this process does */
    bool numbered;              /* leader: PARKS has arrived */
    bool complete;              /* all messages of the other process were here at the last look */
    bool fetched;               /* other: FETCHED has arrived */
    bool heard;                 /* leader: HEARD has arrived */
    bool quiet;                 /* other: QUIET has arrived, or what means the same */
    bool lost;                  /* the connection is, since the other leaves */
    bool anchored;              /* this process is the other's anchor */
    bool returned;              /* and the other is back, and not DONE */
    bool awaits_anchor;         /* the other's ASK is not answered */
    bool binds;                 /* this process has come back, and the other has to bind it */
    bool company;               /* it is to leave when this process does */
    uint32_t round;             /* of the leader's attempts to leave, when it began to lead */
    uint32_t own_round;         /* this process leaves: of its attempts; 0: it does not */
    uint32_t other_round;       /* the other does, likewise */
    uint32_t confirmed;         /* own_round of which the other knows */
    uint32_t given_up, known;   /* RESUME: own_round and other_round at that time */
    uint32_t asked;             /* own_round of the last ASK */
    uint32_t asks;              /* other_round of the other's */
    uint32_t refused;           /* REFUSE: other_round at that time */
    MPIDI_ZC_refusal_t refused_why;
    uint32_t incarnation;       /* of the other process */
    uint32_t untold;            /* bits: kinds of messages that there was no memory for */
    MPIDI_ZC_refusal_t refusal; /* why the path cannot be paused: by this process or the other */
    char *addresses;            /* of its later incarnations, a list: zc_address_list.h; owned; NULL: the
                                 * first */
    size_t addresses_length;
    MPIDI_ZC_upid_t *upid;      /* likewise, of VCI 0; owned */
    size_t upid_length;
    MPIDI_ZC_path_lane_t *lanes;
} MPIDI_ZC_path_t;

/* (The table moves when a path is added to it; where it was stays readable.) */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_path_t *MPIDI_ZC_path_of(int number)
{
    return __atomic_load_n(&MPIDI_ZC_global.paths, __ATOMIC_ACQUIRE)[number];
}

/* Returns the lane of @path on @vci, which it has. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_path_lane_t *MPIDI_ZC_path_lane(const MPIDI_ZC_path_t * path,
                                                                  int vci)
{
    return &path->lanes[vci - path->vci];
}

/* Makes the paths to all ranks. */
int MPIDI_ZC_paths_init(void);
void MPIDI_ZC_paths_free(void);

/* Makes a path for @foreign, a connection of @vci, and returns its number. -1: there is no memory, or no rank
 * ever leaves. It is called inside the lock of @vci, in callbacks, too. */
int MPIDI_ZC_path_add(struct MPIDI_ZC_foreign *foreign, int vci);

/* Frees the path @number, which may be -1. It is called inside the lock of its VCI, in callbacks, too. */
void MPIDI_ZC_path_remove(int number);

/* Returns how many numbers there are. The paths of some may be NULL. */
int MPIDI_ZC_paths_number(void);

/* Is the path @number, which may be -1, open? The lock of a VCI of it suffices. */
bool MPIDI_ZC_path_is_open(int number);

/* Has nothing been under way on the path @number, which may be -1, since the other process was about to leave,
 * and is it not back yet? Then the loss of the connection is none. The lock of a VCI of it suffices. */
bool MPIDI_ZC_path_is_away(int number);

/* Returns what is parked for @rank on @vci. It is called inside the lock of @vci, in callbacks, too. */
MPIDI_ZC_parked_list_t *MPIDI_ZC_path_parked(int rank, int vci);

/* Returns the upid that a rank which has come back has now, and its length. NULL: it has never left.
 * Any thread in MPI may call this. */
const MPIDI_ZC_upid_t *MPIDI_ZC_path_upid(int rank, size_t * length);

/* Returns its address of @vci, likewise. It is called inside the lock of @vci. */
const void *MPIDI_ZC_path_address(int rank, int vci);

/* Keeps @list, @length bytes long, as the addresses of @rank. */
int MPIDI_ZC_path_keep_addresses(int rank, const char *list, size_t length);

/* Has the path an endpoint to @rank on @vci, whose lane has none since it is paused? That of VCI 0 counts as
 * made. It is called inside the lock of @vci, in callbacks, too. */
bool MPIDI_ZC_path_is_connected(int rank, int vci);

/* Makes that endpoint, if there is none. @rank is where this process knows it to be. It is called inside the
 * lock of @vci. */
int MPIDI_ZC_path_connect(int rank, int vci);

/* Notes an endpoint for bulk to @rank on @vci, which has been made, inside the lock of @vci. */
void MPIDI_ZC_path_add_bulk(int rank, int vci, ucp_ep_h ep);

/* Counts packets of credit to and of @rank on @vci, inside the lock of @vci; in callbacks, too. */
void MPIDI_ZC_path_credit_sent(int rank, int vci);
void MPIDI_ZC_path_credit_received(int rank, int vci);

/* Is it as it should be that the connection @ep to @rank on @vci is lost? It is called in callbacks, inside
 * the lock of @vci. */
bool MPIDI_ZC_path_expects_loss(int rank, int vci, ucp_ep_h ep);

/* Fills in what PAUSE and PARKS say of all lanes of @path, and returns how many bytes that are. */
size_t MPIDI_ZC_path_numbers(const MPIDI_ZC_path_t * path, MPIDI_ZC_path_numbers_t * numbers);

/* May another step be possible, though no message of the negotiation has arrived since the last one? For
 * paths to other worlds that are not open it may: the processes are watched (zc_liveness.h). The lock of VCI 0
 * suffices. */
bool MPIDI_ZC_paths_may_step(void);

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

/* Sends the anchor the new addresses, as @incarnation, and then the others. */
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

/* Are all paths open? Any thread may call this. */
bool MPIDI_ZC_paths_open(void);

/* Does a process of another world wait until CH4 knows it? Any thread may call this. */
bool MPIDI_ZC_paths_have_early(void);

/* The same of those to other worlds. */
bool MPIDI_ZC_paths_to_worlds_open(void);

/* Pauses no path from here on: MPI_Finalize has begun. */
void MPIDI_ZC_paths_refuse_all(void);

/* ---- other worlds ---- */

/* Returns what keeps this process from leaving, or NULL. *@passes: that ends without the program's
 * doing. */
const char *MPIDI_ZC_paths_foreign_obstacle(bool *passes);

/* Lets nobody begin to leave: this process gives addresses of others to another world, when all paths are
 * open. Returns whether they are. Inside the lock of VCI 0. */
bool MPIDI_ZC_paths_hold(void);
void MPIDI_ZC_paths_let_go(void);

#endif /* ZC_PATH_H_INCLUDED */

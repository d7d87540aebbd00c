/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_path.h"
#include "zc_anchor.h"
#include "zc_arrival.h"
#include "zc_path_message.h"
#include "zc_peer.h"
#include "zc_windows.h"

static struct {
    int nr_open;                /* paths */
    uint32_t round;             /* of this process's attempts, and it may stay; 0: it does not leave */
    bool binds;                 /* it has come back, and not all paths are open */
    bool refuses_all;
} paths;

static MPIDI_ZC_addr_t *peer_of(int rank)
{
    return &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank));
}

int MPIDI_ZC_paths_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    memset(&paths, 0, sizeof(paths));
    paths.nr_open = MPIR_Process.size;
    MPIDI_ZC_path_messages_init();
    MPIDI_ZC_anchor_init();
    MPIDI_ZC_windows_init();
    MPIDI_ZC_global.paths = MPL_calloc(MPIR_Process.size, sizeof(*MPIDI_ZC_global.paths),
                                       MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_global.paths, mpi_errno, MPI_ERR_OTHER, "**nomem");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_paths_free(void)
{
    MPIDI_ZC_path_messages_free();
    for (int rank = 0; MPIDI_ZC_global.paths && rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_parked_drop(&MPIDI_ZC_path_of(rank)->parked);
        MPL_free(MPIDI_ZC_path_of(rank)->upid);
    }
    MPL_free(MPIDI_ZC_global.paths);
    MPIDI_ZC_global.paths = NULL;
}

MPIDI_ZC_parked_list_t *MPIDI_ZC_path_parked(int rank)
{
    return &MPIDI_ZC_path_of(rank)->parked;
}

const MPIDI_ZC_upid_t *MPIDI_ZC_path_upid(int rank, size_t * length)
{
    if (likely(!MPIDI_ZC_global.paths)) {
        return NULL;
    }
    *length = MPIDI_ZC_path_of(rank)->upid_length;
    return MPIDI_ZC_path_of(rank)->upid;
}

int MPIDI_ZC_path_keep_upid(int rank, const void *address, size_t length)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    MPIDI_ZC_upid_t *upid = MPL_malloc(sizeof(*upid) + length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
    *upid = *MPIDI_ZC_upid_of(rank);
    memcpy(upid->address, address, length);
    MPL_free(path->upid);
    path->upid = upid;
    path->upid_length = sizeof(*upid) + length;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

bool MPIDI_ZC_path_expects_loss(int rank, ucp_ep_h ep)
{
    if (likely(!MPIDI_ZC_global.paths)) {
        return false;
    }
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    bool is_known = path->ep == ep;
    for (uint32_t i = 0; i < path->nr_bulk; i++) {
        is_known = is_known || path->bulk[i] == ep;
    }
    if (!is_known || path->state != MPIDI_ZC_PATH_PAUSED || !path->other_round) {
        return false;
    }
    path->quiet = path->lost = true;
    return true;
}

/* ---- connections of bulk ---- */

void MPIDI_ZC_path_add_bulk(int rank, ucp_ep_h ep)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    MPIR_Assert(path->nr_bulk < 2);
    path->bulk[path->nr_bulk++] = ep;
}

void MPIDI_ZC_path_sends_bulk(int rank)
{
    MPIDI_ZC_path_of(rank)->bulk_sends++;
}

void MPIDI_ZC_path_bulk_sent(int rank)
{
    MPIDI_ZC_path_of(rank)->bulk_sends--;
}

static void endpoint_flushed(void *request, ucs_status_t status, void *user_data)
{
    MPIDI_ZC_path_t *path = user_data;

    path->flushing--;
    ucp_request_free(request);
}

/* False: there is no memory. Any other endpoint that cannot be flushed has lost its connection, which
 * UCP reports. */
static bool begin_flush(MPIDI_ZC_path_t * path, ucp_ep_h ep)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = endpoint_flushed,
        .user_data = path,
    };

    path->flushing++;
    const ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        return true;
    }
    path->flushing--;
    return UCS_PTR_STATUS(request) != UCS_ERR_NO_MEMORY;
}

/* Has UCP completed all that was sent over them, and all puts and gets? */
static bool all_flushed(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    if (path->bulk_sends > 0) {
        return false;
    }
    for (; path->flushes_begun < path->nr_bulk + path->one_sided; path->flushes_begun++) {
        const uint32_t i = path->flushes_begun;
        if (!begin_flush(path, i < path->nr_bulk ? path->bulk[i] : path->ep)) {
            return false;       /* the next look tries again */
        }
    }
    if (path->flushing > 0) {
        return false;
    }
    MPIDI_ZC_windows_flushed(rank);
    return true;
}

/* The lane has none from here on, and no window an endpoint. */
static void forget_others(int rank)
{
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;

    if (lane->bulk) {
        MPIDI_ZC_VCI(0).bulk.eps[lane->bulk] = NULL;
        lane->bulk = 0;
    }
    MPIDI_ZC_lane_share_anew(lane);
    MPIDI_ZC_path_of(rank)->nr_bulk = 0;
    MPIDI_ZC_path_of(rank)->one_sided = false;
}

bool MPIDI_ZC_paths_open(void)
{
    return paths.nr_open == MPIR_Process.size;
}

void MPIDI_ZC_paths_refuse_all(void)
{
    paths.refuses_all = true;
}

/* ---- parking ---- */

static void set_state(MPIDI_ZC_path_t * path, MPIDI_ZC_path_state_t state)
{
    paths.nr_open += (state == MPIDI_ZC_PATH_OPEN) - (path->state == MPIDI_ZC_PATH_OPEN);
    path->state = state;
}

/* Parks from here on, and negotiates. The lane has an endpoint, unless it parks already. */
static void park(int rank, bool leads, uint32_t round)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;

    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(0));
    if (!lane->paused) {
        path->ep = lane->ep;
        path->own_next = lane->next_send;
        lane->ep = NULL;
        lane->paused = true;
    }
    path->numbered = path->fetched = path->heard = path->quiet = false;
    path->flushes_begun = 0;
    if (!path->own_round) {
        path->refusal = MPIDI_ZC_REFUSES_NOT;   /* else the attempt is refused, whoever leads */
    }
    path->leads = leads;
    path->round = round;
    set_state(path, MPIDI_ZC_PATH_PAUSING);
}

/* Opens the path, over the endpoint that it has kept. */
static void unpark(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;

    lane->ep = path->ep;
    lane->paused = false;
    path->ep = NULL;
    path->leads = path->lost = false;
    path->own_round = path->other_round = 0;
    set_state(path, MPIDI_ZC_PATH_OPEN);
    MPIDI_ZC_unpark(&path->parked, lane->ep);
    MPIDI_ZC_anchor_introduce_to_all(rank);
}

/* ---- negotiation ---- */

/* This process leaves: begins a negotiation with @rank, or joins the one that there is. */
static void pause_path(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    path->own_round = paths.round;
    path->refusal = MPIDI_ZC_REFUSES_NOT;
    if (path->state == MPIDI_ZC_PATH_OPEN) {
        park(rank, true, paths.round);
    }
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_PAUSE);
}

/* Does not let @rank leave, which has begun to for the time @round. */
static void refuse(int rank, uint32_t round, MPIDI_ZC_refusal_t why)
{
    MPIDI_ZC_path_of(rank)->refused = round;
    MPIDI_ZC_path_of(rank)->refused_why = why;
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_REFUSE);
}

static void follow(int rank, const MPIDI_ZC_path_message_t * pause)
{
    park(rank, false, pause->round);
    MPIDI_ZC_path_of(rank)->next = pause->number;
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_PARKS);
}

static void handle_pause(int rank, const MPIDI_ZC_path_message_t * message)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    if (paths.refuses_all || paths.binds || MPIDI_ZC_anchor_is_waited_for()) {
        refuse(rank, message->round,
               paths.refuses_all ? MPIDI_ZC_REFUSES_FINALIZE : MPIDI_ZC_REFUSES_BINDS);
        return;
    }
    if (path->state == MPIDI_ZC_PATH_OPEN &&
        MPIDI_ZC_lane_endpoint(peer_of(rank), &peer_of(rank)->lane, 0) != MPI_SUCCESS) {
        return;                 /* the mover waits in vain, and stays */
    }
    const bool joins = path->state != MPIDI_ZC_PATH_OPEN && message->leader_round == path->round &&
        message->leads != path->leads;
    path->other_round = message->round;
    if (joins || (path->leads && !path->refusal && MPIR_Process.rank < rank)) {
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_KNOWS);
    } else {
        follow(rank, message);
    }
}

static void handle_resume(int rank, const MPIDI_ZC_path_message_t * message)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    MPIDI_ZC_anchor_forget(rank);
    if (path->other_round != message->round) {
        return;                 /* this process had refused */
    }
    path->other_round = 0;
    if (!path->own_round) {
        unpark(rank);
    } else if (message->known_round != path->own_round) {
        /* It has opened the path, and is going to have PAUSE. */
        park(rank, true, path->own_round);
    }
}

/* ---- rebinding ---- */

static void endpoint_closed(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
}

/* UCX closes it at once, or completes that in the background. */
static void close_endpoint(ucp_ep_h ep, uint32_t flags)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK,
        .flags = flags,
        .cb.send = endpoint_closed,
    };
    (void) ucp_ep_close_nbx(ep, &param);
}

/* Sends STALE to an address that is not kept. If that fails, the copy waits in vain. */
static void tell_stale(int rank, const MPIDI_ZC_path_received_t * rebind)
{
    const MPIDI_ZC_path_message_t message = {
        .kind = MPIDI_ZC_TELL_STALE,
        .incarnation = rebind->message.incarnation,
    };
    ucp_ep_h ep;

    if (MPIDI_ZC_peer_endpoint_for_answer(rebind->address, &ep) == UCS_OK) {
        (void) MPIDI_ZC_path_send(ep, rank, message, NULL, 0);
        close_endpoint(ep, 0);
    }
}

/* Closes all endpoints of @rank, which has another address from here on. */
static void close_old_endpoints(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    MPIDI_ZC_windows_forget(rank);
    if (path->ep) {
        close_endpoint(path->ep, UCP_EP_CLOSE_FLAG_FORCE);
    }
    for (uint32_t i = 0; i < path->nr_bulk; i++) {
        close_endpoint(path->bulk[i], UCP_EP_CLOSE_FLAG_FORCE);
    }
    forget_others(rank);
}

/* Makes the endpoint of the path to the address of @rank. */
static int connect_path(int rank)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_ZC_path_of(rank)->lost = false;
    ucs_status_t status = MPIDI_ZC_peer_endpoint(rank, 0, &MPIDI_ZC_path_of(rank)->ep);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_create");

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_ZC_path_of(rank)->ep = NULL;
    goto fn_exit;
}

/* The same for its @incarnation that is at @address. */
static int connect_again(int rank, uint32_t incarnation, const void *address, size_t length)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = MPIDI_ZC_path_keep_upid(rank, address, length);
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_path_of(rank)->incarnation = incarnation;
    close_old_endpoints(rank);
    mpi_errno = connect_path(rank);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Does this process know it already, and connect to it? */
static bool is_introduced(const MPIDI_ZC_path_t * path, const MPIDI_ZC_path_received_t * rebind)
{
    return path->state == MPIDI_ZC_PATH_BINDING && path->ep && path->upid &&
        rebind->message.incarnation == path->incarnation &&
        path->upid_length == sizeof(*path->upid) + rebind->length &&
        memcmp(path->upid->address, rebind->address, rebind->length) == 0;
}

static void handle_rebind(int rank, const MPIDI_ZC_path_received_t * rebind)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    const bool introduced = is_introduced(path, rebind);
    const bool expected = path->state == MPIDI_ZC_PATH_BINDING ||
        (path->state == MPIDI_ZC_PATH_PAUSED && path->other_round);

    if (!introduced && (!expected || rebind->message.incarnation <= path->incarnation)) {
        tell_stale(rank, rebind);
        return;
    }
    if (!introduced) {
        mpi_errno = connect_again(rank, rebind->message.incarnation, rebind->address,
                                  rebind->length);
        MPIR_ERR_CHECK(mpi_errno);
    }
    path->untold = 0;
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_BOUND);
    unpark(rank);
    if (path->anchored) {
        MPIDI_ZC_anchor_introduce_all(rank);
    }
    if (paths.round) {
        pause_path(rank);
    }

  fn_exit:
    return;
  fn_fail:
    /* The rank has no other way to this one. */
    MPIDI_ZC_end_job_if(mpi_errno);
    goto fn_exit;
}

static void handle_introduction(const MPIDI_ZC_path_received_t * received)
{
    const int rank = (int) received->message.subject;
    const uint32_t incarnation = received->message.incarnation;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    if (path->state != MPIDI_ZC_PATH_BINDING || path->ep || incarnation < path->incarnation) {
        return;                 /* it has found this process meanwhile */
    }
    MPIDI_ZC_end_job_if(incarnation == path->incarnation ? connect_path(rank) :
                        connect_again(rank, incarnation, received->address, received->length));
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_REBIND);
}

/* ---- handling ---- */

static void handle(const MPIDI_ZC_path_received_t * received)
{
    const MPIDI_ZC_path_message_t *message = &received->message;
    const int rank = (int) message->sender;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    const bool negotiates = path->state != MPIDI_ZC_PATH_OPEN && message->round == path->round;
    const bool answered = path->state == MPIDI_ZC_PATH_BINDING &&
        message->incarnation == MPIDI_ZC_path_own_incarnation();

    switch ((MPIDI_ZC_tell_t) message->kind) {
        case MPIDI_ZC_TELL_PAUSE:
            handle_pause(rank, message);
            break;
        case MPIDI_ZC_TELL_PARKS:
            if (negotiates && path->leads) {
                path->next = message->number;
                path->numbered = true;
                path->confirmed = message->round;
            }
            break;
        case MPIDI_ZC_TELL_FETCHED:
            path->fetched = path->fetched || (negotiates && !path->leads);
            break;
        case MPIDI_ZC_TELL_HEARD:
            path->heard = path->heard ||
                (negotiates && path->state == MPIDI_ZC_PATH_HAS_FETCHED);
            break;
        case MPIDI_ZC_TELL_KNOWS:
            path->confirmed = message->round;
            break;
        case MPIDI_ZC_TELL_QUIET:
            path->quiet = path->quiet ||
                (negotiates && !path->leads && path->state == MPIDI_ZC_PATH_PAUSED);
            break;
        case MPIDI_ZC_TELL_RESUME:
            handle_resume(rank, message);
            break;
        case MPIDI_ZC_TELL_REFUSE:
            if (path->own_round && message->round == path->own_round) {
                path->refusal = message->refusal;
            }
            break;
        case MPIDI_ZC_TELL_REBIND:
            handle_rebind(rank, received);
            break;
        case MPIDI_ZC_TELL_BOUND:
            if (answered) {
                unpark(rank);
            }
            break;
        case MPIDI_ZC_TELL_STALE:
            if (answered) {
                set_state(path, MPIDI_ZC_PATH_STALE);
            }
            break;
        case MPIDI_ZC_TELL_ASK:
            MPIDI_ZC_anchor_handle_ask(rank, message);
            break;
        case MPIDI_ZC_TELL_STAYS:
        case MPIDI_ZC_TELL_GOES:
            MPIDI_ZC_anchor_handle_answer(rank, message);
            break;
        case MPIDI_ZC_TELL_DONE:
            MPIDI_ZC_anchor_forget(rank);
            break;
        case MPIDI_ZC_TELL_INTRODUCE:
            handle_introduction(received);
            break;
        case MPIDI_ZC_TELL_WANTS:
            MPIDI_ZC_windows_handle_wants(rank, message);
            break;
        case MPIDI_ZC_TELL_KEY:
            MPIDI_ZC_windows_handle_key(rank, received);
            break;
    }
}

static void handle_all(void)
{
    MPIDI_ZC_path_received_t *received;

    while ((received = MPIDI_ZC_path_take_message()) != NULL) {
        handle(received);
        MPL_free(received);
    }
}

/* Are all messages of @rank here, up to the number @next, and fetched? */
static bool has_all(int rank, uint32_t next)
{
    bool memory;
    const bool fetched = MPIDI_ZC_arrivals_fetch(&MPIDI_ZC_VCI(0), rank, &memory);

    if (unlikely(!memory)) {
        MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        if (path->refusal == MPIDI_ZC_REFUSES_NOT) {
            path->refusal = MPIDI_ZC_REFUSES_MEMORY;
            if (path->other_round) {
                refuse(rank, path->other_round, path->refusal);
            }
        }
    }
    return fetched && peer_of(rank)->lane.inbound.next == next;
}

static void step(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    if (path->state == MPIDI_ZC_PATH_HAS_FETCHED && path->heard && all_flushed(rank)) {
        set_state(path, MPIDI_ZC_PATH_PAUSED);
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_QUIET);
    }
    if (path->state != MPIDI_ZC_PATH_PAUSING) {
        return;
    }
    if (path->leads && path->numbered && has_all(rank, path->next)) {
        set_state(path, MPIDI_ZC_PATH_HAS_FETCHED);
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_FETCHED);
    } else if (!path->leads && has_all(rank, path->next) && path->fetched && all_flushed(rank)) {
        set_state(path, MPIDI_ZC_PATH_PAUSED);
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_HEARD);
    }
}

void MPIDI_ZC_paths_progress(void)
{
    if (likely(MPIDI_ZC_paths_open() && !MPIDI_ZC_path_messages_wait())) {
        return;
    }
    handle_all();
    MPIDI_ZC_anchor_progress();
    MPIDI_ZC_path_tell_again();
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        step(rank);
    }
}

/* ---- the mover ---- */

bool MPIDI_ZC_paths_pause(uint32_t round)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank &&
            (MPIDI_ZC_path_of(rank)->untold ||
             MPIDI_ZC_lane_endpoint(peer_of(rank), &peer_of(rank)->lane, 0) != MPI_SUCCESS)) {
            return false;
        }
    }
    paths.round = round;
    MPIDI_ZC_path_of(MPIR_Process.rank)->refusal = MPIDI_ZC_REFUSES_NOT;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank) {
            pause_path(rank);
        }
    }
    MPIDI_ZC_anchor_seek(round);
    return true;
}

void MPIDI_ZC_paths_resume(void)
{
    paths.round = 0;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        if (path->own_round) {
            path->given_up = path->own_round;
            path->known = path->other_round;
            path->own_round = 0;
            path->untold &= ~(1u << MPIDI_ZC_TELL_PAUSE | 1u << MPIDI_ZC_TELL_ASK);
            MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_RESUME);
            if (!path->other_round) {
                path->untold &= ~(1u << MPIDI_ZC_TELL_FETCHED | 1u << MPIDI_ZC_TELL_QUIET);
                unpark(rank);
            }
        }
    }
    MPIDI_ZC_anchor_stay();
}

/* Is nothing under way on it, and does the other know that, and that this process leaves? */
static bool is_quiet(const MPIDI_ZC_path_t * path)
{
    return path->state == MPIDI_ZC_PATH_PAUSED && (path->leads ? path->untold == 0 : path->quiet) &&
        (path->lost || path->confirmed == path->own_round);
}

int MPIDI_ZC_paths_silent(void)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank && !is_quiet(MPIDI_ZC_path_of(rank))) {
            return rank;
        }
    }
    return MPIDI_ZC_anchor_asked();
}

bool MPIDI_ZC_paths_quiet(void)
{
    const int self = MPIR_Process.rank;

    return MPIDI_ZC_paths_silent() < 0 && has_all(self, peer_of(self)->lane.next_send);
}

const char *MPIDI_ZC_paths_obstacle(int *rank, bool * passes)
{
    static const char *const texts[] = {
        [MPIDI_ZC_REFUSES_FINALIZE] = "a rank is in MPI_Finalize",
        [MPIDI_ZC_REFUSES_BINDS] = "another rank waits for one that is away",
        [MPIDI_ZC_REFUSES_MEMORY] = "there is no memory for announced messages",
    };

    *rank = -1;
    *passes = true;
    if (MPIDI_ZC_anchor_is_missing()) {
        return "no other rank stays";
    }
    for (int r = 0; r < MPIR_Process.size; r++) {
        const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(r);
        if ((path->own_round || r == MPIR_Process.rank) && path->refusal) {
            *rank = r;
            *passes = path->refusal == MPIDI_ZC_REFUSES_BINDS;
            return texts[path->refusal];
        }
    }
    return NULL;
}

void MPIDI_ZC_paths_forget_endpoints(void)
{
    paths.round = 0;
    paths.binds = false;
    MPIDI_ZC_anchor_left();
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_path_of(rank)->ep = NULL;
        peer_of(rank)->lane.ep = NULL;
        forget_others(rank);
    }
}

int MPIDI_ZC_paths_bind(uint32_t incarnation)
{
    int mpi_errno = MPI_SUCCESS;

    const int anchor = MPIDI_ZC_anchor_of_this();

    MPIDI_ZC_path_set_own_incarnation(incarnation);
    paths.binds = true;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank) {
            MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
            path->lost = path->awaits_anchor = false;
            path->own_round = path->other_round = 0;
            path->untold = 0;
            set_state(path, MPIDI_ZC_PATH_BINDING);
        }
    }
    if (anchor >= 0) {
        mpi_errno = connect_path(anchor);
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_ZC_path_tell(anchor, MPIDI_ZC_TELL_REBIND);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPIDI_ZC_binding_t MPIDI_ZC_paths_binding(void)
{
    int awaited = 0, asked = 0, stale = 0;

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        awaited += path->state == MPIDI_ZC_PATH_BINDING;
        asked += path->state == MPIDI_ZC_PATH_BINDING && path->ep;
        stale += path->state == MPIDI_ZC_PATH_STALE;
    }
    if (awaited == 0 && stale == 0) {
        paths.binds = false;
        MPIDI_ZC_anchor_release();
        return MPIDI_ZC_BINDING_DONE;
    } else if (stale > 0 && awaited + stale < MPIR_Process.size - 1) {
        return MPIDI_ZC_BINDING_SPLIT;
    } else if (stale > 0 && asked == 0) {
        return MPIDI_ZC_BINDING_STALE;
    }
    return MPIDI_ZC_BINDING_AWAITED;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_path.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_peer.h"

/* A message that has arrived. UCX's callback cannot answer it; zc_am.c explains that. */
typedef struct received {
    struct received *next;
    MPIDI_ZC_path_message_t message;
    size_t length;
    char address[];             /* of REBIND */
} received_t;

static struct {
    received_t *first, *last;   /* messages to be handled */
    int nr_open;                /* paths */
    bool pausing;               /* this process is about to leave, and may stay */
    bool yields;                /* a lower rank is, too */
    bool refuses_all;
    uint32_t incarnation;       /* of this process */
} paths;

static MPIDI_ZC_path_t *path_of(int rank)
{
    return &MPIDI_ZC_global.paths[rank];
}

static MPIDI_ZC_addr_t *peer_of(int rank)
{
    return &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank));
}

int MPIDI_ZC_paths_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    memset(&paths, 0, sizeof(paths));
    paths.nr_open = MPIR_Process.size;
    MPIDI_ZC_global.paths = MPL_calloc(MPIR_Process.size, sizeof(*MPIDI_ZC_global.paths),
                                       MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_global.paths, mpi_errno, MPI_ERR_OTHER, "**nomem");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The caller frees it. */
static received_t *take_first(void)
{
    received_t *first = paths.first;

    paths.first = first->next;
    return first;
}

void MPIDI_ZC_paths_free(void)
{
    while (paths.first) {
        MPL_free(take_first());
    }
    for (int rank = 0; MPIDI_ZC_global.paths && rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_parked_drop(&path_of(rank)->parked);
        MPL_free(path_of(rank)->upid);
    }
    MPL_free(MPIDI_ZC_global.paths);
    MPIDI_ZC_global.paths = NULL;
}

MPIDI_ZC_parked_list_t *MPIDI_ZC_path_parked(int rank)
{
    return &path_of(rank)->parked;
}

const MPIDI_ZC_upid_t *MPIDI_ZC_path_upid(int rank, size_t * length)
{
    if (likely(!MPIDI_ZC_global.paths)) {
        return NULL;
    }
    *length = path_of(rank)->upid_length;
    return path_of(rank)->upid;
}

int MPIDI_ZC_path_keep_upid(int rank, const void *address, size_t length)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_path_t *path = path_of(rank);

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
    const MPIDI_ZC_path_t *path = path_of(rank);
    bool is_known = path->ep == ep;
    for (uint32_t i = 0; i < path->nr_bulk; i++) {
        is_known = is_known || path->bulk[i] == ep;
    }
    return !path->leaves_here && path->state == MPIDI_ZC_PATH_PAUSED && is_known;
}

/* ---- connections of bulk ---- */

void MPIDI_ZC_path_add_bulk(int rank, ucp_ep_h ep)
{
    MPIDI_ZC_path_t *path = path_of(rank);

    MPIR_Assert(path->nr_bulk < 2);
    path->bulk[path->nr_bulk++] = ep;
}

void MPIDI_ZC_path_sends_bulk(int rank)
{
    path_of(rank)->bulk_sends++;
}

void MPIDI_ZC_path_bulk_sent(int rank)
{
    path_of(rank)->bulk_sends--;
}

static void endpoint_flushed(void *request, ucs_status_t status, void *user_data)
{
    MPIDI_ZC_path_t *path = user_data;

    path->flushing--;
    ucp_request_free(request);
}

/* An endpoint that cannot be flushed has lost its connection, which UCP reports. */
static void flush(MPIDI_ZC_path_t * path)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = endpoint_flushed,
        .user_data = path,
    };

    path->flush_began = true;
    for (uint32_t i = 0; i < path->nr_bulk; i++) {
        path->flushing++;
        if (!UCS_PTR_IS_PTR(ucp_ep_flush_nbx(path->bulk[i], &param))) {
            path->flushing--;
        }
    }
}

/* Has UCP completed all that was sent over them? */
static bool bulk_quiet(MPIDI_ZC_path_t * path)
{
    if (path->bulk_sends > 0) {
        return false;
    }
    if (!path->flush_began) {
        flush(path);
    }
    return path->flushing == 0;
}

/* The lane has none from here on. */
static void forget_bulk(int rank)
{
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;

    if (lane->bulk) {
        MPIDI_ZC_VCI(0).bulk.eps[lane->bulk] = NULL;
        lane->bulk = 0;
    }
    path_of(rank)->nr_bulk = 0;
}

bool MPIDI_ZC_paths_open(void)
{
    return paths.nr_open == MPIR_Process.size;
}

void MPIDI_ZC_paths_refuse_all(void)
{
    paths.refuses_all = true;
}

/* ---- messages ---- */

/* Sends a message of @kind to @rank. If there is no memory, it is sent later. */
static void tell(int rank, MPIDI_ZC_tell_t kind)
{
    MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(0);
    MPIDI_ZC_path_t *path = path_of(rank);
    MPIDI_ZC_addr_t *peer = peer_of(rank);
    const bool rebinds = kind == MPIDI_ZC_TELL_REBIND;
    const MPIDI_ZC_path_message_t message = {
        .sender = peer->self,
        .kind = kind,
        .round = path->round,
        .number = path->own_next,
        .incarnation = kind == MPIDI_ZC_TELL_BOUND ? path->incarnation : paths.incarnation,
        .refusal = path->refusal,
    };

    MPIDI_ZC_bundle_end(vci);
    (void) MPIDI_ZC_lane_endpoint(peer, &peer->lane, 0);
    ucp_ep_h ep = path->ep ? path->ep : peer->lane.ep;
    if (ep && MPIDI_ZC_channel_send_short(ep, MPIDI_ZC_AM_PATH, &message, sizeof(message),
                                          rebinds ? vci->address : NULL,
                                          rebinds ? vci->address_length : 0) == UCS_OK) {
        path->untold &= ~(1u << kind);
    } else {
        path->untold |= 1u << kind;
    }
}

static void tell_again(int rank)
{
    for (uint32_t kind = 0; path_of(rank)->untold >> kind; kind++) {
        if (path_of(rank)->untold >> kind & 1) {
            tell(rank, kind);
        }
    }
}

ucs_status_t MPIDI_ZC_path_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param)
{
    if (!MPIDI_ZC_global.paths || header_length != sizeof(MPIDI_ZC_path_message_t)) {
        return UCS_OK;          /* without DETACH here: the mover waits in vain, and stays */
    }
    received_t *received = MPL_malloc(sizeof(*received) + length, MPL_MEM_OTHER);
    if (unlikely(!received)) {
        /* Both sides would wait for ever. */
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "no memory for a message of a rank that leaves");
    }
    memcpy(&received->message, header, sizeof(received->message));
    memcpy(received->address, data, length);
    received->length = length;
    received->next = NULL;
    if (paths.first) {
        paths.last->next = received;
    } else {
        paths.first = received;
    }
    paths.last = received;
    return UCS_OK;
}

/* ---- parking ---- */

static void set_state(MPIDI_ZC_path_t * path, MPIDI_ZC_path_state_t state)
{
    paths.nr_open += (state == MPIDI_ZC_PATH_OPEN) - (path->state == MPIDI_ZC_PATH_OPEN);
    path->state = state;
}

/* Parks from here on. The lane has an endpoint, unless it parks already. */
static void park(int rank)
{
    MPIDI_ZC_path_t *path = path_of(rank);
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;

    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(0));
    if (!lane->paused) {
        path->ep = lane->ep;
        path->own_next = lane->next_send;
        lane->ep = NULL;
        lane->paused = true;
    }
    path->numbered = path->fetched = path->heard = path->flush_began = false;
    path->refusal = MPIDI_ZC_REFUSES_NOT;
    set_state(path, MPIDI_ZC_PATH_PAUSING);
}

/* Opens the path, over the endpoint that it has kept. */
static void unpark(int rank)
{
    MPIDI_ZC_path_t *path = path_of(rank);
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;

    lane->ep = path->ep;
    lane->paused = false;
    path->ep = NULL;
    path->leaves_here = false;
    set_state(path, MPIDI_ZC_PATH_OPEN);
    MPIDI_ZC_unpark(&path->parked, lane->ep);
}

/* ---- the peer ---- */

/* Is this process to be left alone? Sets *@later if it is to be asked again, when it stays. */
static MPIDI_ZC_refusal_t refuses(int rank, bool *later)
{
    *later = false;
    if (paths.refuses_all) {
        return MPIDI_ZC_REFUSES_FINALIZE;
    }
    if (paths.pausing && rank < MPIR_Process.rank) {
        /* Of two that leave at once the lower goes first: both would wait for the other. */
        paths.yields = *later = true;
    } else if (paths.pausing) {
        return MPIDI_ZC_REFUSES_LEAVES;
    }
    return MPIDI_ZC_REFUSES_NOT;
}

/* False: it has to be handled later. */
static bool handle_pause(int rank, const MPIDI_ZC_path_message_t * message)
{
    MPIDI_ZC_path_t *path = path_of(rank);
    bool later;
    const MPIDI_ZC_refusal_t refusal = refuses(rank, &later);

    if (later) {
        return false;
    }
    if (refusal) {
        /* The path may be one on which this process leaves: its own numbers stay. */
        const uint32_t round = path->round;
        path->refusal = refusal;
        path->round = message->round;
        tell(rank, MPIDI_ZC_TELL_REFUSE);
        path->round = round;
        path->refusal = MPIDI_ZC_REFUSES_NOT;
        return true;
    }
    if (MPIDI_ZC_lane_endpoint(peer_of(rank), &peer_of(rank)->lane, 0) != MPI_SUCCESS) {
        return true;            /* the mover waits in vain, and stays */
    }
    park(rank);
    path->leaves_here = false;
    path->round = message->round;
    path->next = message->number;
    tell(rank, MPIDI_ZC_TELL_PARKS);
    return true;
}

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
static void tell_stale(const received_t * rebind)
{
    const MPIDI_ZC_path_message_t message = {
        .sender = MPIR_Process.rank,
        .kind = MPIDI_ZC_TELL_STALE,
        .incarnation = rebind->message.incarnation,
    };
    ucp_ep_h ep;

    if (MPIDI_ZC_peer_endpoint_for_answer(rebind->address, &ep) == UCS_OK) {
        (void) MPIDI_ZC_channel_send_short(ep, MPIDI_ZC_AM_PATH, &message, sizeof(message), NULL,
                                           0);
        close_endpoint(ep, 0);
    }
}

static void handle_rebind(int rank, const received_t * rebind)
{
    MPIDI_ZC_path_t *path = path_of(rank);
    MPIDI_ZC_lane_t *lane = &peer_of(rank)->lane;
    int mpi_errno = MPI_SUCCESS;

    if (path->leaves_here || path->state != MPIDI_ZC_PATH_PAUSED ||
        rebind->message.incarnation <= path->incarnation) {
        tell_stale(rebind);
        return;
    }
    mpi_errno = MPIDI_ZC_path_keep_upid(rank, rebind->address, rebind->length);
    MPIR_ERR_CHECK(mpi_errno);
    path->incarnation = rebind->message.incarnation;
    close_endpoint(path->ep, UCP_EP_CLOSE_FLAG_FORCE);
    for (uint32_t i = 0; i < path->nr_bulk; i++) {
        close_endpoint(path->bulk[i], UCP_EP_CLOSE_FLAG_FORCE);
    }
    forget_bulk(rank);
    path->ep = NULL;
    lane->paused = false;
    mpi_errno = MPIDI_ZC_lane_endpoint(peer_of(rank), lane, 0);
    MPIR_ERR_CHECK(mpi_errno);
    path->ep = lane->ep;
    tell(rank, MPIDI_ZC_TELL_BOUND);
    unpark(rank);

  fn_exit:
    return;
  fn_fail:
    /* The rank has no other way to this one. */
    MPIDI_ZC_end_job_if(mpi_errno);
    goto fn_exit;
}

/* ---- handling ---- */

/* False: it has to be handled later. */
static bool handle(const received_t * received)
{
    const MPIDI_ZC_path_message_t *message = &received->message;
    const int rank = (int) message->sender;
    MPIDI_ZC_path_t *path = path_of(rank);
    const bool of_round = path->state != MPIDI_ZC_PATH_OPEN && message->round == path->round;

    switch ((MPIDI_ZC_tell_t) message->kind) {
        case MPIDI_ZC_TELL_PAUSE:
            return handle_pause(rank, message);
        case MPIDI_ZC_TELL_PARKS:
            if (of_round && path->leaves_here) {
                path->next = message->number;
                path->numbered = true;
            }
            break;
        case MPIDI_ZC_TELL_FETCHED:
            path->fetched = path->fetched || (of_round && !path->leaves_here);
            break;
        case MPIDI_ZC_TELL_HEARD:
            path->heard = path->heard ||
                (of_round && path->state == MPIDI_ZC_PATH_HAS_FETCHED);
            break;
        case MPIDI_ZC_TELL_RESUME:
            if (of_round && !path->leaves_here) {
                unpark(rank);
            }
            break;
        case MPIDI_ZC_TELL_REFUSE:
            if (of_round && path->leaves_here) {
                path->refusal = message->refusal;
            }
            break;
        case MPIDI_ZC_TELL_REBIND:
            handle_rebind(rank, received);
            break;
        case MPIDI_ZC_TELL_BOUND:
            if (path->state == MPIDI_ZC_PATH_BINDING &&
                message->incarnation == paths.incarnation) {
                unpark(rank);
            }
            break;
        case MPIDI_ZC_TELL_STALE:
            if (path->state == MPIDI_ZC_PATH_BINDING &&
                message->incarnation == paths.incarnation) {
                set_state(path, MPIDI_ZC_PATH_STALE);
            }
            break;
    }
    return true;
}

static void handle_all(void)
{
    received_t *kept = NULL, *first = paths.first;

    paths.first = NULL;
    while (first) {
        received_t *received = first;
        first = first->next;
        if (handle(received)) {
            MPL_free(received);
        } else {
            received->next = kept;
            kept = received;
        }
    }
    while (kept) {
        received_t *received = kept;
        kept = received->next;
        received->next = paths.first;
        if (!paths.first) {
            paths.last = received;
        }
        paths.first = received;
    }
}

/* Are all messages of @rank here, up to the number @next, and fetched? */
static bool has_all(int rank, uint32_t next)
{
    bool memory;
    const bool fetched = MPIDI_ZC_arrivals_fetch(&MPIDI_ZC_VCI(0), rank, &memory);

    if (unlikely(!memory)) {
        MPIDI_ZC_path_t *path = path_of(rank);
        if (path->refusal == MPIDI_ZC_REFUSES_NOT) {
            path->refusal = MPIDI_ZC_REFUSES_MEMORY;
            if (!path->leaves_here) {
                tell(rank, MPIDI_ZC_TELL_REFUSE);
            }
        }
    }
    return fetched && peer_of(rank)->lane.inbound.next == next;
}

static void step(int rank)
{
    MPIDI_ZC_path_t *path = path_of(rank);

    if (path->state == MPIDI_ZC_PATH_HAS_FETCHED && path->heard && bulk_quiet(path)) {
        set_state(path, MPIDI_ZC_PATH_PAUSED);
    }
    if (path->state != MPIDI_ZC_PATH_PAUSING) {
        return;
    }
    if (path->leaves_here && path->numbered && has_all(rank, path->next)) {
        set_state(path, MPIDI_ZC_PATH_HAS_FETCHED);
        tell(rank, MPIDI_ZC_TELL_FETCHED);
    } else if (!path->leaves_here && has_all(rank, path->next) && path->fetched &&
               bulk_quiet(path)) {
        set_state(path, MPIDI_ZC_PATH_PAUSED);
        tell(rank, MPIDI_ZC_TELL_HEARD);
    }
}

void MPIDI_ZC_paths_progress(void)
{
    static bool untold;

    if (likely(!paths.first && MPIDI_ZC_paths_open() && !untold)) {
        return;
    }
    handle_all();
    untold = false;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (path_of(rank)->untold) {
            tell_again(rank);
        }
        step(rank);
        untold = untold || path_of(rank)->untold;
    }
}

/* ---- the mover ---- */

bool MPIDI_ZC_paths_pause(uint32_t round)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank &&
            MPIDI_ZC_lane_endpoint(peer_of(rank), &peer_of(rank)->lane, 0) != MPI_SUCCESS) {
            return false;
        }
    }
    paths.pausing = true;
    paths.yields = false;
    path_of(MPIR_Process.rank)->refusal = MPIDI_ZC_REFUSES_NOT;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank) {
            park(rank);
            path_of(rank)->leaves_here = true;
            path_of(rank)->round = round;
            tell(rank, MPIDI_ZC_TELL_PAUSE);
        }
    }
    return true;
}

void MPIDI_ZC_paths_resume(void)
{
    paths.pausing = false;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (path_of(rank)->leaves_here) {
            path_of(rank)->untold &= ~(1u << MPIDI_ZC_TELL_PAUSE | 1u << MPIDI_ZC_TELL_FETCHED);
            tell(rank, MPIDI_ZC_TELL_RESUME);
            unpark(rank);
        }
    }
}

int MPIDI_ZC_paths_silent(void)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank && path_of(rank)->state != MPIDI_ZC_PATH_PAUSED) {
            return rank;
        }
    }
    return -1;
}

bool MPIDI_ZC_paths_quiet(void)
{
    const int self = MPIR_Process.rank;

    return MPIDI_ZC_paths_silent() < 0 && has_all(self, peer_of(self)->lane.next_send);
}

const char *MPIDI_ZC_paths_obstacle(int *rank)
{
    static const char *const texts[] = {
        [MPIDI_ZC_REFUSES_FINALIZE] = "a rank is in MPI_Finalize",
        [MPIDI_ZC_REFUSES_LEAVES] = "another rank leaves",
        [MPIDI_ZC_REFUSES_MEMORY] = "there is no memory for announced messages",
    };

    *rank = -1;
    if (paths.yields) {
        return texts[MPIDI_ZC_REFUSES_LEAVES];
    }
    for (int r = 0; r < MPIR_Process.size; r++) {
        const MPIDI_ZC_path_t *path = path_of(r);
        if (path->leaves_here || r == MPIR_Process.rank) {
            if (path->refusal) {
                *rank = r;
                return texts[path->refusal];
            }
        }
    }
    return NULL;
}

void MPIDI_ZC_paths_forget_endpoints(void)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        path_of(rank)->ep = NULL;
        peer_of(rank)->lane.ep = NULL;
        forget_bulk(rank);
    }
}

int MPIDI_ZC_paths_bind(uint32_t incarnation)
{
    int mpi_errno = MPI_SUCCESS;

    paths.incarnation = incarnation;
    paths.pausing = false;
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (rank != MPIR_Process.rank) {
            MPIDI_ZC_path_t *path = path_of(rank);
            ucs_status_t status = MPIDI_ZC_peer_endpoint(rank, 0, &path->ep);
            MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_create");
            set_state(path, MPIDI_ZC_PATH_BINDING);
            tell(rank, MPIDI_ZC_TELL_REBIND);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPIDI_ZC_binding_t MPIDI_ZC_paths_binding(void)
{
    int open = 0, stale = 0;

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        const MPIDI_ZC_path_state_t state = path_of(rank)->state;
        open += rank != MPIR_Process.rank && state == MPIDI_ZC_PATH_OPEN;
        stale += state == MPIDI_ZC_PATH_STALE;
    }
    if (MPIDI_ZC_paths_open()) {
        return MPIDI_ZC_BINDING_DONE;
    } else if (open > 0 && stale > 0) {
        return MPIDI_ZC_BINDING_SPLIT;
    } else if (stale == MPIR_Process.size - 1) {
        return MPIDI_ZC_BINDING_STALE;
    }
    return MPIDI_ZC_BINDING_AWAITED;
}

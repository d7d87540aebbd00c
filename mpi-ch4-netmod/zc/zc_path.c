/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <pthread.h>
#include "zc_path.h"
#include "zc_address_list.h"
#include "zc_anchor.h"
#include "zc_arrival.h"
#include "zc_connecting.h"
#include "zc_foreign.h"
#include "zc_foreign_path.h"
#include "zc_path_message.h"
#include "zc_peer.h"
#include "zc_windows.h"

/* What MPIDI_ZC_global.paths points into. */
typedef struct table {
    struct table *older;        /* outgrown, but who has the lock of another VCI may be reading it; owned */
    int room;
    MPIDI_ZC_path_t *paths[];
} table_t;

static struct {
    table_t *table;
    int nr;                     /* numbers of paths; the paths of some may be NULL */
    int nr_closed;              /* atomic: paths that are not OPEN */
    int nr_foreign_closed;      /* atomic: of those, to other worlds */
    bool held;                  /* nobody may leave */
    uint32_t nr_early;          /* atomic: messages that wait until CH4 knows their sender */
    uint32_t round;             /* of this process's attempts, and it may stay; 0: it does not leave */
    bool binds;                 /* it has come back, and not all paths are open */
    bool refuses_all;
} paths;

/* Of the table: connections to other worlds begin and end on any VCI. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_rank(int number)
{
    return number < MPIR_Process.size;
}

/* Is there such a path, and can anything still be sent on it? */
static bool is_there(int number)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
    return path && (!path->foreign || !MPIDI_ZC_foreign_path_is_over(path->foreign));
}

/* Returns NULL if CH4 does not know it (any more). */
static MPIDI_ZC_addr_t *peer_of(int number)
{
    return is_rank(number) ? &MPIDI_ZC_AV(&MPIDIU_get_av(0, number)) :
        MPIDI_ZC_foreign_path_peer(MPIDI_ZC_path_of(number)->foreign);
}

static MPIDI_ZC_lane_t *lane_on(int number, int vci)
{
    MPIDI_ZC_addr_t *peer = peer_of(number);
    return likely(peer) ? MPIDI_ZC_lane_of(peer, vci) : NULL;
}

/* Makes a table for @room paths, which has those that there are. False: there is no memory. */
static bool make_table(int room)
{
    table_t *table = MPL_calloc(1, sizeof(*table) + room * sizeof(table->paths[0]),
                                MPL_MEM_ADDRESS);

    if (!table) {
        return false;
    }
    for (int number = 0; number < paths.nr; number++) {
        table->paths[number] = MPIDI_ZC_path_of(number);
    }
    table->room = room;
    table->older = paths.table;
    paths.table = table;
    __atomic_store_n(&MPIDI_ZC_global.paths, table->paths, __ATOMIC_RELEASE);
    return true;
}

static void free_tables(void)
{
    while (paths.table) {
        table_t *last = paths.table;
        paths.table = last->older;
        MPL_free(last);
    }
    MPIDI_ZC_global.paths = NULL;
}

int MPIDI_ZC_paths_init(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_path_lane_t *lanes = NULL;
    MPIDI_ZC_path_t *all = NULL;

    memset(&paths, 0, sizeof(paths));
    MPIDI_ZC_path_messages_init();
    MPIDI_ZC_anchor_init();
    MPIDI_ZC_windows_init();
    const bool has_table = make_table(MPIR_Process.size);
    all = MPL_calloc(MPIR_Process.size, sizeof(*all), MPL_MEM_ADDRESS);
    lanes = MPL_calloc((size_t) MPIR_Process.size * MPIDI_global.n_vcis, sizeof(*lanes),
                       MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!has_table || !all || !lanes, mpi_errno, MPI_ERR_OTHER, "**nomem");
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        all[rank].nr_lanes = MPIDI_global.n_vcis;
        all[rank].lanes = lanes + (size_t) rank * MPIDI_global.n_vcis;
        paths.table->paths[rank] = &all[rank];
    }
    paths.nr = MPIR_Process.size;

  fn_exit:
    return mpi_errno;
  fn_fail:
    free_tables();
    MPL_free(all);
    MPL_free(lanes);
    goto fn_exit;
}

/* Returns a number that no path has, or -1. */
static int free_number(void)
{
    for (int number = MPIR_Process.size; number < paths.nr; number++) {
        if (!MPIDI_ZC_path_of(number)) {
            return number;
        }
    }
    if (paths.nr == paths.table->room && !make_table(2 * paths.nr)) {
        return -1;
    }
    return paths.nr++;
}

int MPIDI_ZC_path_add(struct MPIDI_ZC_foreign *foreign, int vci)
{
    if (!MPIDI_ZC_global.paths) {
        return -1;
    }
    MPIDI_ZC_path_t *path = MPL_calloc(1, sizeof(*path), MPL_MEM_ADDRESS);
    MPIDI_ZC_path_lane_t *lane = MPL_calloc(1, sizeof(*lane), MPL_MEM_ADDRESS);
    int number = -1;

    if (path && lane) {
        *path = (MPIDI_ZC_path_t) {.vci = vci,.nr_lanes = 1,.foreign = foreign,.lanes = lane };
        pthread_mutex_lock(&table_lock);
        number = free_number();
        if (number >= 0) {
            paths.table->paths[number] = path;
        }
        pthread_mutex_unlock(&table_lock);
    }
    if (number < 0) {
        MPL_free(path);
        MPL_free(lane);
    }
    return number;
}

static void count_early(int change)
{
    __atomic_fetch_add(&paths.nr_early, change, __ATOMIC_RELAXED);
}

bool MPIDI_ZC_paths_have_early(void)
{
    return __atomic_load_n(&paths.nr_early, __ATOMIC_RELAXED) > 0;
}

static void forget_early(MPIDI_ZC_path_t * path)
{
    count_early(-(path->early != NULL));
    MPL_free(path->early);
    path->early = NULL;
}

/* @change: 1 or -1. */
static void count_closed(const MPIDI_ZC_path_t * path, int change)
{
    __atomic_fetch_add(&paths.nr_closed, change, __ATOMIC_RELAXED);
    __atomic_fetch_add(&paths.nr_foreign_closed, path->foreign ? change : 0, __ATOMIC_RELAXED);
}

static void forget_watch(MPIDI_ZC_path_t * path)
{
    MPIDI_ZC_liveness_forget(path->watch);
    path->watch = NULL;
}

void MPIDI_ZC_path_remove(int number)
{
    if (number >= 0 && MPIDI_ZC_global.paths) {
        MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
        if (path->state != MPIDI_ZC_PATH_OPEN) {
            count_closed(path, -1);
        }
        forget_early(path);
        forget_watch(path);
        MPIDI_ZC_parked_fail(&path->lanes[0].parked, UCS_ERR_CONNECTION_RESET);
        pthread_mutex_lock(&table_lock);
        paths.table->paths[number] = NULL;
        pthread_mutex_unlock(&table_lock);
        MPL_free(path->lanes);
        MPL_free(path);
    }
}

int MPIDI_ZC_paths_number(void)
{
    return paths.nr;
}

bool MPIDI_ZC_path_is_open(int number)
{
    return number < 0 || !MPIDI_ZC_global.paths ||
        MPIDI_ZC_path_of(number)->state == MPIDI_ZC_PATH_OPEN;
}

bool MPIDI_ZC_path_is_away(int number)
{
    const MPIDI_ZC_path_t *path = number >= 0 && MPIDI_ZC_global.paths ?
        MPIDI_ZC_path_of(number) : NULL;
    return path && path->state == MPIDI_ZC_PATH_PAUSED && path->other_round;
}

int MPIDI_ZC_path_to(const MPIDI_ZC_addr_t * peer)
{
    return peer->self & MPIDI_ZC_FOREIGN ?
        (peer->foreign ? MPIDI_ZC_foreign_path(peer->foreign) : -1) : MPIDI_ZC_world_rank_of(peer);
}

void MPIDI_ZC_paths_free(void)
{
    MPIDI_ZC_path_messages_free();
    if (!MPIDI_ZC_global.paths) {
        return;
    }
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        for (int v = 0; v < MPIDI_global.n_vcis; v++) {
            MPIDI_ZC_parked_drop(&MPIDI_ZC_path_of(rank)->lanes[v].parked);
        }
        MPL_free(MPIDI_ZC_path_of(rank)->addresses);
        MPL_free(MPIDI_ZC_path_of(rank)->upid);
    }
    MPL_free(MPIDI_ZC_path_of(0)->lanes);
    MPL_free(MPIDI_ZC_path_of(0));
    for (int number = MPIR_Process.size; number < paths.nr; number++) {
        if (MPIDI_ZC_path_of(number)) {
            MPIDI_ZC_parked_drop(&MPIDI_ZC_path_of(number)->lanes[0].parked);
            MPIDI_ZC_path_remove(number);
        }
    }
    free_tables();
}

/* Returns what the path @number keeps of its lane on @vci. */
static MPIDI_ZC_path_lane_t *kept_on(int number, int vci)
{
    return MPIDI_ZC_path_lane(MPIDI_ZC_path_of(number), vci);
}

/* Returns the number behind those of the VCIs on which @path has lanes, from @path->vci on. */
static int end_of_vcis(const MPIDI_ZC_path_t * path)
{
    return path->vci + path->nr_lanes;
}

MPIDI_ZC_parked_list_t *MPIDI_ZC_path_parked(int rank, int vci)
{
    return &kept_on(rank, vci)->parked;
}

/* ---- addresses ---- */

const MPIDI_ZC_upid_t *MPIDI_ZC_path_upid(int rank, size_t * length)
{
    if (likely(!MPIDI_ZC_global.paths)) {
        return NULL;
    }
    *length = MPIDI_ZC_path_of(rank)->upid_length;
    return MPIDI_ZC_path_of(rank)->upid;
}

const void *MPIDI_ZC_path_address(int rank, int vci)
{
    if (likely(!MPIDI_ZC_global.paths) || !MPIDI_ZC_path_of(rank)->addresses) {
        return NULL;
    }
    return MPIDI_ZC_address_list_find(MPIDI_ZC_path_of(rank)->addresses, vci, NULL);
}

int MPIDI_ZC_path_keep_addresses(int rank, const char *list, size_t length)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    size_t first_length;
    const char *first = MPIDI_ZC_address_list_find(list, path->vci, &first_length);

    if (path->foreign) {
        return MPIDI_ZC_foreign_path_readdress(path->foreign, first, first_length);
    }
    char *addresses = MPL_malloc(length, MPL_MEM_ADDRESS);
    MPIDI_ZC_upid_t *upid = MPL_malloc(sizeof(*upid) + first_length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!addresses || !upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
    memcpy(addresses, list, length);
    *upid = *MPIDI_ZC_upid_of(rank);
    memcpy(upid->address, first, first_length);
    MPL_free(path->addresses);
    MPL_free(path->upid);
    path->addresses = addresses;
    path->addresses_length = length;
    path->upid = upid;
    path->upid_length = sizeof(*upid) + first_length;

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPL_free(addresses);
    MPL_free(upid);
    goto fn_exit;
}

static bool has_endpoint(const MPIDI_ZC_path_lane_t * lane, ucp_ep_h ep)
{
    bool has = lane->ep == ep;
    for (uint32_t i = 0; i < lane->nr_bulk; i++) {
        has = has || lane->bulk[i] == ep;
    }
    return has;
}

bool MPIDI_ZC_path_expects_loss(int rank, int vci, ucp_ep_h ep)
{
    if (likely(!MPIDI_ZC_global.paths)) {
        return false;
    }
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    if (!MPIDI_ZC_path_is_away(rank) || !has_endpoint(MPIDI_ZC_path_lane(path, vci), ep)) {
        return false;
    }
    /* Who has the lock of another VCI may not write the path. The first one's is lost as well. */
    path->quiet = path->quiet || vci == path->vci;
    path->lost = path->lost || vci == path->vci;
    return true;
}

/* ---- what is under way on a lane ---- */

void MPIDI_ZC_path_add_bulk(int rank, int vci, ucp_ep_h ep)
{
    MPIDI_ZC_path_lane_t *lane = kept_on(rank, vci);

    MPIR_Assert(lane->nr_bulk < 2);
    lane->bulk[lane->nr_bulk++] = ep;
}

void MPIDI_ZC_path_announces(int rank, int vci)
{
    if (likely(rank >= 0)) {
        kept_on(rank, vci)->announced++;
    }
}

void MPIDI_ZC_path_announced(int rank, int vci)
{
    /* The path to a process that has died may have ended while UCX still had a message for that, over shared
     * memory. */
    if (likely(MPIDI_ZC_path_of(rank))) {
        kept_on(rank, vci)->announced--;
    }
}

void MPIDI_ZC_path_credit_sent(int rank, int vci)
{
    kept_on(rank, vci)->credits_sent++;
}

void MPIDI_ZC_path_credit_received(int rank, int vci)
{
    kept_on(rank, vci)->credits_received++;
}

static void endpoint_flushed(void *request, ucs_status_t status, void *user_data)
{
    MPIDI_ZC_path_lane_t *lane = user_data;

    lane->flushing--;
    lane->flush_failed = lane->flush_failed || status != UCS_OK;
    ucp_request_free(request);
}

/* False: there is no memory. Any other endpoint that cannot be flushed has lost its connection, which
 * UCP reports. */
static bool begin_flush(MPIDI_ZC_path_lane_t * lane, ucp_ep_h ep)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = endpoint_flushed,
        .user_data = lane,
    };

    lane->flushing++;
    const ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        return true;
    }
    lane->flushing--;
    const ucs_status_t status = UCS_PTR_STATUS(request);
    lane->flush_failed = lane->flush_failed || (status != UCS_OK && status != UCS_ERR_NO_MEMORY);
    return status != UCS_ERR_NO_MEMORY;
}

/* Has UCP completed all that was sent on @lane, which is the @nth, but for what has the order of PAUSE to
 * QUIET? */
static bool is_flushed(MPIDI_ZC_path_lane_t * lane, int nth)
{
    const bool flushes_first = lane->ep && (nth > 0 || lane->one_sided);

    if (lane->announced > lane->parked.nr_announced) {
        return false;
    }
    for (; lane->flushes_begun < lane->nr_bulk + flushes_first; lane->flushes_begun++) {
        const uint32_t i = lane->flushes_begun;
        if (!begin_flush(lane, i < lane->nr_bulk ? lane->bulk[i] : lane->ep)) {
            return false;       /* the next look tries again */
        }
    }
    return lane->flushing == 0;
}

/* The same of all lanes. */
static bool all_flushed(int rank)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    bool all = true, failed = false;

    for (int i = 0; i < path->nr_lanes; i++) {
        all = is_flushed(&path->lanes[i], i) && all;
        failed = failed || path->lanes[i].flush_failed;
    }
    if (all && !failed) {
        MPIDI_ZC_windows_flushed(rank);
    }
    return all;
}

/* The lane of @vci has no endpoints for bulk from here on, and no window one. */
static void forget_others(int rank, int vci)
{
    MPIDI_ZC_lane_t *lane = lane_on(rank, vci);

    if (lane && lane->bulk) {
        MPIDI_ZC_VCI(vci).bulk.eps[lane->bulk] = NULL;
        lane->bulk = 0;
    }
    if (lane) {
        MPIDI_ZC_lane_share_anew(lane);
    }
    kept_on(rank, vci)->nr_bulk = 0;
    kept_on(rank, vci)->one_sided = false;
}

bool MPIDI_ZC_paths_open(void)
{
    return __atomic_load_n(&paths.nr_closed, __ATOMIC_RELAXED) == 0;
}

bool MPIDI_ZC_paths_to_worlds_open(void)
{
    return __atomic_load_n(&paths.nr_foreign_closed, __ATOMIC_RELAXED) == 0;
}

void MPIDI_ZC_paths_refuse_all(void)
{
    paths.refuses_all = true;
}

/* ---- parking ---- */

static void set_state(MPIDI_ZC_path_t * path, MPIDI_ZC_path_state_t state)
{
    const int change = (state != MPIDI_ZC_PATH_OPEN) - (path->state != MPIDI_ZC_PATH_OPEN);

    if (change != 0) {
        count_closed(path, change);
    }
    path->state = state;
    if (state == MPIDI_ZC_PATH_OPEN) {
        forget_watch(path);
    }
}

static void park_lane(int rank, int vci)
{
    MPIDI_ZC_path_lane_t *kept = kept_on(rank, vci);
    MPIDI_ZC_lane_t *lane = lane_on(rank, vci);

    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(vci));
    if (!lane->paused) {
        kept->ep = lane->ep;
        kept->own_next = lane->next_send;
        lane->ep = NULL;
        lane->paused = true;
    }
    kept->flushes_begun = 0;
    kept->flush_failed = false;
}

/* Parks from here on, and negotiates. The first lane has an endpoint, unless it parks already. */
static void park(int rank, bool leads, uint32_t round)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    for (int v = path->vci; v < end_of_vcis(path); v++) {
        park_lane(rank, v);
    }
    path->numbered = path->complete = path->fetched = path->heard = path->quiet = false;
    if (!path->own_round) {
        path->refusal = MPIDI_ZC_REFUSES_NOT;   /* else the attempt is refused, whoever leads */
    }
    path->leads = leads;
    path->round = round;
    set_state(path, MPIDI_ZC_PATH_PAUSING);
}

/* Sends what was parked. */
static void unpark_lane(int rank, int vci)
{
    MPIDI_ZC_parked_list_t *parked = MPIDI_ZC_path_parked(rank, vci);

    if (parked->first && is_rank(rank)) {
        MPIDI_ZC_lane_t *lane = lane_on(rank, vci);
        /* It has its number, so all that follows would wait for it. */
        MPIDI_ZC_end_job_if(MPIDI_ZC_lane_endpoint(peer_of(rank), lane, vci));
        MPIDI_ZC_unpark(parked, lane->ep, NULL);
    } else if (parked->first) {
        struct MPIDI_ZC_foreign *foreign = MPIDI_ZC_path_of(rank)->foreign;
        const ucp_ep_h ep = MPIDI_ZC_foreign_path_endpoint(foreign);
        if (ep) {
            MPIDI_ZC_unpark(parked, ep, foreign);
        } else {
            MPIDI_ZC_parked_fail(parked, UCS_ERR_CONNECTION_RESET);     /* it is lost */
        }
    }
}

/* Opens the path, over the endpoints that it has kept. */
static void unpark(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    for (int v = path->vci; v < end_of_vcis(path); v++) {
        MPIDI_ZC_lane_t *lane = lane_on(rank, v);
        if (likely(lane)) {
            lane->ep = kept_on(rank, v)->ep;
            lane->paused = false;
        }
        kept_on(rank, v)->ep = NULL;
    }
    path->leads = path->lost = false;
    path->own_round = path->other_round = 0;
    if (is_rank(rank)) {
        set_state(path, MPIDI_ZC_PATH_OPEN);
    }
    for (int v = path->vci; v < end_of_vcis(path); v++) {
        unpark_lane(rank, v);
    }
    set_state(path, MPIDI_ZC_PATH_OPEN);        /* a FIN follows what was parked */
    if (is_rank(rank)) {
        MPIDI_ZC_anchor_introduce_to_all(rank);
    }
}

bool MPIDI_ZC_path_is_connected(int rank, int vci)
{
    return vci == 0 || kept_on(rank, vci)->ep;
}

int MPIDI_ZC_path_connect(int rank, int vci)
{
    return MPIDI_ZC_path_is_connected(rank, vci) ? MPI_SUCCESS :
        MPIDI_ZC_lane_connect_first(rank, lane_on(rank, vci), vci, &kept_on(rank, vci)->ep);
}

/* ---- numbers ---- */

size_t MPIDI_ZC_path_numbers(const MPIDI_ZC_path_t * path, MPIDI_ZC_path_numbers_t * numbers)
{
    for (int i = 0; i < path->nr_lanes; i++) {
        numbers[i] = (MPIDI_ZC_path_numbers_t) {
            .messages = path->lanes[i].own_next,
            .credits = path->lanes[i].credits_sent,
            .connected = path->lanes[i].ep != NULL,
        };
    }
    return path->nr_lanes * sizeof(*numbers);
}

/* Takes the numbers of @rank, and makes the endpoints that it has and this process has not. False: one
 * cannot be made, and the mover waits in vain, and stays. */
static bool take_numbers(int rank, const MPIDI_ZC_path_received_t * received)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    MPIDI_ZC_path_numbers_t numbers[MPIDI_CH4_MAX_VCIS];
    const size_t length = path->nr_lanes * sizeof(*numbers);

    if (is_rank(rank) ? received->length != length : received->length < length) {
        return false;
    }
    memcpy(numbers, received->data, length);
    for (int i = 0; i < path->nr_lanes; i++) {
        MPIDI_ZC_path_lane_t *lane = &path->lanes[i];
        /* The first lane has its endpoint. */
        if (i > 0 && numbers[i].connected && MPIDI_ZC_path_connect(rank, i) != MPI_SUCCESS) {
            return false;
        }
        lane->next = numbers[i].messages;
        lane->credits_next = numbers[i].credits;
    }
    return true;
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

/* What cannot be watched is counted once for a process, and not for each VCI. */
static void watch(MPIDI_ZC_path_t * path, const MPIDI_ZC_path_received_t * pause)
{
    const size_t numbers = sizeof(MPIDI_ZC_path_numbers_t);     /* there is one lane */

    forget_watch(path);
    if (path->vci == 0 || pause->length > numbers) {
        path->watch = MPIDI_ZC_liveness_watch(pause->data + numbers, pause->length - numbers);
    }
}

static void follow(int rank, const MPIDI_ZC_path_received_t * pause)
{
    park(rank, false, pause->message.round);
    if (!take_numbers(rank, pause)) {
        return;
    }
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_PARKS);
    if (!is_rank(rank)) {
        watch(MPIDI_ZC_path_of(rank), pause);
    }
}

/* Returns why no mover may begin to leave, or MPIDI_ZC_REFUSES_NOT. */
static MPIDI_ZC_refusal_t refusal_of_all(void)
{
    if (paths.refuses_all) {
        return MPIDI_ZC_REFUSES_FINALIZE;
    } else if (paths.binds || MPIDI_ZC_anchor_is_waited_for()) {
        return MPIDI_ZC_REFUSES_BINDS;
    }
    return paths.held ? MPIDI_ZC_REFUSES_CONNECTS : MPIDI_ZC_REFUSES_NOT;
}

/* This process leaves, and so does one of another world, whose PAUSE for the time @round has come. Returns
 * whether that has to stay. */
static bool goes_first(int number, uint32_t round)
{
    if (MPIDI_ZC_upid_self()->id < MPIDI_ZC_foreign_path_id(MPIDI_ZC_path_of(number)->foreign)) {
        refuse(number, round, MPIDI_ZC_REFUSES_LEAVES);
        return true;
    }
    /* The other refuses likewise, unless it has given up before it knows. */
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
    if (path->own_round) {
        path->given_up = path->own_round;
        path->known = round;
        path->own_round = 0;
        path->untold &= ~(1u << MPIDI_ZC_TELL_PAUSE);
        MPIDI_ZC_path_tell(number, MPIDI_ZC_TELL_RESUME);
    }
    MPIDI_ZC_path_of(MPIR_Process.rank)->refusal = MPIDI_ZC_REFUSES_LEAVES;
    return false;
}

static void handle_pause(int rank, const MPIDI_ZC_path_received_t * received)
{
    const MPIDI_ZC_path_message_t *message = &received->message;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    const MPIDI_ZC_refusal_t why = refusal_of_all();

    if (path->foreign && path->incarnation < message->incarnation) {
        path->incarnation = message->incarnation;       /* it had left before it was known here */
    }
    if (why) {
        refuse(rank, message->round, why);
        return;
    }
    if (!is_rank(rank) && paths.round) {
        if (!goes_first(rank, message->round)) {
            path->other_round = message->round;
            follow(rank, received);
        }
        return;
    }
    if (path->state == MPIDI_ZC_PATH_OPEN &&
        MPIDI_ZC_lane_endpoint(peer_of(rank), &peer_of(rank)->lane, path->vci) != MPI_SUCCESS) {
        return;                 /* the mover waits in vain, and stays */
    }
    const bool joins = path->state != MPIDI_ZC_PATH_OPEN && message->leader_round == path->round &&
        message->leads != path->leads;
    path->other_round = message->round;
    if (joins || (path->leads && !path->refusal && MPIR_Process.rank < rank)) {
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_KNOWS);
    } else {
        follow(rank, received);
    }
}

static void handle_resume(int rank, const MPIDI_ZC_path_message_t * message)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    forget_early(path);
    if (is_rank(rank)) {
        MPIDI_ZC_anchor_forget(rank);
    }
    if (!path->other_round || path->other_round != message->round) {
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

/* Sends STALE to addresses that are not kept. If that fails, the copy waits in vain. @number: -1 if
 * the process, of another world, is not known any more. */
static void tell_stale(int number, const MPIDI_ZC_path_received_t * rebind)
{
    /* A copy that is no later than what is known here is not the process that was lost. */
    const bool lost = number < 0 ||
        (!is_there(number) &&
         rebind->message.incarnation > MPIDI_ZC_path_of(number)->incarnation);
    const MPIDI_ZC_path_message_t message = {
        .kind = MPIDI_ZC_TELL_STALE,
        .incarnation = rebind->message.incarnation,
        .refusal = lost ? MPIDI_ZC_REFUSES_LOST : MPIDI_ZC_REFUSES_NOT,
    };
    ucp_ep_h ep;

    if (MPIDI_ZC_peer_endpoint_for_answer(MPIDI_ZC_address_list_find(rebind->data, 0, NULL), &ep) ==
        UCS_OK) {
        (void) MPIDI_ZC_path_answer(ep, rebind, message);
        close_endpoint(ep, 0);
    }
}

static void close_endpoints_of_lane(int rank, int vci)
{
    MPIDI_ZC_path_lane_t *lane = kept_on(rank, vci);

    if (lane->ep) {
        close_endpoint(lane->ep, UCP_EP_CLOSE_FLAG_FORCE);
        lane->ep = NULL;
    }
    for (uint32_t i = 0; i < lane->nr_bulk; i++) {
        close_endpoint(lane->bulk[i], UCP_EP_CLOSE_FLAG_FORCE);
    }
    forget_others(rank, vci);
}

/* Closes all endpoints of @rank, which has other addresses from here on. */
static void close_old_endpoints(int rank)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    MPIDI_ZC_windows_forget(rank);
    for (int v = path->vci; v < end_of_vcis(path); v++) {
        close_endpoints_of_lane(rank, v);
    }
}

/* Makes the endpoint of the path to the address of @rank. */
static int connect_path(int rank)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_ep_h *ep = &MPIDI_ZC_path_of(rank)->lanes[0].ep;

    MPIDI_ZC_path_of(rank)->lost = false;
    if (!is_rank(rank)) {
        mpi_errno = MPIDI_ZC_foreign_path_connect(MPIDI_ZC_path_of(rank)->foreign, ep);
        MPIR_ERR_CHECK(mpi_errno);
        goto fn_exit;
    }
    ucs_status_t status = MPIDI_ZC_peer_endpoint(rank, 0, ep);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_create");

  fn_exit:
    return mpi_errno;
  fn_fail:
    *ep = NULL;
    goto fn_exit;
}

/* The same for its @incarnation, which has the @addresses, @length bytes long. */
static int connect_again(int rank, uint32_t incarnation, const char *addresses, size_t length)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = MPIDI_ZC_path_keep_addresses(rank, addresses, length);
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
    return path->state == MPIDI_ZC_PATH_BINDING && path->lanes[0].ep && path->addresses &&
        rebind->message.incarnation == path->incarnation &&
        path->addresses_length == rebind->length &&
        memcmp(path->addresses, rebind->data, rebind->length) == 0;
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
        mpi_errno = connect_again(rank, rebind->message.incarnation, rebind->data, rebind->length);
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

    if (path->state != MPIDI_ZC_PATH_BINDING || path->lanes[0].ep ||
        incarnation < path->incarnation) {
        return;                 /* it has found this process meanwhile */
    }
    MPIDI_ZC_end_job_if(incarnation == path->incarnation ? connect_path(rank) :
                        connect_again(rank, incarnation, received->data, received->length));
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_REBIND);
}

/* ---- handling ---- */

/* Does a message of this kind go from rank to rank only? */
static bool is_of_this_world(MPIDI_ZC_tell_t kind)
{
    switch (kind) {
        case MPIDI_ZC_TELL_DONE:
        case MPIDI_ZC_TELL_ASK:
        case MPIDI_ZC_TELL_STAYS:
        case MPIDI_ZC_TELL_GOES:
        case MPIDI_ZC_TELL_INTRODUCE:
            return true;
        default:
            return false;
    }
}

/* Handles what has come on the path @rank. */
static void handle(int rank, const MPIDI_ZC_path_received_t * received)
{
    const MPIDI_ZC_path_message_t *message = &received->message;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    const bool negotiates = path->state != MPIDI_ZC_PATH_OPEN && message->round == path->round;
    const bool answered = path->state == MPIDI_ZC_PATH_BINDING &&
        message->incarnation == MPIDI_ZC_path_own_incarnation();

    switch ((MPIDI_ZC_tell_t) message->kind) {
        case MPIDI_ZC_TELL_PAUSE:
            handle_pause(rank, received);
            break;
        case MPIDI_ZC_TELL_PARKS:
            if (negotiates && path->leads && take_numbers(rank, received)) {
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
            if (answered && path->foreign && message->refusal == MPIDI_ZC_REFUSES_LOST) {
                MPIDI_ZC_foreign_path_lose(path->foreign);
            } else if (answered) {
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

/* Keeps @received, if it is a PAUSE of a process of another world that CH4 does not know yet. One by a connection
 * that CH4 has given up is refused: it may last as long as CH4 on the other side wants it to. So is one by a
 * connection that CH4 will not know: those of other VCIs are made by both sides in the same call, which may have
 * failed at this one. */
static bool keep_early(int number, MPIDI_ZC_path_received_t * received)
{
    if (is_rank(number) || received->message.kind != MPIDI_ZC_TELL_PAUSE || peer_of(number)) {
        return false;
    }
    if (MPIDI_ZC_foreign_path_is_given_up(MPIDI_ZC_path_of(number)->foreign) ||
        (MPIDI_ZC_path_of(number)->vci > 0 && !MPIDI_ZC_connecting())) {
        refuse(number, received->message.round, MPIDI_ZC_REFUSES_CONNECTS);
        MPL_free(received);
        return true;
    }
    forget_early(MPIDI_ZC_path_of(number));
    MPIDI_ZC_path_of(number)->early = received;
    count_early(1);
    return true;
}

static void handle_early(void)
{
    for (int number = MPIR_Process.size; MPIDI_ZC_paths_have_early() && number < paths.nr; number++) {
        MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
        if (path && path->early && peer_of(number)) {
            MPIDI_ZC_path_received_t *received = path->early;
            path->early = NULL;
            count_early(-1);
            handle(number, received);
            MPL_free(received);
        }
    }
}

/* Returns the number of the path on which @message has come, or -1. */
static int number_of(const MPIDI_ZC_path_message_t * message)
{
    if (!(message->sender & MPIDI_ZC_FOREIGN)) {
        return (int) message->sender;
    }
    /* Those follow a FIN, too, with which this process forgets the sender. */
    return message->kind == MPIDI_ZC_TELL_STALE || message->kind == MPIDI_ZC_TELL_REFUSE ?
        MPIDI_ZC_foreign_path_of_self(message->connection) :
        MPIDI_ZC_foreign_path_of_sender(message->sender);
}

static void handle_all(void)
{
    MPIDI_ZC_path_received_t *received;

    handle_early();
    while ((received = MPIDI_ZC_path_take_message()) != NULL) {
        const int number = number_of(&received->message);
        const bool is_known = number >= 0 &&
            (is_rank(number) || !is_of_this_world(received->message.kind));
        if (is_known && keep_early(number, received)) {
            continue;
        }
        if (is_known) {
            handle(number, received);
        } else if (number < 0 && received->message.kind == MPIDI_ZC_TELL_REBIND) {
            tell_stale(number, received);       /* it has come back after it was given up */
        }
        MPL_free(received);
    }
}

/* Are all messages of @rank on @vci here, up to the number @next, and fetched? *@memory: false if there is
 * not enough for that. */
static bool has_all_of(int rank, int vci, uint32_t next, bool * memory)
{
    struct MPIDI_ZC_foreign *foreign = MPIDI_ZC_path_of(rank)->foreign;
    const uint64_t sender = foreign ? MPIDI_ZC_foreign_path_other(foreign) : (uint64_t) rank;
    bool enough;
    const bool fetched = MPIDI_ZC_arrivals_fetch(&MPIDI_ZC_VCI(vci), sender, &enough);

    *memory = *memory && enough;
    return fetched && (foreign ? MPIDI_ZC_foreign_path_has_all(foreign, next) :
                       lane_on(rank, vci)->inbound.next == next);
}

/* Is all here that @rank has told the numbers of? */
static bool has_all(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    bool memory = true, all = true;

    for (int v = path->vci; v < end_of_vcis(path); v++) {
        const MPIDI_ZC_path_lane_t *lane = kept_on(rank, v);
        all = has_all_of(rank, v, lane->next, &memory) && all &&
            lane->credits_received == lane->credits_next;
    }
    if (unlikely(!memory) && path->refusal == MPIDI_ZC_REFUSES_NOT) {
        path->refusal = MPIDI_ZC_REFUSES_MEMORY;
        if (path->other_round) {
            refuse(rank, path->other_round, path->refusal);
        }
    }
    return all;
}

/* Are all messages of this process to itself here, and complete? */
static bool has_all_of_itself(void)
{
    const int self = MPIR_Process.rank;
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(self);
    bool memory = true, all = true;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        all = has_all_of(self, v, lane_on(self, v)->next_send, &memory) && all &&
            path->lanes[v].announced == 0 &&
            path->lanes[v].credits_received == path->lanes[v].credits_sent;
    }
    if (unlikely(!memory) && path->refusal == MPIDI_ZC_REFUSES_NOT) {
        path->refusal = MPIDI_ZC_REFUSES_MEMORY;
    }
    return all;
}

/* May step() do something, before there is another message? */
static bool may_step(const MPIDI_ZC_path_t * path)
{
    return (path->state == MPIDI_ZC_PATH_HAS_FETCHED && path->heard) ||
        (path->state == MPIDI_ZC_PATH_PAUSING && (path->leads ? path->numbered :
                                                  path->fetched || !path->complete));
}

/* The process, of another world, is lost, and nothing is sent to it any more. */
static void abandon(int number)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
    MPIDI_ZC_lane_t *lane = lane_on(number, path->vci);

    path->leads = path->lost = false;
    path->own_round = path->other_round = 0;
    path->lanes[0].ep = NULL;
    if (lane) {
        lane->paused = false;
        lane->ep = MPIDI_ZC_foreign_path_endpoint(path->foreign);
    }
    set_state(path, MPIDI_ZC_PATH_OPEN);
    MPIDI_ZC_parked_fail(&path->lanes[0].parked, UCS_ERR_CONNECTION_RESET);
}

/* Has the process, of another world, ended while it was away? Until it is away it is looked for what tells
 * that. The connection of its first VCI may have told it before. */
static bool has_ended(int number)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
    return path && MPIDI_ZC_path_is_away(number) &&
        ((path->watch && MPIDI_ZC_liveness_is_over(path->watch)) ||
         (path->foreign && MPIDI_ZC_foreign_path_first_is_lost(path->foreign)));
}

/* The process, of another world, has ended as far as can be seen. If it lives, and stays, it is to see that
 * as well. */
static void lose(int number)
{
    struct MPIDI_ZC_foreign *foreign = MPIDI_ZC_path_of(number)->foreign;

    close_old_endpoints(number);
    MPIDI_ZC_foreign_path_forget_endpoint(foreign);
    MPIDI_ZC_foreign_path_lose(foreign);
}

static void step(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    if (unlikely(has_ended(rank))) {
        lose(rank);
        path = MPIDI_ZC_path_of(rank);  /* CH4 may have given it up before */
    }
    if (unlikely(!is_there(rank))) {
        if (path && path->state != MPIDI_ZC_PATH_OPEN) {
            abandon(rank);
        }
        if (path) {
            path->untold = 0;
        }
        return;
    }
    if (path->state == MPIDI_ZC_PATH_HAS_FETCHED && path->heard && all_flushed(rank)) {
        set_state(path, MPIDI_ZC_PATH_PAUSED);
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_QUIET);
    }
    if (path->state != MPIDI_ZC_PATH_PAUSING) {
        return;
    }
    path->complete = (!path->leads || path->numbered) && has_all(rank);
    if (path->leads && path->complete) {
        set_state(path, MPIDI_ZC_PATH_HAS_FETCHED);
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_FETCHED);
    } else if (path->complete && path->fetched && all_flushed(rank)) {
        set_state(path, MPIDI_ZC_PATH_PAUSED);
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_HEARD);
    }
}

bool MPIDI_ZC_paths_may_step(void)
{
    bool may = !MPIDI_ZC_paths_to_worlds_open();

    for (int rank = 0; !may && !MPIDI_ZC_paths_open() && rank < MPIR_Process.size; rank++) {
        may = may_step(MPIDI_ZC_path_of(rank));
    }
    return may;
}

void MPIDI_ZC_paths_progress(void)
{
    if (likely(MPIDI_ZC_paths_open() && !MPIDI_ZC_path_messages_wait() && !MPIDI_ZC_paths_have_early() &&
               !MPIDI_ZC_foreign_path_waits())) {
        return;
    }
    handle_all();
    MPIDI_ZC_anchor_progress();
    MPIDI_ZC_path_tell_again();
    for (int rank = 0; rank < paths.nr; rank++) {
        step(rank);
    }
    MPIDI_ZC_foreign_path_settle();
}

/* ---- the mover ---- */

bool MPIDI_ZC_paths_pause(uint32_t round)
{
    for (int rank = 0; rank < paths.nr; rank++) {
        if (rank != MPIR_Process.rank && is_there(rank) &&
            (MPIDI_ZC_path_of(rank)->untold ||
             MPIDI_ZC_lane_endpoint(peer_of(rank), &peer_of(rank)->lane,
                                    MPIDI_ZC_path_of(rank)->vci) != MPI_SUCCESS)) {
            return false;
        }
    }
    paths.round = round;
    MPIDI_ZC_path_of(MPIR_Process.rank)->refusal = MPIDI_ZC_REFUSES_NOT;
    for (int rank = 0; rank < paths.nr; rank++) {
        if (rank != MPIR_Process.rank && is_there(rank)) {
            pause_path(rank);
        }
    }
    MPIDI_ZC_anchor_seek(round);
    return true;
}

void MPIDI_ZC_paths_resume(void)
{
    paths.round = 0;
    for (int rank = 0; rank < paths.nr; rank++) {
        MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        if (path && path->own_round && is_there(rank)) {
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
    for (int rank = 0; rank < paths.nr; rank++) {
        if (rank != MPIR_Process.rank && is_there(rank) && !is_quiet(MPIDI_ZC_path_of(rank))) {
            return rank;
        }
    }
    return MPIDI_ZC_anchor_asked();
}

bool MPIDI_ZC_paths_quiet(void)
{
    return MPIDI_ZC_paths_silent() < 0 && has_all_of_itself();
}

const char *MPIDI_ZC_paths_obstacle(int *rank, bool * passes)
{
    static const char *const texts[] = {
        [MPIDI_ZC_REFUSES_FINALIZE] = "a rank is in MPI_Finalize",
        [MPIDI_ZC_REFUSES_BINDS] = "another rank waits for one that is away",
        [MPIDI_ZC_REFUSES_MEMORY] = "there is no memory for announced messages",
        [MPIDI_ZC_REFUSES_CONNECTS] = "another process connects to another world",
        [MPIDI_ZC_REFUSES_LEAVES] = "a process of another world leaves as well",
    };

    *rank = -1;
    *passes = true;
    if (MPIDI_ZC_anchor_is_missing()) {
        return "no other rank stays";
    }
    for (int r = 0; r < paths.nr; r++) {
        const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(r);
        if (path && (path->own_round || r == MPIR_Process.rank) && path->refusal) {
            *rank = r;
            /* One of another world that is in MPI_Finalize is gone soon. */
            *passes = path->refusal != MPIDI_ZC_REFUSES_MEMORY &&
                (path->refusal != MPIDI_ZC_REFUSES_FINALIZE || path->foreign);
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
    for (int rank = 0; rank < paths.nr; rank++) {
        for (int v = 0; is_rank(rank) && v < MPIDI_global.n_vcis; v++) {
            MPIDI_ZC_path_of(rank)->lanes[v].ep = NULL;
            lane_on(rank, v)->ep = NULL;
            forget_others(rank, v);
        }
        if (!is_rank(rank) && MPIDI_ZC_path_of(rank)) {
            MPIDI_ZC_path_of(rank)->lanes[0].ep = NULL;
            MPIDI_ZC_path_of(rank)->lanes[0].one_sided = false;
            MPIDI_ZC_foreign_path_forget_endpoint(MPIDI_ZC_path_of(rank)->foreign);
        }
    }
}

int MPIDI_ZC_paths_bind(uint32_t incarnation)
{
    int mpi_errno = MPI_SUCCESS;

    const int anchor = MPIDI_ZC_anchor_of_this();

    MPIDI_ZC_path_set_own_incarnation(incarnation);
    paths.binds = true;
    for (int rank = 0; rank < paths.nr; rank++) {
        if (MPIDI_ZC_path_of(rank)) {
            MPIDI_ZC_path_of(rank)->binds = rank != MPIR_Process.rank && is_there(rank);
        }
        if (rank != MPIR_Process.rank && is_there(rank)) {
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
    /* Those of other worlds have all stayed. */
    for (int number = MPIR_Process.size; number < paths.nr; number++) {
        if (is_there(number)) {
            mpi_errno = connect_path(number);
            MPIR_ERR_CHECK(mpi_errno);
            MPIDI_ZC_path_tell(number, MPIDI_ZC_TELL_REBIND);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPIDI_ZC_binding_t MPIDI_ZC_paths_binding(void)
{
    int awaited = 0, asked = 0, stale = 0, all = 0;

    for (int rank = 0; rank < paths.nr; rank++) {
        const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        if (!is_there(rank) || !path->binds) {
            continue;           /* it may be connected since */
        }
        all++;
        awaited += path->state == MPIDI_ZC_PATH_BINDING;
        asked += path->state == MPIDI_ZC_PATH_BINDING && path->lanes[0].ep;
        stale += path->state == MPIDI_ZC_PATH_STALE;
    }
    if (awaited == 0 && stale == 0) {
        paths.binds = false;
        MPIDI_ZC_anchor_release();
        return MPIDI_ZC_BINDING_DONE;
    } else if (stale > 0 && awaited + stale < all) {
        return MPIDI_ZC_BINDING_SPLIT;
    } else if (stale > 0 && asked == 0) {
        return MPIDI_ZC_BINDING_STALE;
    }
    return MPIDI_ZC_BINDING_AWAITED;
}

/* ---- other worlds ---- */

const char *MPIDI_ZC_paths_foreign_obstacle(bool *passes)
{
    *passes = true;
    for (int number = MPIR_Process.size; number < paths.nr; number++) {
        const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
        if (path && is_there(number) && !path->leads && path->state != MPIDI_ZC_PATH_OPEN) {
            return "a process of another world leaves, or is away";
        }
    }
    return NULL;
}

bool MPIDI_ZC_paths_hold(void)
{
    paths.held = true;          /* those that are away come back */
    return MPIDI_ZC_paths_open();
}

void MPIDI_ZC_paths_let_go(void)
{
    paths.held = false;
}

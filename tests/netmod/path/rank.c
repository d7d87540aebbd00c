/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the netmod that the simulation has do not define: rank.h. */
#include <mpidimpl.h>

#include "zc_address_list.h"
#include "zc_detach.h"
#include "zc_order.h"
#include "zc_path_message.h"
#include "zc_peer.h"
#include "zc_windows.h"

#include <stdarg.h>

struct zc_test_process MPIR_Process;
struct zc_test_global MPIDI_global;
struct zc_test_netmod MPIDI_ZC_global;
MPIDI_av_entry_t zc_test_av[ZC_TEST_RANKS];
int MPIR_CVAR_CH4_ZC_DETACH_FD, MPIR_CVAR_CH4_ZC_DETACH_SECONDS;

/* What an announced message counts as: four share a connection before there are some for bulk. */
enum { ANNOUNCED_BYTES = MPIDI_ZC_BULK_SHARED / 4 };

/* A message of the program that is sent. */
typedef struct {
    zc_test_message_t message;
    int rank, vci;
} sent_t;

/* One that has overtaken another, or waits for an endpoint. */
typedef struct early {
    struct early *next;
    zc_test_message_t message;
    void *descriptor;
} early_t;

/* One that has been announced. */
typedef struct arrival {
    struct arrival *next;
    zc_test_message_t message;
    int vci;
    void *descriptor;
    bool is_fetched;
} arrival_t;

/* What a rank has received and not handled, by VCI and sender. */
typedef struct {
    early_t *early; /* in the order of their numbers */
    bool unconnected, announced;
} waiting_t;

static struct {
    const zc_test_world_t *world;
    void *self;
    char upids[ZC_TEST_RANKS][sizeof(MPIDI_ZC_upid_t) + ZC_TEST_ADDRESS];
    char lane_addresses[ZC_TEST_RANKS * (ZC_TEST_VCIS - 1) * ZC_TEST_ADDRESS];
    char address[ZC_TEST_VCIS][ZC_TEST_ADDRESS];
    MPIDI_ZC_lane_t lanes[ZC_TEST_VCIS][ZC_TEST_RANKS];
    waiting_t waiting[ZC_TEST_VCIS][ZC_TEST_RANKS];
    arrival_t *arrivals;
    int sends, announced_to[ZC_TEST_RANKS];
    bool is_over; /* the simulation is */
    MPIR_Win windows[ZC_TEST_WINDOWS];
    uint32_t keys[ZC_TEST_WINDOWS]; /* to this rank's memory; 0: it is not registered */
    uint32_t registered;            /* how often memory has been */
    int ports;                      /* are open */
} own;

/* ---- memory and time ---- */

void *zc_test_malloc(size_t size)
{
    return own.world->fails(own.self, "malloc") ? NULL : own.world->allocate(own.self, size);
}

void *zc_test_calloc(size_t size)
{
    void *p = zc_test_malloc(size);
    return p ? memset(p, 0, size) : NULL;
}

/* (The tables of endpoints for bulk are the only things that grow.) */
void *zc_test_realloc(void *old, size_t size)
{
    void *p = zc_test_malloc(size);
    for (int v = 0; p && old && v < MPIDI_global.n_vcis; v++) {
        if (MPIDI_ZC_VCI(v).bulk.eps == old)
            memcpy(p, old, MPIDI_ZC_VCI(v).bulk.room * sizeof(ucp_ep_h));
    }
    if (p)
        zc_test_free(old);
    return p;
}

void zc_test_free(void *p)
{
    if (p)
        own.world->release(own.self, p);
}

int zc_test_gettime(struct timespec *now)
{
    const uint64_t ns = own.world->now_ns(own.self);
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

void zc_test_lock(int vci)
{
    own.world->lock(own.self, vci);
}

void zc_test_unlock(int vci)
{
    own.world->unlock(own.self, vci);
}

void zc_test_say(FILE *to, const char *format, ...)
{
    (void)to, (void)format;
}

_Noreturn void MPID_Abort(void *comm, int error, int code, const char *text)
{
    (void)comm, (void)error, (void)code;
    own.world->abort(own.self, text);
    __builtin_trap();
}

void MPIDI_ZC_end_job_if(int mpi_errno)
{
    if (mpi_errno != MPI_SUCCESS)
        MPID_Abort(NULL, mpi_errno, 1, "an error that ends the job");
}

/* ---- UCX ---- */

const char *ucs_status_string(ucs_status_t status)
{
    return status == UCS_ERR_NO_MEMORY ? "no memory" : "the connection is lost";
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    if (own.world->fails(own.self, "ucp_ep_create"))
        return UCS_ERR_NO_MEMORY;
    return own.world->ep_create(own.self, worker, params, ep);
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return own.world->ep_close(own.self, ep, param);
}

ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    return own.world->ep_flush(own.self, ep, param);
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *data, size_t length, const ucp_request_param_t *param)
{
    return own.world->send(own.self, ep, id, header, header_length, data, length, param);
}

ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param)
{
    (void)param;
    return own.world->worker_flush(own.self, worker);
}

ucs_status_t ucp_request_check_status(void *request)
{
    return own.world->request_status(own.self, request);
}

void ucp_request_free(void *request)
{
    own.world->request_free(own.self, request);
}

/* ---- the rest of the netmod ---- */

ucs_status_t MPIDI_ZC_channel_send_short(ucp_ep_h ep, unsigned id, const void *header,
                                         size_t header_length, const void *data, size_t length)
{
    const ucp_request_param_t param = {.flags = UCP_AM_SEND_FLAG_EAGER};
    if (own.world->fails(own.self, "send"))
        return UCS_ERR_NO_MEMORY;
    ucs_status_ptr_t request = ucp_am_send_nbx(ep, id, header, header_length, data, length, &param);
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
}

void MPIDI_ZC_am_want_bulk(MPIDI_ZC_vci_t *vci, int rank)
{
    (void)vci, (void)rank;
    MPID_Abort(NULL, MPI_ERR_OTHER, 1, "the program announces nothing in a callback");
}

void MPIDI_ZC_channel_must_send(ucs_status_t status)
{
    if (status == UCS_ERR_NO_MEMORY)
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "no memory for a message that has to be sent");
    else if (status != UCS_OK)
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "a message could not be sent");
}

int MPIDI_ZC_foreign_open(struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    return MPI_ERR_OTHER;
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_vcis_peer(struct MPIDI_ZC_foreign *foreign, int vci)
{
    (void)foreign, (void)vci;
    return NULL;
}

/* ---- there is no other world ---- */

int MPIDI_ZC_connecting_ports(void)
{
    return own.ports;
}

bool MPIDI_ZC_connecting(void)
{
    return false;
}

_Noreturn static void no_other_world(void)
{
    MPID_Abort(NULL, MPI_ERR_OTHER, 1, "there is no other world");
}

unsigned MPIDI_ZC_worker_progress(MPIDI_ZC_vci_t *vci)
{
    (void)vci;
    no_other_world();
}

const char *MPIDI_ZC_foreign_path_obstacle(bool *passes)
{
    (void)passes;
    return NULL;
}

void MPIDI_ZC_foreign_path_settle(void) {}

bool MPIDI_ZC_foreign_path_waits(void)
{
    return false;
}

int MPIDI_ZC_foreign_path(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

int MPIDI_ZC_foreign_path_of_sender(uint64_t sender)
{
    (void)sender;
    no_other_world();
}

int MPIDI_ZC_foreign_path_of_self(uint64_t self)
{
    (void)self;
    no_other_world();
}

uint64_t MPIDI_ZC_foreign_path_id(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

uint64_t MPIDI_ZC_foreign_path_self(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

uint64_t MPIDI_ZC_foreign_path_other(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_path_peer(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

bool MPIDI_ZC_foreign_path_is_over(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

bool MPIDI_ZC_foreign_path_first_is_lost(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

bool MPIDI_ZC_foreign_path_is_given_up(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

bool MPIDI_ZC_foreign_path_has_all(const struct MPIDI_ZC_foreign *foreign, uint32_t next)
{
    (void)foreign, (void)next;
    no_other_world();
}

ucp_ep_h MPIDI_ZC_foreign_path_endpoint(const struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

void MPIDI_ZC_foreign_path_forget_endpoint(struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

void MPIDI_ZC_foreign_path_lose(struct MPIDI_ZC_foreign *foreign)
{
    (void)foreign;
    no_other_world();
}

void MPIDI_ZC_liveness_set(uint16_t port, uint64_t token, uint16_t seconds)
{
    (void)port, (void)token, (void)seconds;
    no_other_world();
}

size_t MPIDI_ZC_liveness_offer(const void **offer)
{
    (void)offer;
    no_other_world();
}

MPIDI_ZC_liveness_t *MPIDI_ZC_liveness_watch(const void *offer, size_t length)
{
    (void)offer, (void)length;
    no_other_world();
}

bool MPIDI_ZC_liveness_is_over(MPIDI_ZC_liveness_t *watch)
{
    (void)watch;
    no_other_world();
}

void MPIDI_ZC_liveness_forget(MPIDI_ZC_liveness_t *watch)
{
    if (watch)
        no_other_world();
}

void MPIDI_ZC_foreign_path_refused(struct MPIDI_ZC_foreign *foreign, ucs_status_t status)
{
    (void)foreign, (void)status;
    no_other_world();
}

void MPIDI_ZC_upid_server_stop(void) {}

int MPIDI_ZC_foreign_path_readdress(struct MPIDI_ZC_foreign *foreign, const char *address,
                                    size_t length)
{
    (void)foreign, (void)address, (void)length;
    no_other_world();
}

int MPIDI_ZC_foreign_path_connect(struct MPIDI_ZC_foreign *foreign, ucp_ep_h *ep)
{
    (void)foreign, (void)ep;
    no_other_world();
}

int MPIDI_ZC_context_open(void)
{
    return MPI_SUCCESS;
}

void MPIDI_ZC_context_close(void) {}

static void use_worker(int vci, ucp_worker_h worker)
{
    MPIDI_ZC_VCI(vci).worker = worker;
    MPIDI_ZC_VCI(vci).address = (ucp_address_t *)own.address[vci];
    MPIDI_ZC_VCI(vci).address_length = ZC_TEST_ADDRESS;
}

int MPIDI_ZC_worker_open(MPIDI_ZC_vci_t *vci)
{
    use_worker(vci->number,
               own.world->worker_open(own.self, vci->number, own.address[vci->number]));
    return MPI_SUCCESS;
}

void MPIDI_ZC_worker_close(MPIDI_ZC_vci_t *vci)
{
    own.world->worker_close(own.self, vci->worker);
    vci->worker = NULL;
    vci->address = NULL;
}

int MPIDI_ZC_addresses_renew(void)
{
    size_t length;
    char *list = MPIDI_ZC_address_list_own(&length);
    if (!list)
        return MPI_ERR_OTHER;
    const int mpi_errno = MPIDI_ZC_path_keep_addresses(MPIR_Process.rank, list, length);
    MPL_free(list);
    return mpi_errno;
}

int MPIDI_ZC_landing_thread_go_on(void)
{
    return MPI_SUCCESS;
}

void MPIDI_ZC_landing_thread_suspend(void) {}

/* ---- windows ---- */

struct zc_test_rkey {
    uint32_t key;
};

void MPIDIG_win_failed(MPIR_Win *win, int rank) {}

void MPIDI_ZC_win_register(MPIR_Win *win, void **key, size_t *bytes)
{
    uint32_t *kept = &own.keys[win - own.windows];
    *key = NULL;
    *bytes = 0;
    if (*kept == 0 && own.world->fails(own.self, "ucp_mem_map"))
        return;
    if (*kept == 0)
        *kept = ++own.registered;
    if (own.world->fails(own.self, "ucp_rkey_pack"))
        return;
    *key = own.world->allocate(own.self, sizeof *kept);
    *bytes = sizeof *kept;
    memcpy(*key, kept, sizeof *kept);
}

void MPIDI_ZC_win_unregister(MPIR_Win *win)
{
    own.keys[win - own.windows] = 0;
}

void ucp_rkey_buffer_release(void *packed)
{
    own.world->release(own.self, packed);
}

void ucp_rkey_destroy(ucp_rkey_h key)
{
    own.world->release(own.self, key);
}

/* All windows have all ranks. */
static void make_windows(const uint32_t *incarnations)
{
    static struct {
        int local_size;
    } communicator;
    static const uint32_t first[] = {1, 2};
    communicator.local_size = MPIR_Process.size;
    for (int w = 0; w < ZC_TEST_WINDOWS; w++) {
        MPIR_Win *win = &own.windows[w];
        win->comm_ptr = (void *)&communicator;
        win->win_id = 100 + w;
        win->am_vci = w % MPIDI_global.n_vcis;
        MPIDI_ZC_WIN(win).targets =
            own.world->allocate(own.self, MPIR_Process.size * sizeof(MPIDI_ZC_target_t));
        memset(MPIDI_ZC_WIN(win).targets, 0, MPIR_Process.size * sizeof(MPIDI_ZC_target_t));
        if (!MPIDI_ZC_windows_add(win))
            MPIDI_ZC_end_job_if(MPI_ERR_OTHER);
        own.keys[w] = ++own.registered;
        for (int rank = 0; rank < MPIR_Process.size; rank++) {
            MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];
            target->path = rank;
            if (rank != MPIR_Process.rank) {
                target->packed = (const char *)&first[w];
                MPIDI_ZC_windows_keep(win, rank, target->packed, incarnations[rank]);
            }
        }
    }
}

static void free_windows(void)
{
    for (int w = 0; w < ZC_TEST_WINDOWS; w++) {
        MPIDI_ZC_target_t *targets = MPIDI_ZC_WIN(&own.windows[w]).targets;
        if (!targets)
            continue;
        MPIDI_ZC_windows_remove(&own.windows[w]);
        for (int rank = 0; rank < MPIR_Process.size; rank++) {
            if (targets[rank].rkey)
                ucp_rkey_destroy(targets[rank].rkey);
        }
        own.world->release(own.self, targets);
    }
}

/* ---- the holder ---- */

bool MPIDI_ZC_order_is_for_this(void)
{
    return true;
}

bool MPIDI_ZC_order_open(int fd)
{
    if (fd < 0 && MPIDI_ZC_global.paths && !own.is_over)
        own.world->closed(own.self);
    return true;
}

int MPIDI_ZC_order_descriptor(void)
{
    return 0;
}

bool MPIDI_ZC_order_waits(void)
{
    return true; /* or not: a look may find nothing */
}

MPIDI_ZC_order_t MPIDI_ZC_order_take(bool wait, MPIDI_ZC_given_t *given)
{
    uint32_t number = 0;
    const MPIDI_ZC_order_t order = (MPIDI_ZC_order_t)own.world->order(own.self, wait, &number);
    *given = (MPIDI_ZC_given_t){.number = number};
    return order;
}

int MPIDI_ZC_order_passed(void)
{
    return -1;
}

void MPIDI_ZC_order_answer(const char *answer, const char *more)
{
    own.world->answer(own.self, answer, more);
}

void MPIDI_ZC_order_pass(const char *answer, int fd)
{
    (void)answer, (void)fd;
}

const char *MPIDI_ZC_traffic_open(int fd, int64_t clocks)
{
    (void)fd, (void)clocks;
    return "it is none of these tests";
}

void MPIDI_ZC_traffic_close(void) {}

/* ---- messages of the program ---- */

static MPIDI_ZC_addr_t *peer_of(int rank)
{
    return &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank));
}

static MPIDI_ZC_lane_t *lane_on(int rank, int vci)
{
    return MPIDI_ZC_lane_of(peer_of(rank), vci);
}

static void send_done(void *request, ucs_status_t status, void *user_data)
{
    sent_t *sent = user_data;
    if (status != UCS_OK)
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "a message of the program could not be sent");
    if (sent->message.announced)
        MPIDI_ZC_path_announced(sent->rank, sent->vci);
    own.sends--;
    own.announced_to[sent->rank] -= sent->message.announced;
    own.world->release(own.self, sent);
    if (request)
        ucp_request_free(request);
}

/* As MPIDI_ZC_am_post() of zc_am.h. */
static bool send_to(int rank, int vci, uint32_t value, bool announced)
{
    MPIDI_ZC_addr_t *peer = peer_of(rank);
    MPIDI_ZC_lane_t *lane = lane_on(rank, vci);
    if (MPIDI_ZC_lane_endpoint(peer, lane, vci) != MPI_SUCCESS)
        return false;
    sent_t *sent = own.world->allocate(own.self, sizeof *sent);
    *sent = (sent_t){.rank = rank, .vci = vci};
    sent->message = (zc_test_message_t){.sender = (uint32_t)MPIR_Process.rank,
                                        .receiver = (uint32_t)rank,
                                        .sequence = lane->next_send++,
                                        .value = value,
                                        .announced = announced};
    const ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = announced ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
        .cb.send = send_done,
        .user_data = sent,
    };
    ucp_ep_h ep = lane->ep;
    if (announced) {
        if (ep && !MPIDI_ZC_lane_shares(lane, ANNOUNCED_BYTES))
            ep = MPIDI_ZC_lane_bulk_endpoint(peer, lane, vci);
        sent->message.shares = ep == lane->ep;
        MPIDI_ZC_path_announces(rank, vci);
    }
    own.sends++;
    own.announced_to[rank] += announced;
    ucs_status_ptr_t request = MPIDI_ZC_send_or_park(
        peer, vci, ep, MPIDI_ZC_AM_MESSAGE, &sent->message, sizeof sent->message, NULL, 0, &param);
    if (UCS_PTR_IS_ERR(request) && !ep) { /* it could not be parked */
        if (announced)
            MPIDI_ZC_path_announced(rank, vci);
        lane->next_send--;
        own.sends--;
        own.announced_to[rank] -= announced;
        own.world->release(own.self, sent);
        return false;
    }
    if (!UCS_PTR_IS_PTR(request))
        send_done(NULL, UCS_PTR_STATUS(request), sent);
    return true;
}

/* As send_credit() of zc_flow.c. */
static void credit_to(int rank, int vci)
{
    const MPIDI_ZC_lane_t *lane = lane_on(rank, vci);
    const zc_test_message_t message = {
        .sender = (uint32_t)MPIR_Process.rank, .receiver = (uint32_t)rank, .credit = true};
    const ucp_request_param_t param = {.flags = UCP_AM_SEND_FLAG_EAGER};
    if (!lane->ep)
        return;
    ucs_status_ptr_t request =
        ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_CREDIT, &message, sizeof message, NULL, 0, &param);
    if (!UCS_PTR_IS_ERR(request))
        MPIDI_ZC_path_credit_sent(rank, vci);
}

/* As connect_target() of zc_win.c, and MPIDI_ZC_rma_start(). */
static bool start_put(int rank, MPIR_Win *win)
{
    MPIDI_ZC_lane_t *lane = lane_on(rank, win->am_vci);
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];
    if (target->packed && MPIDI_ZC_windows_connectable(win, rank)) {
        if (MPIDI_ZC_lane_endpoint(peer_of(rank), lane, win->am_vci) != MPI_SUCCESS)
            return false;
        target->rkey = own.world->allocate(own.self, sizeof *target->rkey);
        memcpy(&target->rkey->key, target->packed, sizeof target->rkey->key);
        target->ep = lane->ep;
        target->packed = NULL;
    }
    if (!MPIDI_ZC_win_target_is_open(win, target))
        return false;
    target->started++;
    own.world->put(own.self, target->ep, (int)(win - own.windows), target->rkey->key);
    return true;
}

static bool put_to(int rank, int window)
{
    MPIR_Win *win = &own.windows[window];
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(win->am_vci).lock);
    const bool does = start_put(rank, win);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(win->am_vci).lock);
    return does;
}

static bool is_put(int window, uint32_t key)
{
    return own.keys[window] == key;
}

static bool comes_apart(const zc_test_message_t *message, const void *descriptor)
{
    return descriptor && !message->shares;
}

static bool is_connected(int sender, int vci, bool apart)
{
    const MPIDI_ZC_lane_t *lane = lane_on(sender, vci);
    return (lane->ep || (lane->paused && MPIDI_ZC_path_is_connected(sender, vci))) &&
           !(apart && lane->bulk_apart && lane->bulk == 0);
}

static void dispatch(int vci, const zc_test_message_t *message, void *descriptor)
{
    if (descriptor) {
        arrival_t *a = own.world->allocate(own.self, sizeof *a);
        *a = (arrival_t){.message = *message, .vci = vci, .descriptor = descriptor};
        arrival_t **last = &own.arrivals;
        while (*last)
            last = &(*last)->next;
        *last = a;
    }
    own.world->received(own.self, (int)message->sender, vci, message->value);
}

static void await_connection(int sender, int vci, bool apart)
{
    waiting_t *waiting = &own.waiting[vci][sender];
    waiting->unconnected = true;
    waiting->announced = waiting->announced || apart;
}

/* @waits: false: there is no need to wait for endpoints. */
static void dispatch_early(int sender, int vci, bool waits)
{
    early_t **first = &own.waiting[vci][sender].early;
    MPIDI_ZC_inbound_t *in = &lane_on(sender, vci)->inbound;
    while (*first && (*first)->message.sequence == in->next) {
        early_t *early = *first;
        const bool apart = comes_apart(&early->message, early->descriptor);
        if (waits && !is_connected(sender, vci, apart)) {
            await_connection(sender, vci, apart);
            return;
        }
        *first = early->next;
        in->next++;
        dispatch(vci, &early->message, early->descriptor);
        own.world->release(own.self, early);
    }
}

static void receive(int vci, const zc_test_message_t *message, void *descriptor)
{
    const int sender = (int)message->sender;
    MPIDI_ZC_lane_t *lane = lane_on(sender, vci);
    const bool apart = comes_apart(message, descriptor);
    if (message->credit) {
        MPIDI_ZC_path_credit_received(sender, vci);
        return;
    }
    if (message->sequence == lane->inbound.next && is_connected(sender, vci, apart)) {
        lane->inbound.next++;
        dispatch(vci, message, descriptor);
        dispatch_early(sender, vci, true);
        return;
    }
    early_t *early = own.world->allocate(own.self, sizeof *early);
    early_t **at = &own.waiting[vci][sender].early;
    while (*at && (int32_t)((*at)->message.sequence - message->sequence) < 0)
        at = &(*at)->next;
    *early = (early_t){.next = *at, .message = *message, .descriptor = descriptor};
    *at = early;
    if (message->sequence == lane->inbound.next)
        await_connection(sender, vci, apart);
}

static void deliver(int vci, unsigned id, const void *header, size_t header_length,
                    const void *data, size_t length, void *descriptor)
{
    if (id == MPIDI_ZC_AM_PATH) {
        const ucp_am_recv_param_t param = {0};
        (void)MPIDI_ZC_path_handler(&MPIDI_ZC_VCI(vci), header, header_length, (void *)data, length,
                                    &param);
    } else {
        zc_test_message_t message;
        memcpy(&message, header, sizeof message);
        receive(vci, &message, descriptor);
    }
}

static void fetch(arrival_t *a)
{
    a->is_fetched = true;
    own.world->fetch(own.self, a->descriptor);
}

bool MPIDI_ZC_arrivals_fetch(MPIDI_ZC_vci_t *vci, uint64_t sender, bool *memory)
{
    bool all = true;
    *memory = true;
    for (arrival_t *a = own.arrivals; a; a = a->next) {
        if (a->message.sender != sender || a->vci != vci->number)
            continue;
        if (!a->is_fetched && *memory) {
            if (own.world->fails(own.self, "landing memory"))
                *memory = false;
            else
                fetch(a);
        }
        all = false;
    }
    return *memory && all;
}

/* Returns the first that is not fetched, of @vci or, -1, of any, or NULL. */
static arrival_t *announced_on(int vci)
{
    arrival_t *a = own.arrivals;
    while (a && (a->is_fetched || (vci >= 0 && a->vci != vci)))
        a = a->next;
    return a;
}

static void fetch_any(void)
{
    arrival_t *a = announced_on(-1);
    if (!a)
        return;
    const int vci = a->vci;
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    a = announced_on(vci); /* another thread may have received that one */
    if (a)
        fetch(a);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
}

static void fetched(void *descriptor)
{
    for (arrival_t **a = &own.arrivals; *a; a = &(*a)->next) {
        if ((*a)->descriptor == descriptor) {
            arrival_t *done = *a;
            *a = done->next;
            own.world->release(own.self, done);
            own.world->landed(own.self);
            return;
        }
    }
    MPID_Abort(NULL, MPI_ERR_OTHER, 1, "what was not asked for has been fetched");
}

/* As MPIDI_ZC_connect_back() of zc_am.c. */
static void connect_back(int vci)
{
    for (int sender = 0; sender < MPIR_Process.size; sender++) {
        waiting_t *waiting = &own.waiting[vci][sender];
        if (!waiting->unconnected)
            continue;
        MPIDI_ZC_addr_t *peer = peer_of(sender);
        MPIDI_ZC_lane_t *lane = lane_on(sender, vci);
        const bool connected = MPIDI_ZC_lane_endpoint(peer, lane, vci) == MPI_SUCCESS &&
                               (!lane->paused || MPIDI_ZC_path_connect(sender, vci) == MPI_SUCCESS);
        if (connected && waiting->announced)
            (void)MPIDI_ZC_lane_bulk_endpoint(peer, lane, vci);
        waiting->unconnected = waiting->announced = false;
        dispatch_early(sender, vci, connected);
    }
}

/* ---- the simulation's side ---- */

static void progress_on(int vci)
{
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    if (own.world->progress(own.self, vci)) { /* else no thread looks there just now */
        connect_back(vci);
        if (vci == 0)
            MPIDI_ZC_detach_progress();
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
}

static void step(bool lands)
{
    if (!lands)
        own.world->program(own.self);
    MPIDI_ZC_global.in_landing_thread = lands;
    for (int v = MPIDI_global.n_vcis - 1; v >= 0; v--)
        progress_on(v);
    MPIDI_ZC_global.in_landing_thread = false;
}

void MPIDI_ZC_progress_all(void)
{
    own.world->pause(own.self);
    step(false);
}

static void init(const zc_test_world_t *world, void *self, int rank, int size, int vcis,
                 const char *addresses, const uint32_t *incarnations, const ucp_worker_h *workers,
                 int nodes, zc_test_bulk_t bulk, int seconds)
{
    memset(&own, 0, sizeof own);
    own.world = world;
    own.self = self;
    memset(&MPIDI_ZC_global, 0, sizeof MPIDI_ZC_global);
    memset(zc_test_av, 0, sizeof zc_test_av);
    MPIR_Process.rank = rank;
    MPIR_Process.size = size;
    for (int i = 0; i < size; i++) {
        const char *its = addresses + (size_t)(i * vcis) * ZC_TEST_ADDRESS;
        MPIR_Process.node_map[i] = i % nodes;
        memcpy(own.upids[i] + sizeof(MPIDI_ZC_upid_t), its, ZC_TEST_ADDRESS);
        memcpy(own.lane_addresses + (size_t)(i * (vcis - 1)) * ZC_TEST_ADDRESS,
               its + ZC_TEST_ADDRESS, (size_t)(vcis - 1) * ZC_TEST_ADDRESS);
        peer_of(i)->self = (uint64_t)rank;
    }
    MPIDI_global.n_vcis = vcis;
    MPIDI_global.is_initialized = true;
    MPIR_CVAR_CH4_ZC_DETACH_SECONDS = seconds;
    MPIDI_ZC_global.params.detach = true;
    MPIDI_ZC_global.params.bulk_apart = bulk != ZC_TEST_BULK_WITH_ALL;
    MPIDI_ZC_global.params.bulk_shares = bulk == ZC_TEST_BULK_SHARES_FIRST;
    MPIDI_ZC_global.world = (const MPIDI_ZC_upid_t *)own.upids;
    MPIDI_ZC_global.world_stride = sizeof own.upids[0];
    MPIDI_ZC_global.lane_addresses = own.lane_addresses;
    MPIDI_ZC_global.lane_stride = ZC_TEST_ADDRESS;
    memcpy(own.address, addresses + (size_t)(rank * vcis) * ZC_TEST_ADDRESS,
           (size_t)vcis * ZC_TEST_ADDRESS);
    for (int v = 0; v < vcis; v++) {
        MPIDI_ZC_VCI(v).number = v;
        MPIDI_ZC_VCI(v).lanes = v > 0 ? own.lanes[v] : NULL;
        use_worker(v, workers[v]);
    }
    MPIDI_ZC_end_job_if(MPIDI_ZC_detach_init());
    MPIDI_ZC_path_set_own_incarnation(incarnations[rank]);
    make_windows(incarnations);
}

static void end(void)
{
    own.is_over = true;
    free_windows();
    MPIDI_ZC_detach_free();
    for (int v = 0; v < MPIDI_global.n_vcis; v++)
        zc_test_free(MPIDI_ZC_VCI(v).bulk.eps);
}

static void hinder(bool hinders)
{
    own.ports = hinders;
}

static int outstanding(int rank)
{
    int nr = own.announced_to[rank];
    for (const arrival_t *a = own.arrivals; a; a = a->next)
        nr += a->message.sender == (uint32_t)rank;
    return nr;
}

static int awaited(void)
{
    return own.sends;
}

static int state(int rank)
{
    return MPIDI_ZC_global.paths[rank]->state;
}

static uint32_t incarnation(int rank)
{
    return MPIDI_ZC_global.paths[rank]->incarnation;
}

static void describe(int rank, char *text, size_t room)
{
    static const char *const states[] = {"OPEN",   "PAUSING", "HAS_FETCHED",
                                         "PAUSED", "BINDING", "STALE"};
    const MPIDI_ZC_path_t *path = MPIDI_ZC_global.paths[rank];
    int length = snprintf(
        text, room, "%s%s%s%s%s%s%s%s%s%s round %u own %u other %u inc %u untold %x refusal %d",
        states[path->state], path->leads ? " leads" : "", path->numbered ? " numbered" : "",
        path->fetched ? " fetched" : "", path->heard ? " heard" : "", path->quiet ? " quiet" : "",
        path->lost ? " lost" : "", path->anchored ? " anchored" : "",
        path->returned ? " returned" : "", path->awaits_anchor ? " awaits anchor" : "", path->round,
        path->own_round, path->other_round, path->incarnation, path->untold, (int)path->refusal);
    for (int v = 0; v < MPIDI_global.n_vcis && length < (int)room; v++) {
        const MPIDI_ZC_path_lane_t *kept = &path->lanes[v];
        const MPIDI_ZC_lane_t *lane = lane_on(rank, v);
        length += snprintf(
            text + length, room - (size_t)length,
            "; VCI %d%s next %u (here %u, sent %u) credits %u (here %u) announced %u flushing %u",
            v, kept->ep ? " connected" : "", kept->next, lane->inbound.next, lane->next_send,
            kept->credits_next, kept->credits_received, kept->announced, kept->flushing);
    }
}

const zc_test_rank_t *zc_test_rank(void)
{
    static const zc_test_rank_t rank = {
        .init = init,
        .step = step,
        .finalize = MPIDI_ZC_detach_finalize,
        .end = end,
        .send = send_to,
        .credit = credit_to,
        .put = put_to,
        .is_put = is_put,
        .fetch_any = fetch_any,
        .deliver = deliver,
        .fetched = fetched,
        .hinder = hinder,
        .outstanding = outstanding,
        .awaited = awaited,
        .state = state,
        .all_open = MPIDI_ZC_paths_open,
        .incarnation = incarnation,
        .describe = describe,
    };
    return &rank;
}

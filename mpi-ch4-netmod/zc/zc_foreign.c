/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <fcntl.h>
#include "mpidig_rma_callbacks.h"
#include "zc_addresses.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_connection.h"
#include "zc_detach.h"
#include "zc_foreign.h"
#include "zc_foreign_vcis.h"
#include "zc_handshake.h"
#include "zc_match.h"
#include "zc_members.h"
#include "zc_node.h"
#include "zc_outstanding.h"
#include "zc_part.h"
#include "zc_path.h"

/* A connection waits so long for the end of an earlier one to the same process, which CH4 may still
 * use on the other side. */
#define LINGER_SECONDS 1

MPIDI_ZC_foreign_t *MPIDI_ZC_connections[MPIDI_CH4_MAX_VCIS];
static int nr_known;            /* atomic: processes that CH4 knows */
static int nr_open;             /* atomic */

/* Connections, by VCI and the number that this process sends as. */
static MPIDI_ZC_table_t selves[MPIDI_CH4_MAX_VCIS];

static MPIDI_ZC_foreign_t *find(uint64_t self)
{
    const MPIDI_ZC_table_t *table = &selves[MPIDI_ZC_foreign_number_vci(self)];
    return MPIDI_ZC_TABLE_ENTRY(MPIDI_ZC_table_find(table, self), MPIDI_ZC_foreign_t, link);
}

int MPIDI_ZC_foreign_node(int avtid, int lpid)
{
    const MPIDI_ZC_foreign_t *f = MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid)).foreign;
    return f ? f->node : -1;
}

int MPIDI_ZC_foreign_known(void)
{
    return __atomic_load_n(&nr_known, __ATOMIC_RELAXED);
}

/* ---- the process that sends ---- */

/* Returns the address by which something can be sent to @process, or NULL. */
static MPIDI_ZC_addr_t *open_address(const MPIDI_ZC_process_t * process)
{
    const MPIDI_ZC_foreign_t *f = process ? process->attached : NULL;
    return f && f->net_ep && MPIDI_ZC_disconnect_may_send(f) ? MPIDI_ZC_foreign_address(f) : NULL;
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_sender(uint64_t number)
{
    return open_address(MPIDI_ZC_sender_process(number));
}

/* What is under way is under way on the connection that CH4 has. One that CH4 does not know yet may
 * bring messages; one that it has given up has nothing under way, except in MPI_Finalize, where all
 * are given up. */
bool MPIDI_ZC_foreign_process_is_lost(const MPIDI_ZC_process_t * process)
{
    if (process->attached) {
        return process->attached->failed;
    }
    for (const MPIDI_ZC_foreign_t * f = process->connections; f; f = f->next_of_process) {
        if (!f->failed &&
            (f->disconnect.fin == MPIDI_ZC_FIN_NONE || MPIDI_ZC_global.closing)) {
            return false;
        }
    }
    return true;
}

bool MPIDI_ZC_foreign_is_lost(uint64_t number)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_sender_process(number);
    return process ? MPIDI_ZC_foreign_process_is_lost(process) : !MPIDI_ZC_sender_exists(number);
}

bool MPIDI_ZC_foreign_sender_is_dead(uint64_t number)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_sender_process(number);
    return process && MPIDI_ZC_foreign_is_dead(process->attached);
}

/* Has the process no memory any more? It may be ending, or its parent may not have waited for it. */
static bool has_no_memory(int pid)
{
    char name[32], pages = '0';

    snprintf(name, sizeof(name), "/proc/%d/statm", pid);
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT;
    }
    const bool is_read = read(file, &pages, 1) >= 0;
    close(file);
    return !is_read || pages == '0';
}

bool MPIDI_ZC_foreign_has_ended(uint64_t number)
{
    const MPIDI_ZC_foreign_t *f = MPIDI_ZC_sender_connection(number);

    return MPIDI_ZC_foreign_is_lost(number) || (f && f->shm_ep && f->pid && has_no_memory(f->pid));
}

bool MPIDI_ZC_foreign_is_near(uint64_t number)
{
    const MPIDI_ZC_foreign_t *f = MPIDI_ZC_sender_connection(number);
    return f && f->shm_ep;
}

/* ---- channels ---- */

MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_of_sender(uint64_t number)
{
    MPIDI_ZC_foreign_t *f = MPIDI_ZC_sender_connection(number);
    return f && f->avtid >= 0 && f->net_ep ? f : NULL;
}

bool MPIDI_ZC_foreign_is_to_sender(const MPIDI_ZC_foreign_t * f, uint64_t number)
{
    return f->process && f->process == MPIDI_ZC_sender_process(number);
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_peer(const MPIDI_ZC_foreign_t * f)
{
    return open_address(f->process);
}

struct MPIDI_ZC_channel **MPIDI_ZC_foreign_channel(MPIDI_ZC_foreign_t * f)
{
    return &f->channel;
}

/* ---- what waits for an answer ---- */

typedef MPIDI_ZC_waiting_t *(*waiting_of_t) (MPIR_Request *);

static MPIDI_ZC_waiting_t *answer_of(MPIR_Request * req)
{
    return &MPIDI_ZC_AM_REQUEST(req).answer;
}

static MPIDI_ZC_waiting_t *ack_of(MPIR_Request * req)
{
    return &MPIDI_ZC_AM_REQUEST(req).ack;
}

static MPIDI_ZC_waiting_t *part_of(MPIR_Request * req)
{
    return &MPIDI_ZC_PART_REQUEST(req).waiting;
}

static void add(MPIR_Request ** list, MPIR_Request * req, waiting_of_t of)
{
    MPIDI_ZC_waiting_t *waiting = of(req);

    waiting->next = *list;
    waiting->at = list;
    if (*list) {
        of(*list)->at = &waiting->next;
    }
    *list = req;
}

static void take_out(MPIR_Request * req, waiting_of_t of)
{
    MPIDI_ZC_waiting_t *waiting = of(req);

    if (waiting->at) {
        *waiting->at = waiting->next;
        if (waiting->next) {
            of(waiting->next)->at = waiting->at;
        }
        waiting->at = NULL;
    }
}

/* The requests of @list do not end any more when the connection fails. */
static void forget(MPIR_Request ** list, waiting_of_t of)
{
    while (*list) {
        take_out(*list, of);
    }
}

/* @list: NULL if there is no connection to fail. */
static void await(MPIR_Request ** list, MPIR_Request * req, waiting_of_t of)
{
    if (list) {
        add(list, req, of);
    } else {
        of(req)->at = NULL;
    }
}

void MPIDI_ZC_foreign_await_answer(MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    await(f ? &f->await_answer : NULL, req, answer_of);
}

void MPIDI_ZC_foreign_answered(MPIR_Request * req)
{
    take_out(req, answer_of);
}

void MPIDI_ZC_foreign_await_ack(MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    await(f ? &f->await_ack : NULL, req, ack_of);
}

void MPIDI_ZC_foreign_acked(MPIR_Request * req)
{
    take_out(req, ack_of);
}

void MPIDI_ZC_foreign_await_data(MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    await(f ? &f->await_data : NULL, req, ack_of);
}

void MPIDI_ZC_foreign_await_part(MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    await(f ? &f->await_part : NULL, req, part_of);
}

void MPIDI_ZC_foreign_part_answered(MPIR_Request * req)
{
    take_out(req, part_of);
}

bool MPIDI_ZC_foreign_awaits_part(uint64_t number, const MPIR_Request * req)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_sender_process(number);
    const MPIDI_ZC_foreign_t *f = process ? process->attached : NULL;

    if (f && likely(!f->failed)) {
        return true;
    }
    for (MPIR_Request * each = f ? f->await_part : NULL; each; each = part_of(each)->next) {
        if (each == req) {
            return true;
        }
    }
    return false;
}

static void end_unanswered(MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    const bool is_send = req->kind == MPIR_REQUEST_KIND__SEND;

    req->status.MPI_ERROR = MPIDI_ZC_LOST;
    if (is_send) {
        MPIDI_ZC_VCI(f->vci).nr_held--;
        /* of a synchronous send, whose acknowledgement does not come either */
        for (int more = MPIR_cc_get(*req->cc_ptr); more > 1; more--) {
            MPID_Request_complete(req);
        }
        MPIDIG_global.origin_cbs[MPIDIG_SEND_DATA] (req);
    } else {
        MPIR_STATUS_SET_COUNT(req->status, 0);
        /* No acknowledgement is sent. */
        MPIDIG_REQUEST(req, req->status) &= ~MPIDIG_REQ_PEER_SSEND;
        MPIDIG_REQUEST(req, req->target_cmpl_cb) (req);
    }
}

/* UCX ends what it has not sent yet. */
static void end_unacked(const MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    if (req->kind == MPIR_REQUEST_KIND__RMA) {
        MPIDI_ZC_outstanding_lost(req, !f->shm_ep);
        return;
    }
    req->status.MPI_ERROR = MPIDI_ZC_LOST;
    MPID_Request_complete(req);
}

/* Has the process of @f given up all its connections, or finalized? That it is gone then is no death.
 * It may have parted and come back, which makes a second connection. */
static bool has_parted(const MPIDI_ZC_foreign_t * f)
{
    if (f->disconnect.peer == MPIDI_ZC_PEER_OPEN) {
        return false;
    }
    for (const MPIDI_ZC_foreign_t * g = f->process->connections; g; g = g->next_of_process) {
        if (g->other != 0 && g->disconnect.peer == MPIDI_ZC_PEER_OPEN) {
            return false;
        }
    }
    return true;
}

/* The data of a receive may still be read when the process is lost, but not when it is dead, and none
 * comes if it could not be asked for it. */
static void end_parts(MPIDI_ZC_foreign_t * f)
{
    if (f->vci != 0 || f->avtid < 0) {
        return;
    }
    const bool nothing_comes = f->dead || (!f->lost && !has_parted(f));

    for (MPIR_Request * req = f->await_part, *next; req; req = next) {
        next = part_of(req)->next;
        if (nothing_comes || req->kind == MPIR_REQUEST_KIND__PART_SEND) {
            take_out(req, part_of);
            MPIDI_ZC_part_end(req);
        }
    }
    if (nothing_comes) {
        MPIDI_ZC_part_withdraw(f);
    }
}

void MPIDI_ZC_foreign_settle(MPIDI_ZC_foreign_t * f)
{
    if (!f || likely(!f->failed) || MPIDI_ZC_global.over) {
        return;
    }
    while (f->await_answer) {
        MPIR_Request *req = f->await_answer;
        take_out(req, answer_of);
        end_unanswered(f, req);
    }
    while (f->await_ack) {
        MPIR_Request *req = f->await_ack;
        take_out(req, ack_of);
        end_unacked(f, req);
    }
    while (f->dead && f->await_data) {
        MPIR_Request *req = f->await_data;
        take_out(req, ack_of);
        MPIDIG_rma_data_lost(req, false);
    }
    if (f->dead && f->shm_ep) {
        MPIDI_ZC_arrivals_abandon(&MPIDI_ZC_VCI(f->vci), f);
    }
    end_parts(f);
    MPIDI_ZC_channel_end(f->channel);
    MPIDI_ZC_match_lost(&MPIDI_ZC_VCI(f->vci));
}

void MPIDI_ZC_foreign_settle_sender(uint64_t number)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_sender_process(number);

    MPIDI_ZC_foreign_settle(process ? process->attached : NULL);
}

/* Returns a connection of @vci that has been lost and is not dead yet, or NULL. */
static MPIDI_ZC_foreign_t *find_lost(const MPIDI_ZC_vci_t * vci)
{
    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections[vci->number]; f; f = f->next) {
        if (f->lost && !f->dead) {
            return f;
        }
    }
    return NULL;
}

void MPIDI_ZC_foreign_end_losses(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_foreign_t *f;

    vci->has_losses = false;
    while ((f = find_lost(vci))) {
        f->lost = !has_parted(f);
        if (!f->lost) {
            continue;
        }
        f->dead = vci->has_dead = true;
        if (f->vci == 0) {
            MPIDI_ZC_foreign_vcis_tell_lost(f);
        }
        /* One that could not be opened has not been. This may end other connections. */
        MPIDI_ZC_foreign_settle(f);
        if (!MPIDI_ZC_global.over) {
            MPIDI_ZC_members_lost(f);
        }
    }
    if (vci->has_dead && !MPIDI_ZC_global.over) {
        MPIDI_ZC_match_end_receives(vci);
    }
}

void MPIDI_ZC_foreign_refused(MPIDI_ZC_foreign_t * f, ucs_status_t status)
{
    if (MPIDI_ZC_is_loss(status)) {
        MPIDI_ZC_foreign_set_failed(f, status);
    }
}

/* ---- opening ---- */

void MPIDI_ZC_foreign_lost(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_foreign_set_failed(f, UCS_ERR_CONNECTION_RESET);
    MPIDI_ZC_foreign_settle(f);
    MPIDI_ZC_disconnect_close_if_over(f);
}

static void peer_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    const MPIDI_ZC_foreign_t *f = arg;

    if (f->path < 0 || !MPIDI_ZC_path_expects_loss(f->path, f->vci, ep)) {
        MPIDI_ZC_foreign_lost(arg);
    }
}

/* Endpoints to other worlds have error handling, since the process may end before this one without
 * an error of the job, and since UCX keeps the others until the worker is destroyed. (Over shared
 * memory it takes settings of UCX's: zc_init.c.) Both sides of a connection must do the same. */
int MPIDI_ZC_foreign_endpoint(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_upid_t * upid, ucp_ep_h * ep)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
            UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *) upid->address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = peer_failed,.arg = f},
    };
    ucs_status_t status = ucp_ep_create(MPIDI_ZC_VCI(f->vci).worker, &params, ep);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_create");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void hello_sent(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
}

static int send_hello(MPIDI_ZC_foreign_t * f)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(f->vci);
    const size_t upid_length = vci->net_length;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = hello_sent,
    };

    f->hello = MPL_malloc(sizeof(*f->hello) + upid_length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f->hello, mpi_errno, MPI_ERR_OTHER, "**nomem");
    *f->hello = (MPIDI_ZC_hello_t) {
        .number = f->link.number,
        .version = MPIDI_ZC_WIRE_VERSION,
        .detaches = MPIDI_ZC_global.paths != NULL,
    };
    memcpy(f->hello + 1, vci->net, upid_length);
    ucs_status_ptr_t request = ucp_am_send_nbx(f->net_ep, MPIDI_ZC_AM_HELLO, NULL, 0, f->hello,
                                               sizeof(*f->hello) + upid_length, &param);
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void set_lane(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_lane_t *lane = &MPIDI_ZC_foreign_address(f)->lane;

    lane->ep = f->net_ep;
    lane->short_max = MPIDI_ZC_SHORT_MAX;
    lane->bundles = MPIDI_ZC_global.params.bundle;
    /* On one host it goes on over shared memory. */
    lane->channels = MPIDI_ZC_global.params.channels &&
        !(f->upid->host == MPIDI_ZC_upid_self()->host && MPIDI_ZC_global.transport.shared_memory);
    if (lane->channels &&
        !MPIDI_ZC_params_descriptors_suffice(__atomic_load_n(&nr_open, __ATOMIC_RELAXED))) {
        lane->channels = false;
        MPIDI_ZC_handshake_note_refusal(&MPIDI_ZC_VCI(f->vci), "too few descriptors (ulimit -n)");
    }
}

void MPIDI_ZC_foreign_opened(MPIDI_ZC_foreign_t * f, ucp_ep_h net_ep)
{
    __atomic_fetch_add(&nr_open, (net_ep != NULL) - (f->net_ep != NULL), __ATOMIC_RELAXED);
    MPIDI_ZC_VCI(f->vci).stats.foreign_endpoints += net_ep != NULL;
    f->net_ep = net_ep;
}

int MPIDI_ZC_foreign_open(MPIDI_ZC_foreign_t * f)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_ep_h net_ep = NULL;

    MPIR_ERR_CHKANDSTMT(f->net_ep || f->failed, mpi_errno, MPIDI_ZC_LOST, goto fn_fail,
                        "**zc_gone");
    mpi_errno = MPIDI_ZC_addresses_own_net(&MPIDI_ZC_VCI(f->vci));
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_foreign_endpoint(f, f->upid, &net_ep);
    if (mpi_errno && MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED) {
        MPIDI_ZC_foreign_set_failed(f, UCS_ERR_UNREACHABLE);
    }
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_foreign_opened(f, net_ep);
    mpi_errno = send_hello(f);
    if (mpi_errno) {
        /* What the peer does not know of cannot be used, which is no death. */
        MPIDI_ZC_foreign_set_failed(f, UCS_ERR_NO_MEMORY);
    }
    MPIR_ERR_CHECK(mpi_errno);
    if (f->avtid >= 0) {
        set_lane(f);
        MPIDI_ZC_shm_upgrade_begin(f);
        MPIDI_ZC_sender_opened(f->process);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_connect_back(uint64_t number)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_sender_process(number);
    MPIDI_ZC_foreign_t *attached = process ? process->attached : NULL;

    /* If there is no memory for it, the next send reports that. */
    if (attached && !attached->net_ep) {
        (void) MPIDI_ZC_foreign_open(attached);
    }
    return MPIDI_ZC_sender_ready(number);
}

void MPIDI_ZC_foreign_pulled(MPIDI_ZC_foreign_t * f)
{
    if (f->disconnect.unanswered) {
        MPIDI_ZC_am_await(&MPIDI_ZC_VCI(f->vci), f->other);
    }
}

void MPIDI_ZC_foreign_answer(uint64_t number)
{
    MPIDI_ZC_foreign_t *f = MPIDI_ZC_sender_connection(number);

    if (f) {
        MPIDI_ZC_disconnect_answer(f);
    }
}

/* ---- connecting ---- */

MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_new(int vci, const MPIDI_ZC_upid_t * upid, size_t length)
{
    MPIDI_ZC_foreign_t *f = MPL_calloc(1, sizeof(*f), MPL_MEM_ADDRESS);

    if (!f) {
        return NULL;
    }
    f->upid = MPL_malloc(length, MPL_MEM_ADDRESS);
    /* The process comes last: the caller may have just made it, and tidies up itself. */
    if (f->upid && MPIDI_ZC_upid_draw(&f->link.number) == MPI_SUCCESS) {
        f->process = MPIDI_ZC_process_make(vci, upid->id);
    }
    if (!f->process) {
        MPL_free(f->upid);
        MPL_free(f);
        return NULL;
    }
    memcpy(f->upid, upid, length);
    f->upid_length = length;
    f->vci = vci;
    f->node = -1;
    f->avtid = f->lpid = -1;
    f->path = MPIDI_ZC_path_add(f, vci);
    f->link.number &= ~MPIDI_ZC_FOREIGN_VCI_MASK;
    f->link.number |= MPIDI_ZC_FOREIGN | (uint64_t) vci << MPIDI_ZC_FOREIGN_VCI_SHIFT;
    MPIDI_ZC_table_add(&selves[vci], &f->link);
    f->next_of_process = f->process->connections;
    f->process->connections = f;
    f->next = MPIDI_ZC_connections[vci];
    if (f->next) {
        f->next->previous = f;
    }
    MPIDI_ZC_connections[vci] = f;
    return f;
}

void MPIDI_ZC_foreign_remove(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_process_t *process = f->process;
    MPIDI_ZC_foreign_t **at = &process->connections;

    __atomic_fetch_sub(&nr_open, f->net_ep != NULL, __ATOMIC_RELAXED);
    MPIDI_ZC_sender_unbind(f->other);
    MPIDI_ZC_table_remove(&selves[f->vci], &f->link);
    while (*at != f) {
        at = &(*at)->next_of_process;
    }
    *at = f->next_of_process;
    if (f->previous) {
        f->previous->next = f->next;
    } else {
        MPIDI_ZC_connections[f->vci] = f->next;
    }
    if (f->next) {
        f->next->previous = f->previous;
    }
    f->next = f->previous = NULL;
    f->process = NULL;
    MPIDI_ZC_process_tidy(process);
}

MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_greeted(const MPIDI_ZC_upid_t * upid, size_t length,
                                             const MPIDI_ZC_hello_t * hello)
{
    const int vci = MPIDI_ZC_foreign_number_vci(hello->number);
    const MPIDI_ZC_process_t *process = MPIDI_ZC_process_find(vci, upid->id);
    MPIDI_ZC_foreign_t *found = NULL;

    /* The oldest: the newest is first. */
    for (MPIDI_ZC_foreign_t * f = process ? process->connections : NULL; f;
         f = f->next_of_process) {
        if (f->other == 0 && !f->failed) {
            found = f;
        }
    }
    if (!found) {
        found = MPIDI_ZC_foreign_new(vci, upid, length);
    }
    if (found) {
        found->other = hello->number;
        found->knows_not = !hello->detaches;
    }
    return found;
}

/* Returns the connection that the process has opened before CH4 knew it here, or NULL. */
static MPIDI_ZC_foreign_t *opened_by(const MPIDI_ZC_process_t * process)
{
    MPIDI_ZC_foreign_t *found = NULL;

    for (MPIDI_ZC_foreign_t * f = process ? process->connections : NULL; f;
         f = f->next_of_process) {
        if (f->avtid < 0 && !f->net_ep && !MPIDI_ZC_disconnect_peer_has_finished(f)) {
            found = f;
        }
    }
    return found;
}

bool MPIDI_ZC_foreign_lingers(int vci, uint64_t id, const MPL_time_t * since)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_process_find(vci, id);
    MPL_time_t begun = *since, now;
    double waited = 0;

    for (const MPIDI_ZC_foreign_t * f = process ? process->connections : NULL; f;
         f = f->next_of_process) {
        if (f->avtid < 0 && f->net_ep && !f->failed) {
            MPL_wtime(&now);
            MPL_wtime_diff(&begun, &now, &waited);
            return waited < LINGER_SECONDS;
        }
    }
    return false;
}

void MPIDI_ZC_foreign_await_end_of_earlier(uint64_t id, const MPL_time_t * since)
{
    MPIDI_ZC_detach_put_off(true);      /* CH4 has the lock of its tables of addresses, too */
    /* (The end of one whose process is away waits for that.) */
    while (MPIDI_ZC_foreign_lingers(0, id, since)) {
        MPIDI_ZC_progress_vci(&MPIDI_ZC_VCI(0));
    }
    MPIDI_ZC_detach_put_off(false);
}

/* CH4 does not know @f any more. */
static void detach(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_foreign_address(f)->foreign = NULL;
    f->avtid = f->lpid = -1;
    f->process->attached = NULL;
    if (f->vci == 0) {
        MPIDI_ZC_foreign_vcis_give_up(f);
        __atomic_fetch_sub(&nr_known, 1, __ATOMIC_RELAXED);
        MPIDI_ZC_node_release(f->node);
        f->node = -1;
    }
}

void MPIDI_ZC_foreign_end(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(f->vci));
    detach(f);
    MPIDI_ZC_disconnect(f);
}

MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_for_ch4(int vci, const MPIDI_ZC_upid_t * upid, size_t length)
{
    MPIDI_ZC_disconnect_progress(vci);
    MPIDI_ZC_foreign_t *f = opened_by(MPIDI_ZC_process_find(vci, upid->id));
    return f ? f : MPIDI_ZC_foreign_new(vci, upid, length);
}

int MPIDI_ZC_foreign_attach(MPIDI_ZC_foreign_t * f, MPIDI_ZC_addr_t * peer)
{
    f->process->attached = f;
    memset(peer, 0, sizeof(*peer));
    peer->self = f->link.number;
    peer->foreign = f;
    if (f->vci == 0) {
        MPIDI_ZC_shm_upgrade_attach(f);
    }
    return f->process->senders ? MPIDI_ZC_foreign_open(f) : MPI_SUCCESS;
}

/* Most processes of a large job never communicate with most others, so the connection is opened by
 * the first message of either side. */
int MPIDI_ZC_foreign_connect(const MPIDI_ZC_upid_t * upid, size_t length, int avtid, int lpid)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_ZC_foreign_t *f = MPIDI_ZC_foreign_for_ch4(0, upid, length);
    MPIR_ERR_CHKANDJUMP(!f, mpi_errno, MPI_ERR_OTHER, "**nomem");
    f->avtid = avtid;
    f->lpid = lpid;
    f->node = MPIDI_ZC_node_take(upid->host);
    __atomic_fetch_add(&nr_known, 1, __ATOMIC_RELAXED);
    mpi_errno = MPIDI_ZC_foreign_attach(f, MPIDI_ZC_foreign_address(f));
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (f) {
        MPIDI_ZC_foreign_end(f);
    }
    goto fn_exit;
}

bool MPIDI_ZC_foreign_find(uint64_t id, int *avtid, int *lpid)
{
    const MPIDI_ZC_process_t *process = MPIDI_ZC_process_find(0, id);

    if (!process || !process->attached) {
        return false;
    }
    *avtid = process->attached->avtid;
    *lpid = process->attached->lpid;
    return true;
}

MPIDI_ZC_lane_t *MPIDI_ZC_foreign_lane(uint64_t self)
{
    const MPIDI_ZC_foreign_t *f = find(self);
    return f && f->avtid >= 0 ? &MPIDI_ZC_foreign_address(f)->lane : NULL;
}

MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_of_self(uint64_t self)
{
    return find(self);
}

const MPIDI_ZC_upid_t *MPIDI_ZC_foreign_upid(const MPIDI_ZC_foreign_t * f, size_t * length)
{
    *length = f->upid_length;
    return f->upid;
}

bool MPIDI_ZC_foreign_has_failed(const MPIDI_ZC_foreign_t * f)
{
    return f && f->failed;
}

bool MPIDI_ZC_foreign_is_dead(const MPIDI_ZC_foreign_t * f)
{
    return f && f->dead;
}

/* ---- the end ---- */

void MPIDI_ZC_foreign_detach(int avtid)
{
    for (int lpid = 0; lpid < MPIDIU_get_avt_size(avtid); lpid++) {
        MPIDI_ZC_foreign_t *f = MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid)).foreign;
        if (f) {
            MPIDI_ZC_foreign_end(f);
        }
    }
}

void MPIDI_ZC_foreign_finalize(void)
{
    /* VCI 0 gives those of the others up. */
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(v));
        for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections[v]; f; f = f->next) {
            if (f->avtid >= 0) {
                forget(&f->await_answer, answer_of);
                forget(&f->await_ack, ack_of);
                forget(&f->await_data, ack_of);
                forget(&f->await_part, part_of);
            }
            if (f->avtid >= 0 && v == 0) {
                detach(f);
            }
        }
        MPIDI_ZC_foreign_vcis_end(&MPIDI_ZC_VCI(v));
    }
    MPIDI_ZC_disconnect_all();
}

/* A later session begins with nothing. */
void MPIDI_ZC_foreign_free(void)
{
    MPIDI_ZC_disconnect_free();
    MPIDI_ZC_sender_free_all();
    MPIDI_ZC_port_messages_free();
    for (int v = 0; v < MPIDI_CH4_MAX_VCIS; v++) {
        MPIDI_ZC_table_free(&selves[v]);
    }
    MPIDI_ZC_process_free();
    MPIDI_ZC_node_free();
}

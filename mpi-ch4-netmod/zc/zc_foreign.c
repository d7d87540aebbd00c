/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connection.h"
#include "zc_foreign.h"
#include "zc_match.h"

/* A connection waits so long for the end of an earlier one to the same process, which CH4 may still
 * use on the other side. */
#define LINGER_SECONDS 1

/* There are a few hundred at most, so this is a list. */
MPIDI_ZC_foreign_t *MPIDI_ZC_connections;

/* ---- nodes ---- */

static int node_of(uint64_t host)
{
    int free = MPIR_Process.num_nodes;

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (MPIDI_ZC_upid_of(rank)->host == host) {
            return MPIR_Process.node_map[rank];
        }
    }
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->upid->host == host) {
            return f->node;
        }
        free = MPL_MAX(free, f->node + 1);
    }
    return free;
}

int MPIDI_ZC_foreign_node(int avtid, int lpid)
{
    const MPIDI_ZC_foreign_t *f = MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid)).foreign;
    return f ? f->node : -1;
}

/* ---- the process that sends ---- */

/* Returns any connection over which something can be sent to process @id. */
static const MPIDI_ZC_foreign_t *way_to(uint64_t id)
{
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->id == id && f->avtid >= 0 && MPIDI_ZC_disconnect_may_send(f)) {
            return f;
        }
    }
    return NULL;
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_sender(uint64_t number)
{
    const uint64_t id = MPIDI_ZC_sender_process(number);
    const MPIDI_ZC_foreign_t *f = id ? way_to(id) : NULL;
    return f ? MPIDI_ZC_foreign_address(f) : NULL;
}

/* A connection that CH4 has given up has nothing under way, except in MPI_Finalize, where all are
 * given up. */
bool MPIDI_ZC_foreign_process_is_lost(uint64_t id)
{
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->id == id && !f->failed && (f->avtid >= 0 || MPIDI_ZC_global.closing)) {
            return false;
        }
    }
    return true;
}

bool MPIDI_ZC_foreign_is_lost(uint64_t number)
{
    const uint64_t id = MPIDI_ZC_sender_process(number);
    return !MPIDI_ZC_sender_exists(number) || (id && MPIDI_ZC_foreign_process_is_lost(id));
}

/* ---- what waits for an answer ---- */

void MPIDI_ZC_foreign_await(MPIDI_ZC_foreign_t * f, MPIR_Request * req)
{
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    if (!f) {
        am->awaiting.at = NULL;
        return;
    }
    am->awaiting.next = f->awaiting;
    am->awaiting.at = &f->awaiting;
    if (f->awaiting) {
        MPIDI_ZC_AM_REQUEST(f->awaiting).awaiting.at = &am->awaiting.next;
    }
    f->awaiting = req;
}

void MPIDI_ZC_foreign_awaited(MPIR_Request * req)
{
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    if (!am->awaiting.at) {
        return;
    }
    *am->awaiting.at = am->awaiting.next;
    if (am->awaiting.next) {
        MPIDI_ZC_AM_REQUEST(am->awaiting.next).awaiting.at = am->awaiting.at;
    }
}

static void end_with_error(MPIR_Request * req)
{
    const bool is_send = req->kind == MPIR_REQUEST_KIND__SEND;

    req->status.MPI_ERROR = MPIDI_ZC_LOST;
    if (is_send) {
        MPIDI_ZC_VCI(0).nr_held--;
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

/* The requests may still be answered, but do not end when @f fails. */
static void await_no_more(MPIDI_ZC_foreign_t * f)
{
    while (f->awaiting) {
        MPIR_Request *req = f->awaiting;
        MPIDI_ZC_foreign_awaited(req);
        MPIDI_ZC_AM_REQUEST(req).awaiting.at = NULL;
    }
}

void MPIDI_ZC_foreign_settle(MPIDI_ZC_foreign_t * f)
{
    if (!f || likely(!f->failed) || MPIDI_ZC_global.over) {
        return;
    }
    while (f->awaiting) {
        MPIR_Request *req = f->awaiting;
        MPIDI_ZC_foreign_awaited(req);
        end_with_error(req);
    }
    MPIDI_ZC_match_lost(&MPIDI_ZC_VCI(0));
}

void MPIDI_ZC_foreign_refused(MPIDI_ZC_foreign_t * f, ucs_status_t status)
{
    switch (status) {
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_ENDPOINT_TIMEOUT:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_UNREACHABLE:
        case UCS_ERR_REJECTED:
        case UCS_ERR_CANCELED:
            f->failed = true;
            break;
        default:
            break;              /* no memory, perhaps */
    }
}

/* ---- connecting ---- */

static void peer_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    MPIDI_ZC_foreign_t *f = arg;

    f->failed = true;
    MPIDI_ZC_foreign_settle(f);
    MPIDI_ZC_disconnect_close_if_over(f);
}

/* An endpoint over the network has error handling, since the process may end before this one
 * without an error of the job. One over shared memory has none, since UCX 1.13 cannot do it there.
 * Both sides of a connection must do the same. */
int MPIDI_ZC_foreign_endpoint(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_upid_t * upid, bool over_shm,
                              ucp_ep_h * ep)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
            UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *) upid->address,
        .err_mode = over_shm ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = peer_failed,.arg = f},
    };
    ucs_status_t status = ucp_ep_create(MPIDI_ZC_VCI(0).worker, &params, ep);
    /* That the process has died is not an error of this one (MPIDI_ZC_dynamic_send()). */
    MPIR_ERR_CHKANDJUMP2(status != UCS_OK, mpi_errno,
                         status == UCS_ERR_UNREACHABLE ? MPI_ERR_PORT : MPI_ERR_OTHER, "**zc_ucx",
                         "**zc_ucx %s %s", "ucp_ep_create", ucs_status_string(status));

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
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = hello_sent,
    };

    f->hello = (MPIDI_ZC_hello_t) {
        .id = MPIDI_ZC_upid_self()->id,
        .number = f->self,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(f->net_ep, MPIDI_ZC_AM_HELLO, NULL, 0,
                                               &f->hello, sizeof(f->hello), &param);
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* An earlier connection to process @id, given up here, waits for the peer's FIN. */
static bool lingers(uint64_t id)
{
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->id == id && f->avtid < 0 && !f->failed) {
            return true;
        }
    }
    return false;
}

static void await_end_of_earlier(uint64_t id)
{
    MPL_time_t start, now;
    double waited = 0;

    MPL_wtime(&start);
    while (lingers(id) && waited < LINGER_SECONDS) {
        MPIDI_ZC_progress_vci(&MPIDI_ZC_VCI(0));
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
}

int MPIDI_ZC_foreign_connect(const MPIDI_ZC_upid_t * upid, size_t length, int avtid, int lpid)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_disconnect_progress();
    await_end_of_earlier(upid->id);
    MPIDI_ZC_foreign_t *f = MPL_calloc(1, sizeof(*f), MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f, mpi_errno, MPI_ERR_OTHER, "**nomem");
    f->upid = MPL_malloc(length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f->upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
    memcpy(f->upid, upid, length);
    f->upid_length = length;
    f->id = f->upid->id;
    f->node = node_of(f->upid->host);
    f->avtid = avtid;
    f->lpid = lpid;
    mpi_errno = MPIDI_ZC_upid_draw(&f->self);
    MPIR_ERR_CHECK(mpi_errno);
    f->self |= MPIDI_ZC_FOREIGN;
    mpi_errno = MPIDI_ZC_foreign_endpoint(f, f->upid, false, &f->net_ep);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = send_hello(f);
    MPIR_ERR_CHECK(mpi_errno);

    MPIDI_ZC_addr_t *peer = MPIDI_ZC_foreign_address(f);
    memset(peer, 0, sizeof(*peer));
    peer->lane.ep = f->net_ep;
    peer->lane.short_max = MPIDI_ZC_SHORT_MAX;
    peer->self = f->self;
    peer->foreign = f;
    f->next = MPIDI_ZC_connections;
    MPIDI_ZC_connections = f;

    MPIDI_ZC_shm_upgrade_begin(f);
    MPIDI_ZC_sender_open_windows(f->id);

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (f) {
        MPIDI_ZC_disconnect_unused(f);
    }
    goto fn_exit;
}

bool MPIDI_ZC_foreign_find(uint64_t id, int *avtid, int *lpid)
{
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->id == id && f->avtid >= 0) {
            *avtid = f->avtid;
            *lpid = f->lpid;
            return true;
        }
    }
    return false;
}

MPIDI_ZC_lane_t *MPIDI_ZC_foreign_lane(uint64_t self)
{
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->self == self && f->avtid >= 0) {
            return &MPIDI_ZC_foreign_address(f)->lane;
        }
    }
    return NULL;
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

/* ---- the end ---- */

void MPIDI_ZC_foreign_detach(int avtid)
{
    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections, *next; f; f = next) {
        next = f->next;
        if (f->avtid == avtid) {
            f->avtid = f->lpid = -1;
            MPIDI_ZC_disconnect(f);
        }
    }
}

void MPIDI_ZC_foreign_finalize(void)
{
    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        if (f->avtid >= 0) {
            MPIDI_ZC_foreign_address(f)->foreign = NULL;
            await_no_more(f);
        }
    }
    MPIDI_ZC_disconnect_all();
}

/* A later session begins with nothing. */
void MPIDI_ZC_foreign_free(void)
{
    MPIDI_ZC_disconnect_free();
    MPIDI_ZC_shm_upgrade_free();
    MPIDI_ZC_sender_free_all();
    MPIDI_ZC_port_messages_free();
}

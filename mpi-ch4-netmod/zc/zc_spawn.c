/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_abridged.h"
#include "zc_connecting.h"
#include "zc_foreign.h"
#include "zc_path.h"
#include "zc_peer.h"
#include "zc_process.h"
#include "zc_noinline.h"

/* This file has what CH4 needs of a netmod to reach processes of another MPI_COMM_WORLD: their
 * names and addresses (upids), and a few messages before there is a communicator. */

/* ---- names and addresses ---- */

static const MPIDI_ZC_upid_t *upid_of(MPIR_Comm * comm, int rank, size_t * length)
{
    const MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(MPIDIU_comm_rank_to_av(comm, rank));

    if (peer->foreign) {
        return MPIDI_ZC_foreign_upid(peer->foreign, length);
    }
    int avtid, lpid;
    MPIDIU_comm_rank_to_pid(comm, rank, &lpid, &avtid);
    const MPIDI_ZC_upid_t *later = MPIDI_ZC_path_upid(lpid, length);
    if (unlikely(later)) {
        return later;           /* UCX has no shared memory there, so it is an address of the network */
    }
    *length = MPIDI_ZC_global.net_stride;
    return MPIDI_ZC_net_upid_of(lpid);
}

int MPIDI_ZC_get_local_upids(MPIR_Comm * comm, int **local_upid_size, char **local_upids)
{
    int mpi_errno = MPI_SUCCESS;
    size_t length, total = 0;
    int *sizes = NULL;
    char *upids = NULL;

    *local_upid_size = NULL;
    *local_upids = NULL;
    if (comm != MPIR_Process.comm_self) {
        mpi_errno = MPIDI_ZC_connecting_hold();
        if (mpi_errno) {
            return mpi_errno;
        }
    }
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    sizes = MPL_malloc(comm->local_size * sizeof(int), MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!sizes, mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (comm == MPIR_Process.comm_self) {
        /* for the name of a port, which has little room */
        const void *upid;
        mpi_errno = MPIDI_ZC_upid_for_port(&upid, &length);
        MPIR_ERR_CHECK(mpi_errno);
        upids = MPL_malloc(length, MPL_MEM_ADDRESS);
        MPIR_ERR_CHKANDJUMP(!upids, mpi_errno, MPI_ERR_OTHER, "**nomem");
        memcpy(upids, upid, length);
        sizes[0] = (int) length;
    } else {
        for (int i = 0; i < comm->local_size; i++) {
            (void) upid_of(comm, i, &length);
            sizes[i] = (int) length;
            total += length;
        }
        upids = MPL_malloc(total, MPL_MEM_ADDRESS);
        MPIR_ERR_CHKANDJUMP(!upids, mpi_errno, MPI_ERR_OTHER, "**nomem");
        char *at = upids;
        for (int i = 0; i < comm->local_size; i++) {
            const MPIDI_ZC_upid_t *upid = upid_of(comm, i, &length);
            memcpy(at, upid, length);
            at += length;
        }
    }
    *local_upid_size = sizes;
    *local_upids = upids;

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    MPL_free(sizes);
    goto fn_exit;
}

static bool find(uint64_t id, int *avtid, int *lpid)
{
    if (MPIDI_ZC_foreign_find(id, avtid, lpid)) {
        return true;
    }
    *avtid = 0;
    *lpid = MPIDI_ZC_process_rank(id);
    return *lpid >= 0;
}

/* Returns @mpi_errno with the class MPI_ERR_PORT if it says that the other process has died: that is no
 * error of this one, and an MPI_Comm_accept() goes on with the next request. */
static int as_error_of_port(int mpi_errno)
{
    if (mpi_errno && MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED) {
        MPIR_ERR_SET(mpi_errno, MPI_ERR_PORT, "**zc_gone");
    }
    return mpi_errno;
}

/* Makes a table for one process, and its connection. @upid: at any alignment, and may be abridged. */
static int connect_to(const char *upid, int size, int *avtid)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_upid_t *whole = NULL;
    size_t length;

    mpi_errno = MPIDI_ZC_upid_whole(upid, size, &whole, &length);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDIU_new_avt(1, avtid);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = as_error_of_port(MPIDI_ZC_foreign_connect(whole, length, *avtid, 0));
    if (mpi_errno) {
        MPIDIU_free_avt(*avtid);
    }
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(whole);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* CH4 counts the communicators that use a table. In one table several processes would stay known
 * for as long as one of them is, and count among those that share the processors, long after they
 * have ended: so each has a table of its own.
 *
 * CH4 calls this with the lock of VCI 0 (patches/0110). */
int MPIDI_ZC_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                            uint64_t * remote_gpids)
{
    int mpi_errno = MPI_SUCCESS;

    /* They lie one behind the other, at any alignment. Progress may end other connections, so it is
     * made before it is asked which of them there are. */
    const char *at = remote_upids;
    MPL_time_t since;
    MPL_wtime(&since);
    for (int i = 0; i < size; i++) {
        MPIDI_ZC_foreign_await_end_of_earlier(MPIDI_ZC_upid_id(at), &since);
        at += remote_upid_size[i];
    }
    at = remote_upids;
    for (int i = 0; i < size; i++) {
        int avtid, lpid;
        if (!find(MPIDI_ZC_upid_id(at), &avtid, &lpid)) {
            lpid = 0;
            mpi_errno = connect_to(at, remote_upid_size[i], &avtid);
            MPIR_ERR_CHECK(mpi_errno);
        }
        remote_gpids[i] = MPIDIU_GPID_CREATE(avtid, lpid);
        at += remote_upid_size[i];
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- messages through a port ---- */

typedef struct port_message {
    struct port_message *next;
    MPIDI_ZC_port_tag_t tag;
    size_t length;
    char bytes[];
} port_message_t;

static port_message_t *port_messages;       /* oldest first */

static bool withdraws(const port_message_t * answer, const port_message_t * request)
{
    return (answer->tag & MPIDIU_DYNPROC_ANSWER) && !(request->tag & MPIDIU_DYNPROC_ANSWER) &&
        answer->length == request->length + 1 &&
        answer->bytes[request->length] == MPIDIU_DYNPROC_WITHDRAWN &&
        memcmp(answer->bytes, request->bytes, request->length) == 0;
}

ucs_status_t MPIDI_ZC_dynamic_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param)
{
    port_message_t **at = &port_messages;

    if (header_length != sizeof((*at)->tag)) {
        return UCS_OK;
    }
    port_message_t *message = MPL_malloc(sizeof(*message) + length, MPL_MEM_BUFFER);
    if (unlikely(!message)) {
        /* Both sides would wait for ever, and a callback has no caller to return an error to. */
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "no memory for a message through a port");
    }
    memcpy(&message->tag, header, header_length);
    memcpy(message->bytes, data, length);
    message->length = length;
    message->next = NULL;
    /* Either may arrive first, since the connection may change from one network to another between
     * them. */
    while (*at && !withdraws(message, *at) && !withdraws(*at, message)) {
        at = &(*at)->next;
    }
    if (*at) {
        port_message_t *other = *at;
        *at = other->next;
        MPL_free(other);
        MPL_free(message);
    } else {
        *at = message;
    }
    return UCS_OK;
}

void MPIDI_ZC_port_messages_free(void)
{
    while (port_messages) {
        port_message_t *message = port_messages;
        port_messages = message->next;
        MPL_free(message);
    }
}

static bool take_port_message(int tag, void *buf, size_t size)
{
    bool taken = false;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    for (port_message_t ** at = &port_messages; *at; at = &(*at)->next) {
        port_message_t *message = *at;
        if (message->tag == tag) {
            memcpy(buf, message->bytes, MPL_MIN(size, message->length));
            *at = message->next;
            MPL_free(message);
            taken = true;
            break;
        }
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return taken;
}

/* Makes one round of progress. *in_time: false when @timeout seconds (0: no limit) are over. */
static int progress_until(MPL_time_t * start, double timeout, bool * in_time)
{
    MPL_time_t now;
    double waited;
    int mpi_errno = MPID_Progress_test(NULL);

    MPL_wtime(&now);
    MPL_wtime_diff(start, &now, &waited);
    *in_time = timeout == 0 || waited < timeout;
    return mpi_errno;
}

/* A message that is being sent. UCP reads it until then, which may be after dynamic_send has given
 * up waiting. */
typedef struct {
    bool awaited;               /* by dynamic_send, which frees it; else UCP's callback does */
    ucs_status_t status;
    MPIDI_ZC_port_tag_t tag;
    char bytes[];
} outgoing_t;

static void message_sent(void *request, ucs_status_t status, void *user_data)
{
    outgoing_t *message = user_data;

    ucp_request_free(request);
    if (message->awaited) {
        message->status = status;
    } else {
        MPL_free(message);
    }
}

/* Hands @message to UCP, which sets its status. UCS_ERR_BUSY: not now, since the path to @peer is paused
 * (zc_path.h). Neither side leaves then, so it opens. */
static int post(MPIDI_ZC_addr_t * peer, outgoing_t * message, size_t size)
{
    int mpi_errno = MPI_SUCCESS;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = message_sent,
        .user_data = message,
    };

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    mpi_errno = MPIDI_ZC_lane_endpoint(peer, &peer->lane, 0);
    MPIR_ERR_CHECK(mpi_errno);
    if (unlikely(!peer->lane.ep)) {
        message->status = UCS_ERR_BUSY;
        goto fn_exit;
    }
    message->status = UCS_INPROGRESS;
    ucs_status_ptr_t request = ucp_am_send_nbx(peer->lane.ep, MPIDI_ZC_AM_DYNAMIC, &message->tag,
                                               sizeof(message->tag), message->bytes, size, &param);
    if (!request || UCS_PTR_IS_ERR(request)) {
        message->status = UCS_PTR_STATUS(request);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Frees @message, or leaves that to UCP's callback. */
static ucs_status_t let_go(outgoing_t * message)
{
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    const ucs_status_t status = message->status;
    if (status == UCS_INPROGRESS) {
        message->awaited = false;
    } else {
        MPL_free(message);
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return status;
}

static MPIDI_ZC_addr_t *peer_of(uint64_t gpid)
{
    return &MPIDI_ZC_AV(&MPIDIU_get_av(MPIDIU_GPID_GET_AVTID(gpid), MPIDIU_GPID_GET_LPID(gpid)));
}

/* Has the process failed? The process manager detects the death of a process of this world. */
static bool has_failed(uint64_t gpid)
{
    bool failed = false;

    if (gpid != MPIDIU_GPID_ANY && MPIDIU_GPID_GET_AVTID(gpid) != 0) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
        failed = MPIDI_ZC_foreign_has_failed(peer_of(gpid)->foreign);
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    }
    return failed;
}

/* UCX may report the failure of a message before it reports that of the process. */
#define FAILURE_SECONDS 1

static bool has_failed_too(uint64_t gpid)
{
    MPL_time_t start;
    bool failed, in_time = true;

    MPL_wtime(&start);
    while (!(failed = has_failed(gpid)) && in_time &&
           progress_until(&start, FAILURE_SECONDS, &in_time) == MPI_SUCCESS) {
    }
    return failed;
}

/* The class of an error is MPI_ERR_PORT if the other process has failed, or does not receive the
 * message. */
int MPIDI_ZC_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_addr_t *peer = peer_of(remote_gpid);
    MPL_time_t start;
    bool in_time = true;

    MPL_wtime(&start);
    outgoing_t *message = MPL_calloc(1, sizeof(*message) + size, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!message, mpi_errno, MPI_ERR_OTHER, "**nomem");
    message->awaited = true;
    message->tag = tag;
    memcpy(message->bytes, buf, size);
    do {
        mpi_errno = post(peer, message, size);
        if (mpi_errno == MPI_SUCCESS && message->status == UCS_ERR_BUSY) {
            mpi_errno = progress_until(&start, timeout, &in_time);
        }
    } while (mpi_errno == MPI_SUCCESS && message->status == UCS_ERR_BUSY && in_time);
    while (mpi_errno == MPI_SUCCESS && in_time &&
           *(volatile ucs_status_t *) &message->status == UCS_INPROGRESS) {
        mpi_errno = progress_until(&start, timeout, &in_time);
    }
    const ucs_status_t status = let_go(message);
    mpi_errno = as_error_of_port(mpi_errno);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP1(status == UCS_INPROGRESS || status == UCS_ERR_BUSY, mpi_errno,
                         MPI_ERR_PORT, "**zc_timeout", "**zc_timeout %d", timeout);
    MPIR_ERR_CHKANDJUMP2(status != UCS_OK, mpi_errno,
                         has_failed_too(remote_gpid) ? MPI_ERR_PORT : MPI_ERR_OTHER, "**zc_ucx",
                         "**zc_ucx %s %s", "connect", ucs_status_string(status));

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_dynamic_recv(uint64_t remote_gpid, int tag, void *buf, int size, double seconds)
{
    int mpi_errno = MPI_SUCCESS;
    MPL_time_t start;
    bool in_time = true;

    MPL_wtime(&start);
    for (;;) {
        /* This comes first: what the process sent before it failed has been received then. */
        const bool failed = has_failed(remote_gpid);
        if (take_port_message(tag, buf, size)) {
            break;
        }
        MPIR_ERR_CHKANDJUMP(failed, mpi_errno, MPI_ERR_PORT, "**zc_gone");
        MPIR_ERR_CHKANDJUMP1(!in_time, mpi_errno, MPI_ERR_PORT, "**zc_timeout", "**zc_timeout %d",
                             (int) seconds);
        mpi_errno = progress_until(&start, seconds, &in_time);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_atomic.h"
#include "zc_foreign.h"
#include "zc_members.h"
#include "zc_outstanding.h"
#include "zc_peer.h"
#include "zc_win.h"
#include "zc_windows.h"
#include "zc_noinline.h"

/* ---- memory that UCX reaches ---- */

void MPIDI_ZC_win_register(MPIR_Win * win, void **key, size_t * key_bytes)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = win->base,
        .length = win->size,
    };
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);

    *key = NULL;
    *key_bytes = 0;
    if (!zc->memory &&
        (!win->base || win->size == 0 || MPIR_GPU_query_pointer_is_dev(win->base) ||
         ucp_mem_map(MPIDI_ZC_global.context, &params, &zc->memory) != UCS_OK)) {
        zc->memory = NULL;
    } else if (ucp_rkey_pack(MPIDI_ZC_global.context, zc->memory, key, key_bytes) != UCS_OK) {
        *key = NULL;
        *key_bytes = 0;
    }
}

void MPIDI_ZC_win_unregister(MPIR_Win * win)
{
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);

    if (zc->memory) {
        ucp_mem_unmap(MPIDI_ZC_global.context, zc->memory);
        zc->memory = NULL;
    }
}

/* Makes room for the targets, and registers this process's memory as @member says, which is returned with
 * its *@key. */
static int begin(MPIR_Win * win, MPIDI_ZC_win_member_t * member, void **key)
{
    int mpi_errno = MPI_SUCCESS;
    const int vci = MPIDI_WIN(win, am_vci);
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);
    size_t key_bytes = 0;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    zc->targets = MPL_calloc(win->comm_ptr->local_size, sizeof(*zc->targets), MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(!zc->targets || !MPIDI_ZC_windows_add(win), mpi_errno, MPI_ERR_OTHER,
                        "**nomem");
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        zc->targets[rank].path =
            MPIDI_ZC_path_to(MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(win->comm_ptr, rank), vci));
    }
    MPIDI_ZC_win_register(win, key, &key_bytes);
    *member = (MPIDI_ZC_win_member_t) {
        .base = (uint64_t) (uintptr_t) win->base,
        .disp_unit = win->disp_unit,
        .key_bytes = (int) key_bytes,
        .atomics = MPIDI_ZC_atomics_wanted(win),
        .incarnation = MPIDI_ZC_path_own_incarnation(),
    };

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Undoes what share_memory() has done. */
static void forget(MPIR_Win * win)
{
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    MPIDI_ZC_windows_remove(win);
    if (zc->targets) {
        for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
            if (zc->targets[rank].rkey) {
                ucp_rkey_destroy(zc->targets[rank].rkey);
            }
        }
        MPL_free(zc->targets);
        MPL_free(zc->keys);
    }
    MPIDI_ZC_win_unregister(win);
    memset(zc, 0, sizeof(*zc));
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
}

/* Connects to the target of @rank, inside the lock of the window's VCI. */
static void connect_target(MPIR_Win * win, int rank)
{
    const int vci = MPIDI_WIN(win, am_vci);
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(win->comm_ptr, rank), vci);
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci);

    if (MPIDI_ZC_lane_endpoint(peer, lane, vci) != MPI_SUCCESS ||
        ucp_ep_rkey_unpack(lane->ep, target->packed, &target->rkey) != UCS_OK) {
        target->rkey = NULL;
        target->lost = true;
        if (MPIDI_ZC_WIN(win).latest && target->path >= 0) {
            MPIDI_ZC_windows_refused(target->path, vci);
        }
    }
    target->ep = lane->ep;
    __atomic_store_n(&target->packed, NULL, __ATOMIC_RELEASE);
}

/* The key to the memory of a process that has died. One that has been unpacked stays: UCX may have
 * operations with it. */
static const char no_key[] = "";

void MPIDI_ZC_win_target_lost(MPIR_Win * win, int rank)
{
    if (MPIDI_ZC_WIN(win).targets) {
        __atomic_store_n(&MPIDI_ZC_WIN(win).targets[rank].packed, no_key, __ATOMIC_RELEASE);
    }
}

MPIDI_ZC_target_t *MPIDI_ZC_win_connect(MPIR_Win * win, int rank)
{
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    const bool is_lost = target->packed == no_key;
    if (target->packed && !is_lost &&
        (likely(!MPIDI_ZC_WIN(win).latest) || MPIDI_ZC_windows_connectable(win, rank))) {
        connect_target(win, rank);
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    return target->rkey && !is_lost ? target : NULL;
}

/* Does the rank share memory with this process? */
static bool is_near(const MPIR_Win * win, int rank)
{
    int mine, its;

    return MPIDI_ZC_global.transport.shared_memory &&
        MPID_Get_node_id(win->comm_ptr, win->comm_ptr->rank, &mine) == MPI_SUCCESS &&
        MPID_Get_node_id(win->comm_ptr, rank, &its) == MPI_SUCCESS && its == mine;
}

/* Fills in the targets. @starts: where their keys begin. False: a near one cannot be reached. */
static bool make_targets(MPIR_Win * win, const MPIDI_ZC_win_member_t * members,
                         const MPI_Aint * starts)
{
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);
    bool reaches_all = true;

    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        MPIDI_ZC_target_t *target = &zc->targets[rank];
        target->base = members[rank].base;
        target->disp_unit = members[rank].disp_unit;
        /* This process is a target of its own only where its atomics may meet those of others. */
        if (members[rank].key_bytes > 0 && (rank != win->comm_ptr->rank || zc->atomics)) {
            MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
            if (zc->latest) {
                MPIDI_ZC_windows_keep(win, rank, zc->keys + starts[rank],
                                      members[rank].incarnation);
            }
            target->packed = zc->keys + starts[rank];
            MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
            /* Over shared memory a target takes no part in what is done to it, so it must not be
             * needed for connecting either: it may compute by then. Most processes of a large
             * world are far, and most of those never become a target of this process. */
            if (is_near(win, rank)) {
                reaches_all = MPIDI_ZC_win_connect(win, rank) && reaches_all;
            }
        }
    }
    return reaches_all;
}

/* Collective. A member that cannot reach the memory of another uses active messages with it. */
static int share_memory(MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    MPIR_Comm *comm = win->comm_ptr;
    const int size = comm->local_size;
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);
    void *key = NULL;
    MPIDI_ZC_win_member_t *members = NULL;
    MPI_Aint *counts = NULL, *starts = NULL, total = 0;

    if (!MPIR_CVAR_CH4_ZC_NATIVE_RMA) {
        return MPI_SUCCESS;
    }
    members = MPL_malloc(size * sizeof(*members), MPL_MEM_RMA);
    counts = MPL_malloc(size * sizeof(*counts), MPL_MEM_RMA);
    starts = MPL_malloc(size * sizeof(*starts), MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(!members || !counts || !starts, mpi_errno, MPI_ERR_OTHER, "**nomem");
    mpi_errno = begin(win, &members[comm->rank], &key);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, members, sizeof(*members),
                               MPI_BYTE, comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    zc->atomics = true;
    for (int rank = 0; rank < size; rank++) {
        counts[rank] = members[rank].key_bytes;
        starts[rank] = total;
        total += counts[rank];
        zc->atomics = zc->atomics && members[rank].atomics;
    }
    zc->keys = MPL_malloc(total + 1, MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(!zc->keys, mpi_errno, MPI_ERR_OTHER, "**nomem");
    mpi_errno = MPIR_Allgatherv(key, counts[comm->rank], MPI_BYTE, zc->keys, counts, starts, MPI_BYTE, comm,
                                &errflag);
    MPIR_ERR_CHECK(mpi_errno);

    int reaches_all = make_targets(win, members, starts);
    /* Otherwise accumulates of one member as messages could meet those of another by UCX. */
    if (zc->atomics) {
        mpi_errno = MPIR_Allreduce(MPI_IN_PLACE, &reaches_all, 1, MPI_INT, MPI_LAND, comm,
                                   &errflag);
        MPIR_ERR_CHECK(mpi_errno);
        zc->atomics = reaches_all;
    }

  fn_exit:
    if (key) {
        ucp_rkey_buffer_release(key);
    }
    MPL_free(members);
    MPL_free(counts);
    MPL_free(starts);
    return mpi_errno;
  fn_fail:
    forget(win);
    goto fn_exit;
}

/* ---- completion ---- */

void MPIDI_ZC_rma_done(void *request, ucs_status_t status, void *user_data)
{
    MPIR_Request *req = user_data;

    /* Without a request, an error is that of the next flush. */
    if (req) {
        if (unlikely(status != UCS_OK)) {
            req->status.MPI_ERROR =
                MPIDI_ZC_transfer_error(MPI_SUCCESS, "put, get or accumulate", status);
        }
        MPIDI_ZC_outstanding_native_done(req);
    }
    ucp_request_free(request);
}

static bool is_dead(const MPIR_Win * win, int rank)
{
    const int vci = MPIDI_WIN(win, am_vci);

    return unlikely(MPIDI_ZC_VCI(vci).has_dead) &&
        MPIDI_ZC_foreign_is_dead(MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(win->comm_ptr, rank),
                                                  vci)->foreign);
}

/* Makes progress until UCP has completed @request, a flush of the process of @rank, and frees it. Over shared
 * memory UCP goes on waiting for one that has died, and frees it itself. */
static int await(ucs_status_ptr_t request, const MPIR_Win * win, int rank)
{
    int mpi_errno = MPI_SUCCESS;
    ucs_status_t status = UCS_INPROGRESS;

    /* All of CH4's progress: the target may wait for an answer of ours. */
    MPIDIU_PROGRESS_DO_WHILE((status = ucp_request_check_status(request)) == UCS_INPROGRESS &&
                             !is_dead(win, rank), MPIDI_WIN(win, am_vci));
    MPIR_ERR_CHKANDSTMT(status == UCS_INPROGRESS, mpi_errno, MPIDI_ZC_LOST, goto fn_fail, "**zc_gone");
    MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_flush_nbx");

  fn_exit:
    ucp_request_free(request);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Flushes the endpoint of @target, the process of @rank, inside the lock of @win's VCI. Neither process
 * leaves before that is over. */
static int flush_endpoint(const MPIR_Win * win, const MPIDI_ZC_target_t * target, int rank)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_request_param_t param = { 0 };
    const int vci = MPIDI_WIN(win, am_vci);
    MPIDI_ZC_path_lane_t *lane = unlikely(MPIDI_ZC_WIN(win).latest) && target->path >= 0 ?
        MPIDI_ZC_path_lane(MPIDI_ZC_path_of(target->path), vci) : NULL;

    ucs_status_ptr_t request = ucp_ep_flush_nbx(target->ep, &param);
    MPIDI_ZC_CHECK_POINTER(request, "ucp_ep_flush_nbx");
    if (request) {
        if (unlikely(lane)) {
            lane->flushing++;
        }
        mpi_errno = await(request, win, rank);
        if (unlikely(lane)) {
            lane->flushing--;
        }
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* While the path to @target is not open, its own flush is that of all windows (zc_windows.h). Waits for
 * that, or until the path is open again, if less than @started operations are known to be complete. */
static int await_path(const MPIR_Win * win, const MPIDI_ZC_target_t * target, uint64_t started)
{
    int mpi_errno = MPI_SUCCESS;

    while (target->flushed < started && !MPIDI_ZC_win_target_is_open(win, target)) {
        MPIDIU_PROGRESS_DO_WHILE(false, MPIDI_WIN(win, am_vci));
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int flush_target(int rank, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];

    /* While this thread waits, another one may call this, and must wait as well. */
    const uint64_t started = target->started;

    mpi_errno = await_path(win, target, started);
    MPIR_ERR_CHECK(mpi_errno);
    if (target->flushed < started) {
        mpi_errno = flush_endpoint(win, target, rank);
        /* What has been begun on a process that is lost does not end any more. */
        if (mpi_errno == MPI_SUCCESS || MPIDIG_win_is_loss(win, mpi_errno)) {
            target->flushed = MPL_MAX(target->flushed, started);
        }
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_win_flush_target(int rank, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    mpi_errno = flush_target(rank, win);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    return mpi_errno;
}

int MPIDI_ZC_win_flush(MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    int loss = MPI_SUCCESS;
    const uint64_t started = MPIDI_ZC_WIN(win).started;
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        mpi_errno = MPIDIG_win_keep_loss(win, flush_target(rank, win), &loss);
        MPIR_ERR_CHECK(mpi_errno);
    }
    MPIDI_ZC_WIN(win).flushed = MPL_MAX(MPIDI_ZC_WIN(win).flushed, started);
    mpi_errno = loss;

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(MPIDI_WIN(win, am_vci)).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- hooks ---- */

int MPIDI_ZC_mpi_win_set_info(MPIR_Win * win, MPIR_Info * info)
{
    return MPIDIG_mpi_win_set_info(win, info);
}

int MPIDI_ZC_mpi_win_get_info(MPIR_Win * win, MPIR_Info ** info_p)
{
    return MPIDIG_mpi_win_get_info(win, info_p);
}

int MPIDI_ZC_mpi_win_free(MPIR_Win ** win_p)
{
    return MPIDIG_mpi_win_free(win_p);
}

int MPIDI_ZC_mpi_win_create(void *base, MPI_Aint length, int disp_unit, MPIR_Info * info,
                            MPIR_Comm * comm_ptr, MPIR_Win ** win_p)
{
    return MPIDIG_mpi_win_create(base, length, disp_unit, info, comm_ptr, win_p);
}

int MPIDI_ZC_mpi_win_attach(MPIR_Win * win, void *base, MPI_Aint size)
{
    return MPIDIG_mpi_win_attach(win, base, size);
}

int MPIDI_ZC_mpi_win_detach(MPIR_Win * win, const void *base)
{
    return MPIDIG_mpi_win_detach(win, base);
}

int MPIDI_ZC_mpi_win_allocate(MPI_Aint size, int disp_unit, MPIR_Info * info, MPIR_Comm * comm,
                              void *baseptr, MPIR_Win ** win_p)
{
    return MPIDIG_mpi_win_allocate(size, disp_unit, info, comm, baseptr, win_p);
}

int MPIDI_ZC_mpi_win_allocate_shared(MPI_Aint size, int disp_unit, MPIR_Info * info,
                                     MPIR_Comm * comm_ptr, void **baseptr_p, MPIR_Win ** win_p)
{
    return MPIDIG_mpi_win_allocate_shared(size, disp_unit, info, comm_ptr, baseptr_p, win_p);
}

int MPIDI_ZC_mpi_win_create_dynamic(MPIR_Info * info, MPIR_Comm * comm, MPIR_Win ** win_p)
{
    return MPIDIG_mpi_win_create_dynamic(info, comm, win_p);
}

/* A new window, whose memory is shared if UCX may reach it. */
static int begin_window(MPIR_Win * win, bool shares)
{
    int mpi_errno = MPI_SUCCESS;

    memset(&MPIDI_ZC_WIN(win), 0, sizeof(MPIDI_ZC_WIN(win)));
    if (shares) {
        mpi_errno = share_memory(win);
        MPIR_ERR_CHECK(mpi_errno);
    }
    mpi_errno = MPIDI_ZC_members_add(win);
    if (mpi_errno && MPIDI_ZC_WIN(win).targets) {
        forget(win);
    }
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_mpi_win_create_hook(MPIR_Win * win)
{
    return begin_window(win, true);
}

int MPIDI_ZC_mpi_win_allocate_hook(MPIR_Win * win)
{
    return begin_window(win, true);
}

int MPIDI_ZC_mpi_win_allocate_shared_hook(MPIR_Win * win)
{
    return begin_window(win, false);
}

int MPIDI_ZC_mpi_win_create_dynamic_hook(MPIR_Win * win)
{
    return begin_window(win, false);
}

int MPIDI_ZC_mpi_win_attach_hook(MPIR_Win * win, void *base, MPI_Aint size)
{
    return MPI_SUCCESS;
}

int MPIDI_ZC_mpi_win_detach_hook(MPIR_Win * win, const void *base)
{
    return MPI_SUCCESS;
}

int MPIDI_ZC_mpi_win_free_hook(MPIR_Win * win)
{
    MPIDI_ZC_members_remove(win);
    if (MPIDI_ZC_WIN(win).targets) {
        forget(win);
    }
    return MPI_SUCCESS;
}

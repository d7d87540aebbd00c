/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_RMA_H_INCLUDED
#define ZC_RMA_H_INCLUDED

/* One-sided communication uses UCP for contiguous puts and gets on memory that UCX can reach.
 * CH4's handlers at the target take no part: UCP writes and reads the memory, over shared memory
 * without the target's help. Accumulates of windows that promise enough are done in the same way
 * (zc_atomic.h). All other operations are CH4's own active messages. MPI demands no order between
 * the two kinds within an epoch, and the end of an epoch waits for both (the completion hooks
 * below). */

#include "zc_impl.h"
#include "zc_atomic.h"
#include "zc_outstanding.h"
#include "zc_win.h"

/* CH4's fallback defines every function. Those that this file defines get another name there. */
#define MPIDI_NM_mpi_put MPIDI_ZC_am_put
#define MPIDI_NM_mpi_get MPIDI_ZC_am_get
#define MPIDI_NM_mpi_rput MPIDI_ZC_am_rput
#define MPIDI_NM_mpi_rget MPIDI_ZC_am_rget
#define MPIDI_NM_mpi_accumulate MPIDI_ZC_am_accumulate
#define MPIDI_NM_mpi_raccumulate MPIDI_ZC_am_raccumulate
#define MPIDI_NM_mpi_get_accumulate MPIDI_ZC_am_get_accumulate
#define MPIDI_NM_mpi_rget_accumulate MPIDI_ZC_am_rget_accumulate
#define MPIDI_NM_mpi_fetch_and_op MPIDI_ZC_am_fetch_and_op
#define MPIDI_NM_mpi_compare_and_swap MPIDI_ZC_am_compare_and_swap
#define MPIDI_NM_rma_win_cmpl_hook MPIDI_ZC_am_win_cmpl_hook
#define MPIDI_NM_rma_win_local_cmpl_hook MPIDI_ZC_am_win_local_cmpl_hook
#define MPIDI_NM_rma_target_cmpl_hook MPIDI_ZC_am_target_cmpl_hook
#define MPIDI_NM_rma_target_local_cmpl_hook MPIDI_ZC_am_target_local_cmpl_hook
#include "netmod_am_fallback_rma.h"
#undef MPIDI_NM_mpi_put
#undef MPIDI_NM_mpi_get
#undef MPIDI_NM_mpi_rput
#undef MPIDI_NM_mpi_rget
#undef MPIDI_NM_mpi_accumulate
#undef MPIDI_NM_mpi_raccumulate
#undef MPIDI_NM_mpi_get_accumulate
#undef MPIDI_NM_mpi_rget_accumulate
#undef MPIDI_NM_mpi_fetch_and_op
#undef MPIDI_NM_mpi_compare_and_swap
#undef MPIDI_NM_rma_win_cmpl_hook
#undef MPIDI_NM_rma_win_local_cmpl_hook
#undef MPIDI_NM_rma_target_cmpl_hook
#undef MPIDI_NM_rma_target_local_cmpl_hook

/* The places of an operation that needs no datatype, at the origin and the target. */
typedef struct {
    MPIDI_ZC_target_t *target;
    void *origin;
    uint64_t remote;
    size_t bytes;
} MPIDI_ZC_rma_op_t;

/* Can UCX do the operation? If so, it sets *@op. CH4 copies from and to memory of this process
 * itself. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_rma_is_native(const void *origin_addr, int origin_count,
                                                     MPI_Datatype origin_datatype, int target_rank,
                                                     MPI_Aint target_disp, int target_count,
                                                     MPI_Datatype target_datatype, MPIR_Win * win,
                                                     MPIDI_ZC_rma_op_t * op)
{
    if (!MPIDI_ZC_WIN(win).targets || target_rank == MPI_PROC_NULL ||
        target_rank == win->comm_ptr->rank) {
        return false;
    }
    int origin_contiguous, target_contiguous;
    MPI_Aint target_bytes, origin_lb, target_lb, origin_bytes;
    MPIDI_Datatype_check_origin_target_contig_size_lb(origin_datatype, target_datatype,
                                                      origin_count, target_count,
                                                      origin_contiguous, target_contiguous,
                                                      origin_bytes, target_bytes,
                                                      origin_lb, target_lb);
    if (!origin_contiguous || !target_contiguous || origin_bytes != target_bytes ||
        origin_bytes == 0 || MPIR_GPU_query_pointer_is_dev(origin_addr)) {
        return false;
    }
    op->target = MPIDI_ZC_win_target(win, target_rank);
    if (!op->target) {
        return false;
    }
    op->origin = MPIR_get_contig_ptr(origin_addr, origin_lb);
    op->remote = op->target->base + target_disp * op->target->disp_unit + target_lb;
    op->bytes = origin_bytes;
    return true;
}

/* Starts @op, and sets *@error. False: a rank is leaving, and active messages are to be used, or the target
 * has died since it was looked up, and they will be refused. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_rma_start(const MPIDI_ZC_rma_op_t * op, bool is_put,
                                                 int target_rank, MPIR_Win * win,
                                                 MPIR_Request ** req_p, int *error)
{
    bool starts = true;
    int mpi_errno = MPI_SUCCESS;
    const int vci = MPIDI_WIN(win, am_vci);
    MPIR_Request *req = NULL;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = MPIDI_ZC_rma_done,
    };

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    if (unlikely(!MPIDI_ZC_win_target_is_open(win, op->target)) ||
        MPIDIG_win_has_lost(win, target_rank)) {
        starts = false;
        goto fn_exit;
    }
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    if (req_p) {
        req = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__RMA, vci, 2);
        MPIR_ERR_CHKANDSTMT(req == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
        MPIDI_ZC_outstanding_init_native(req);
        *req_p = req;
    }
    param.user_data = req;

    ucp_ep_h ep = op->target->ep;
    ucs_status_ptr_t request = is_put ?
        ucp_put_nbx(ep, op->origin, op->bytes, op->remote, op->target->rkey, &param) :
        ucp_get_nbx(ep, op->origin, op->bytes, op->remote, op->target->rkey, &param);
    MPIDI_ZC_CHECK_POINTER(request, is_put ? "ucp_put_nbx" : "ucp_get_nbx");
    op->target->started++;
    MPIDI_ZC_WIN(win).started++;
    if (request == NULL && req) {
        MPID_Request_complete(req);
    } else if (req && unlikely(MPIDIG_WIN(win, members))) {
        MPIDI_ZC_outstanding_native(win, target_rank, req);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    *error = mpi_errno;
    return starts;
  fn_fail:
    if (req) {
        *req_p = NULL;
        MPID_Request_complete(req);
        MPIDI_CH4_REQUEST_FREE(req);
    }
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_put(const void *origin_addr, int origin_count,
                                              MPI_Datatype origin_datatype, int target_rank,
                                              MPI_Aint target_disp, int target_count,
                                              MPI_Datatype target_datatype, MPIR_Win * win,
                                              MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr)
{
    MPIDI_ZC_rma_op_t op;
    int mpi_errno;

    if (MPIDI_ZC_rma_is_native(origin_addr, origin_count, origin_datatype, target_rank,
                               target_disp, target_count, target_datatype, win, &op) &&
        MPIDI_ZC_rma_start(&op, true, target_rank, win, NULL, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_put(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                          target_count, target_datatype, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_get(void *origin_addr, int origin_count,
                                              MPI_Datatype origin_datatype, int target_rank,
                                              MPI_Aint target_disp, int target_count,
                                              MPI_Datatype target_datatype, MPIR_Win * win,
                                              MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr)
{
    MPIDI_ZC_rma_op_t op;
    int mpi_errno;

    if (MPIDI_ZC_rma_is_native(origin_addr, origin_count, origin_datatype, target_rank,
                               target_disp, target_count, target_datatype, win, &op) &&
        MPIDI_ZC_rma_start(&op, false, target_rank, win, NULL, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_get(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                          target_count, target_datatype, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_rput(const void *origin_addr, int origin_count,
                                               MPI_Datatype origin_datatype, int target_rank,
                                               MPI_Aint target_disp, int target_count,
                                               MPI_Datatype target_datatype, MPIR_Win * win,
                                               MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr,
                                               MPIR_Request ** request)
{
    MPIDI_ZC_rma_op_t op;
    int mpi_errno;

    if (MPIDI_ZC_rma_is_native(origin_addr, origin_count, origin_datatype, target_rank,
                               target_disp, target_count, target_datatype, win, &op) &&
        MPIDI_ZC_rma_start(&op, true, target_rank, win, request, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_rput(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                           target_count, target_datatype, win, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_rget(void *origin_addr, int origin_count,
                                               MPI_Datatype origin_datatype, int target_rank,
                                               MPI_Aint target_disp, int target_count,
                                               MPI_Datatype target_datatype, MPIR_Win * win,
                                               MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr,
                                               MPIR_Request ** request)
{
    MPIDI_ZC_rma_op_t op;
    int mpi_errno;

    if (MPIDI_ZC_rma_is_native(origin_addr, origin_count, origin_datatype, target_rank,
                               target_disp, target_count, target_datatype, win, &op) &&
        MPIDI_ZC_rma_start(&op, false, target_rank, win, request, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_rget(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                           target_count, target_datatype, win, request);
}

/* ---- accumulates ---- */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_accumulate(const void *origin_addr, int origin_count,
                                                     MPI_Datatype origin_datatype, int target_rank,
                                                     MPI_Aint target_disp, int target_count,
                                                     MPI_Datatype target_datatype, MPI_Op op,
                                                     MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                     MPIDI_winattr_t winattr)
{
    const MPIDI_ZC_accumulate_t acc = {
        .origin = origin_addr,.origin_count = origin_count,.origin_type = origin_datatype,
        .target_rank = target_rank,.target_disp = target_disp,.target_count = target_count,
        .target_type = target_datatype,.op = op,
    };
    int mpi_errno;
    if (MPIDI_ZC_WIN(win).atomics && MPIDI_ZC_atomic_try(&acc, win, NULL, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_accumulate(origin_addr, origin_count, origin_datatype, target_rank,
                                 target_disp, target_count, target_datatype, op, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_raccumulate(const void *origin_addr, int origin_count,
                                                      MPI_Datatype origin_datatype,
                                                      int target_rank, MPI_Aint target_disp,
                                                      int target_count,
                                                      MPI_Datatype target_datatype, MPI_Op op,
                                                      MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                      MPIDI_winattr_t winattr,
                                                      MPIR_Request ** request)
{
    const MPIDI_ZC_accumulate_t acc = {
        .origin = origin_addr,.origin_count = origin_count,.origin_type = origin_datatype,
        .target_rank = target_rank,.target_disp = target_disp,.target_count = target_count,
        .target_type = target_datatype,.op = op,
    };
    int mpi_errno;
    if (MPIDI_ZC_WIN(win).atomics && MPIDI_ZC_atomic_try(&acc, win, request, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_raccumulate(origin_addr, origin_count, origin_datatype, target_rank,
                                  target_disp, target_count, target_datatype, op, win, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_get_accumulate(const void *origin_addr, int origin_count,
                                                         MPI_Datatype origin_datatype,
                                                         void *result_addr, int result_count,
                                                         MPI_Datatype result_datatype,
                                                         int target_rank, MPI_Aint target_disp,
                                                         int target_count,
                                                         MPI_Datatype target_datatype, MPI_Op op,
                                                         MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                         MPIDI_winattr_t winattr)
{
    const MPIDI_ZC_accumulate_t acc = {
        .origin = origin_addr,.origin_count = origin_count,.origin_type = origin_datatype,
        .result = result_addr,.result_count = result_count,.result_type = result_datatype,
        .target_rank = target_rank,.target_disp = target_disp,.target_count = target_count,
        .target_type = target_datatype,.op = op,
    };
    int mpi_errno;
    if (MPIDI_ZC_WIN(win).atomics && MPIDI_ZC_atomic_try(&acc, win, NULL, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_get_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                     result_count, result_datatype, target_rank, target_disp,
                                     target_count, target_datatype, op, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_rget_accumulate(const void *origin_addr,
                                                          int origin_count,
                                                          MPI_Datatype origin_datatype,
                                                          void *result_addr, int result_count,
                                                          MPI_Datatype result_datatype,
                                                          int target_rank, MPI_Aint target_disp,
                                                          int target_count,
                                                          MPI_Datatype target_datatype, MPI_Op op,
                                                          MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                          MPIDI_winattr_t winattr,
                                                          MPIR_Request ** request)
{
    const MPIDI_ZC_accumulate_t acc = {
        .origin = origin_addr,.origin_count = origin_count,.origin_type = origin_datatype,
        .result = result_addr,.result_count = result_count,.result_type = result_datatype,
        .target_rank = target_rank,.target_disp = target_disp,.target_count = target_count,
        .target_type = target_datatype,.op = op,
    };
    int mpi_errno;
    if (MPIDI_ZC_WIN(win).atomics && MPIDI_ZC_atomic_try(&acc, win, request, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_rget_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                      result_count, result_datatype, target_rank, target_disp,
                                      target_count, target_datatype, op, win, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_fetch_and_op(const void *origin_addr, void *result_addr,
                                                       MPI_Datatype datatype, int target_rank,
                                                       MPI_Aint target_disp, MPI_Op op,
                                                       MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                       MPIDI_winattr_t winattr)
{
    const MPIDI_ZC_accumulate_t acc = {
        .origin = origin_addr,.origin_count = 1,.origin_type = datatype,
        .result = result_addr,.result_count = 1,.result_type = datatype,
        .target_rank = target_rank,.target_disp = target_disp,.target_count = 1,
        .target_type = datatype,.op = op,
    };
    int mpi_errno;
    if (MPIDI_ZC_WIN(win).atomics && MPIDI_ZC_atomic_try(&acc, win, NULL, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp,
                                   op, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_compare_and_swap(const void *origin_addr,
                                                           const void *compare_addr,
                                                           void *result_addr,
                                                           MPI_Datatype datatype, int target_rank,
                                                           MPI_Aint target_disp, MPIR_Win * win,
                                                           MPIDI_av_entry_t * addr,
                                                           MPIDI_winattr_t winattr)
{
    const MPIDI_ZC_accumulate_t acc = {
        .origin = origin_addr,.origin_count = 1,.origin_type = datatype,
        .compare = compare_addr,
        .result = result_addr,.result_count = 1,.result_type = datatype,
        .target_rank = target_rank,.target_disp = target_disp,.target_count = 1,
        .target_type = datatype,.op = MPI_OP_NULL,
    };
    int mpi_errno;
    if (MPIDI_ZC_WIN(win).atomics && MPIDI_ZC_atomic_try(&acc, win, NULL, &mpi_errno)) {
        return mpi_errno;
    }
    return MPIDIG_mpi_compare_and_swap(origin_addr, compare_addr, result_addr, datatype,
                                       target_rank, target_disp, win);
}

/* ---- completion ---- */

/* UCP has no completion at the target but flushing, so local completion flushes as well. */

/* Have all operations of the caller been flushed? Those that other threads begin meanwhile may be
 * missed; they are for those threads to wait for. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_win_is_flushed(const MPIR_Win * win)
{
    return likely(MPIDI_ZC_WIN(win).started == MPIDI_ZC_WIN(win).flushed);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_win_cmpl_hook(MPIR_Win * win)
{
    return !MPIDI_ZC_win_is_flushed(win) ? MPIDI_ZC_win_flush(win) : MPI_SUCCESS;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_win_local_cmpl_hook(MPIR_Win * win)
{
    return MPIDI_NM_rma_win_cmpl_hook(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_target_cmpl_hook(int rank, MPIR_Win * win)
{
    return !MPIDI_ZC_win_is_flushed(win) && rank != MPI_PROC_NULL ?
        MPIDI_ZC_win_flush_target(rank, win) : MPI_SUCCESS;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_target_local_cmpl_hook(int rank, MPIR_Win * win)
{
    return MPIDI_NM_rma_target_cmpl_hook(rank, win);
}

#endif /* ZC_RMA_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_atomic.h"
#include "zc_foreign.h"
#include "zc_members.h"
#include "zc_outstanding.h"

#define MAX_BYTES 64

/* UCX cannot replace a value without fetching the old one, which goes here and is not read. */
static uint64_t discarded;

static bool promised(const MPIR_Win * win)
{
    static const MPI_Op possible[] =
        { MPI_SUM, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL };
    const MPIDIG_win_info_args_t *info = &MPIDIG_WIN(win, info_args);
    uint32_t others = info->which_accumulate_ops;

    for (size_t i = 0; i < sizeof(possible) / sizeof(possible[0]); i++) {
        others &= ~(1u << MPIDIU_win_acc_op_get_index(possible[i]));
    }
    return others == 0 && !info->accumulate_noncontig_dtype &&
        info->accumulate_max_bytes >= 0 && info->accumulate_max_bytes <= MAX_BYTES;
}

static bool is_within_host(const MPIR_Win * win)
{
    int mine, node;

    if (!MPIDI_ZC_global.transport.shared_memory ||
        MPID_Get_node_id(win->comm_ptr, win->comm_ptr->rank, &mine) != MPI_SUCCESS) {
        return false;
    }
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        if (MPID_Get_node_id(win->comm_ptr, rank, &node) != MPI_SUCCESS || node != mine) {
            return false;
        }
    }
    return true;
}

bool MPIDI_ZC_atomics_wanted(MPIR_Win * win)
{
    const MPIDI_ZC_params_t *params = &MPIDI_ZC_global.params;
    const bool leaves = params->detach && !MPIDI_ZC_global.transport.shared_memory;

    if (!params->atomics || leaves || !promised(win)) {
        return false;
    }
    /* UCX 1.13 ends this process by an assertion when one dies that it awaits the answer of to an atomic
     * operation (params->memh == (void*)0xdeadbeef). Over shared memory there is no answer. */
    return is_within_host(win) ||
        (params->far_atomics && !MPIDI_ZC_members_of_several_worlds(win));
}

/* Returns the bytes of an integer that UCX can work on, or 0. */
static unsigned width_of(MPI_Datatype type)
{
    MPI_Datatype basic;
    MPI_Aint size;

    MPIR_Datatype_get_basic_type(type, basic);
    switch (basic) {
        case MPI_INT:
        case MPI_UNSIGNED:
        case MPI_LONG:
        case MPI_UNSIGNED_LONG:
        case MPI_LONG_LONG:
        case MPI_UNSIGNED_LONG_LONG:
        case MPI_INT32_T:
        case MPI_UINT32_T:
        case MPI_INT64_T:
        case MPI_UINT64_T:
        case MPI_AINT:
        case MPI_OFFSET:
        case MPI_COUNT:
            MPIR_Datatype_get_size_macro(basic, size);
            return size == 4 || size == 8 ? (unsigned) size : 0;
        default:
            return 0;
    }
}

static bool operation_of(MPI_Op op, ucp_atomic_op_t * code)
{
    switch (op) {
        case MPI_SUM:
        case MPI_NO_OP:        /* adds nothing */
            *code = UCP_ATOMIC_OP_ADD;
            return true;
        case MPI_BAND:
            *code = UCP_ATOMIC_OP_AND;
            return true;
        case MPI_BOR:
            *code = UCP_ATOMIC_OP_OR;
            return true;
        case MPI_BXOR:
            *code = UCP_ATOMIC_OP_XOR;
            return true;
        case MPI_REPLACE:
            *code = UCP_ATOMIC_OP_SWAP;
            return true;
        case MPI_OP_NULL:
            *code = UCP_ATOMIC_OP_CSWAP;
            return true;
        default:
            return false;
    }
}

/* Finds the elements of a contiguous buffer. False: they are not @bytes long. */
static bool find(const void *buffer, int count, MPI_Datatype type, size_t bytes, char **found)
{
    int contiguous;
    MPI_Aint size, lb;

    MPIDI_Datatype_check_contig_size_lb(type, count, contiguous, size, lb);
    *found = MPIR_get_contig_ptr(buffer, lb);
    return contiguous && (size_t) size == bytes && !MPIR_GPU_query_pointer_is_dev(buffer);
}

/* An accumulate in terms of UCX. */
typedef struct {
    MPIDI_ZC_target_t *at;      /* NULL: it cannot be reached */
    uint64_t remote;
    ucp_atomic_op_t code;
    unsigned width;
    MPI_Aint bytes;
    const char *origin;         /* NULL: nothing is added */
    const void *compare;
    char *result;               /* NULL: nothing is fetched */
} atomic_t;

static bool translate(const MPIDI_ZC_accumulate_t * acc, MPIR_Win * win, atomic_t * a)
{
    int contiguous;
    MPI_Aint lb;
    char *origin = NULL, *result = NULL;

    a->width = width_of(acc->target_type);
    if (acc->target_rank == MPI_PROC_NULL || a->width == 0 || !operation_of(acc->op, &a->code)) {
        return false;
    }
    MPIDI_Datatype_check_contig_size_lb(acc->target_type, acc->target_count, contiguous, a->bytes,
                                        lb);
    const MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[acc->target_rank];
    a->remote = target->base + acc->target_disp * target->disp_unit + lb;
    if (!contiguous || a->bytes == 0 || a->bytes > MAX_BYTES ||
        a->remote % a->width != 0 ||
        (acc->op != MPI_NO_OP &&
         !find(acc->origin, acc->origin_count, acc->origin_type, a->bytes, &origin)) ||
        (acc->result &&
         !find(acc->result, acc->result_count, acc->result_type, a->bytes, &result))) {
        return false;
    }
    a->origin = origin;
    a->compare = acc->compare;
    a->result = result;
    a->at = MPIDI_ZC_win_target(win, acc->target_rank);
    return a->at || target->lost;
}

/* Begins one operation for each element. @req has to be completed once for each; after an error it
 * is completed for those that were not begun. */
static int start(const atomic_t * a, MPIR_Request * req)
{
    static const uint64_t nothing;
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint i;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .datatype = ucp_dt_make_contig(a->width),
        .cb.send = MPIDI_ZC_rma_done,
        .user_data = req,
    };

    if (a->result || a->code == UCP_ATOMIC_OP_SWAP) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    }
    for (i = 0; i < a->bytes; i += a->width) {
        const void *operand = a->origin ? a->origin + i : (const void *) &nothing;
        if (a->compare) {
            /* UCX wants the new value where it is going to put the old one. */
            memcpy(a->result + i, operand, a->width);
            operand = a->compare;
        }
        param.reply_buffer = a->result ? a->result + i : (void *) &discarded;
        ucs_status_ptr_t request = ucp_atomic_op_nbx(a->at->ep, a->code, operand, 1,
                                                     a->remote + i, a->at->rkey, &param);
        MPIDI_ZC_CHECK_POINTER(request, "ucp_atomic_op_nbx");
        if (!request && req) {
            MPID_Request_complete(req);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    for (; req && i < a->bytes; i += a->width) {
        MPID_Request_complete(req);
    }
    goto fn_exit;
}

static int start_all(const MPIDI_ZC_accumulate_t * acc, const atomic_t * a, MPIR_Win * win,
                     MPIR_Request ** req_p)
{
    int mpi_errno = MPI_SUCCESS;
    const int vci = MPIDI_WIN(win, am_vci);
    MPIR_Request *req = NULL;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    /* since it was looked up */
    MPIR_ERR_CHKANDSTMT(MPIDIG_win_has_lost(win, acc->target_rank), mpi_errno, MPIDI_ZC_LOST,
                        goto fn_fail, "**zc_gone");
    /* As an active message it would meet operations of UCX by other members. */
    MPIR_ERR_CHKANDJUMP2(!a->at, mpi_errno, MPI_ERR_OTHER, "**zc_ucx", "**zc_ucx %s %s",
                         "ucp_ep_rkey_unpack", "the target's memory is out of reach");
    MPIDIG_RMA_OP_CHECK_SYNC(acc->target_rank, win);
    if (req_p) {
        req = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__RMA, vci, 2);
        MPIR_ERR_CHKANDSTMT(req == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
        MPIDI_ZC_outstanding_init_native(req);
        for (MPI_Aint more = a->bytes / a->width; more > 1; more--) {
            MPIR_cc_inc(req->cc_ptr);
        }
        *req_p = req;
    }
    a->at->started++;
    MPIDI_ZC_WIN(win).started++;
    mpi_errno = start(a, req);
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_VCI(vci).stats.atomics += a->bytes / a->width;
    if (req && unlikely(MPIDIG_WIN(win, members)) && !MPIR_Request_is_complete(req)) {
        MPIDI_ZC_outstanding_native(win, acc->target_rank, req);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return mpi_errno;
  fn_fail:
    if (req) {
        *req_p = NULL;
        MPIDI_CH4_REQUEST_FREE(req);
    }
    goto fn_exit;
}

bool MPIDI_ZC_atomic_try(const MPIDI_ZC_accumulate_t * acc, MPIR_Win * win, MPIR_Request ** req,
                         int *mpi_errno)
{
    atomic_t atomic;

    if (!translate(acc, win, &atomic)) {
        return false;
    }
    *mpi_errno = start_all(acc, &atomic, win, req);
    return true;
}

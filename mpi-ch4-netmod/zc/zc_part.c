/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpidig_part.h"
#include "zc_impl.h"
#include "zc_foreign.h"
#include "zc_part.h"
#include "zc_noinline.h"

static bool is_send(const MPIR_Request * request)
{
    return request->kind == MPIR_REQUEST_KIND__PART_SEND;
}

/* Returns the connection to the peer of @request. NULL: it is of this world. */
static struct MPIDI_ZC_foreign *foreign_of(MPIR_Request * request)
{
    const int peer = is_send(request) ? MPIDI_PART_REQUEST(request, u.send.dest) :
        MPIDI_PART_REQUEST(request, u.recv.source);

    return MPIDI_ZC_AV(MPIDIU_comm_rank_to_av(request->comm, peer)).foreign;
}

/* ---- matching ---- */

/* Takes @request out of the receives that wait for their match, whose reference it has. */
static void withdraw(MPIR_Request * request)
{
    MPIDIG_take_request(request, &MPIDI_global.part_posted_list, MPIDIG_PART);
    MPIR_Request_free_unsafe(request);
}

void MPIDI_ZC_part_withdraw(const struct MPIDI_ZC_foreign *foreign)
{
    MPIR_Request *request, *next;

    DL_FOREACH_SAFE(MPIDI_global.part_posted_list, request, next) {
        if (foreign_of(request) == foreign) {
            withdraw(request);
        }
    }
}

int MPIDI_ZC_part_init_arrived(uint64_t sender, void *am_hdr)
{
    MPIDIG_part_send_init_msg_t init;
    memcpy(&init, am_hdr, sizeof(init));
    const bool posted = MPIDIG_rreq_find(init.src_rank, init.tag, init.context_id,
                                         &MPIDI_global.part_posted_list, MPIDIG_PART);
    const int mpi_errno = MPIDIG_global.target_msg_cbs[MPIDIG_PART_SEND_INIT] (am_hdr, NULL, 0, 0,
                                                                               NULL);
    if (!posted && likely(mpi_errno == MPI_SUCCESS)) {
        MPIDI_ZC_PART_REQUEST(MPIDI_global.part_unexp_list->prev).sender = sender;
    }
    if (unlikely(sender & MPIDI_ZC_FOREIGN)) {
        MPIDI_ZC_foreign_settle_sender(sender);
    }
    return mpi_errno;
}

/* Is @sender the peer with @av? */
static bool is_of(const MPIDI_av_entry_t * av, uint64_t sender)
{
    const struct MPIDI_ZC_foreign *foreign = MPIDI_ZC_AV(av).foreign;

    return foreign ? MPIDI_ZC_foreign_is_to_sender(foreign, sender) : !(sender & MPIDI_ZC_FOREIGN);
}

/* A SEND_INIT of a process that has died, or parted, may have waited in vain. The identifier of its
 * communicator may be in use again, by which a receive from the peer with @av would match it. */
static void drop_stale(const MPIDI_av_entry_t * av, int rank, int tag, MPIR_Context_id_t context)
{
    MPIR_Request *request, *next;

    DL_FOREACH_SAFE(MPIDI_global.part_unexp_list, request, next) {
        if (MPIDIG_match_request(rank, tag, context, request, MPIDIG_PART) &&
            !is_of(av, MPIDI_ZC_PART_REQUEST(request).sender)) {
            MPIDIG_take_request(request, &MPIDI_global.part_unexp_list, MPIDIG_PART);
            MPIDI_CH4_REQUEST_FREE(request);
        }
    }
}

int MPIDI_ZC_mpi_psend_init(const void *buf, int partitions, MPI_Aint count,
                            MPI_Datatype datatype, int rank, int tag, MPIR_Comm * comm,
                            MPIR_Info * info, MPIDI_av_entry_t * av, MPIR_Request ** req_p)
{
    return MPIDIG_mpi_psend_init(buf, partitions, count, datatype, rank, tag, comm, info, req_p);
}

int MPIDI_ZC_mpi_precv_init(void *buf, int partitions, MPI_Aint count, MPI_Datatype datatype,
                            int rank, int tag, MPIR_Comm * comm, MPIR_Info * info,
                            MPIDI_av_entry_t * av, MPIR_Request ** req_p)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    drop_stale(av, rank, tag, comm->recvcontext_id);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    mpi_errno = MPIDIG_mpi_precv_init(buf, partitions, count, datatype, rank, tag, comm, info, req_p);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDI_ZC_foreign_settle(MPIDI_ZC_AV(av).foreign);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
}

/* ---- from the start on ---- */

void MPIDI_ZC_part_end(MPIR_Request * request)
{
    if (MPIR_Request_is_complete(request)) {
        return;
    }
    if (is_send(request)) {
        /* There is nobody to send to, even if a CTS came before the start. */
        MPIR_cc_set(&MPIDIG_PART_REQUEST(request, u.send).ready_cntr,
                    request->u.part.partitions + 1);
    } else {
        request->status.MPI_SOURCE = MPIDI_PART_REQUEST(request, u.recv.source);
        request->status.MPI_TAG = MPIDI_PART_REQUEST(request, u.recv.tag);
        MPIR_STATUS_SET_COUNT(request->status, 0);
    }
    request->status.MPI_ERROR = MPIDI_ZC_LOST;
    MPIR_cc_dec(request->cc_ptr);
}

/* Does @request wait for a message of its peer? A receive does; a send whose CTS has come before it
 * was started does not. */
static bool waits_for_peer(MPIR_Request * request)
{
    return !is_send(request) || MPIR_cc_get(MPIDIG_PART_REQUEST(request, u.send).ready_cntr) >
        request->u.part.partitions;
}

/* Does @request, which is about to be started, send something at once? */
static bool needs_connection(MPIR_Request * request)
{
    return is_send(request) || MPIDIG_PART_REQUEST(request, peer_req_ptr);
}

int MPIDI_ZC_part_start(MPIR_Request * request)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    struct MPIDI_ZC_foreign *foreign = foreign_of(request);
    if (unlikely(MPIDI_ZC_foreign_has_failed(foreign)) && needs_connection(request)) {
        MPIDI_ZC_PART_REQUEST(request).waiting.at = NULL;
        MPIR_cc_set(request->cc_ptr, 1);
        MPIR_Part_request_activate(request);
        MPIDI_ZC_part_end(request);
    } else {
        MPIDI_ZC_foreign_await_part(waits_for_peer(request) ? foreign : NULL, request);
        mpi_errno = MPIDIG_part_start_unsafe(request);
        if (unlikely(mpi_errno)) {
            MPIDI_ZC_foreign_part_answered(request);
        }
        MPIDI_ZC_foreign_settle(foreign);
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
}

void MPIDI_ZC_part_answered(MPIR_Request * request)
{
    /* A CTS may come before its send is started for the first time. */
    if (MPIR_Part_request_is_active(request)) {
        MPIDI_ZC_foreign_part_answered(request);
    }
}

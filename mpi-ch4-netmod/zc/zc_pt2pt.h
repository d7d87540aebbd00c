/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PT2PT_H_INCLUDED
#define ZC_PT2PT_H_INCLUDED

/* Point-to-point communication uses the requests and the queue of posted receives of CH4's active
 * messages (MPIDIG). Eager sends have a path of their own, and unexpected messages a queue of their
 * own (zc_match.h). A communicator's messages go from the VCI that it has at the sender to the
 * receiver's VCI of the same number. */

#include "zc_impl.h"
#include "zc_eager.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_match.h"
#include "zc_traffic.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_send_vci(MPIR_Comm * comm, int rank, int tag)
{
    return MPIDI_get_vci(SRC_VCI_FROM_SENDER, comm, comm->rank, rank, tag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_recv_vci(MPIR_Comm * comm, int rank, int tag)
{
    return MPIDI_get_vci(DST_VCI_FROM_RECVER, comm, rank, comm->rank, tag);
}

/* ---- sending ---- */

/* Sends a message as an active message of CH4. @paid: it need not be announced for lack of credit. */
static __attribute__ ((noinline)) int MPIDI_ZC_isend_by_ch4(const void *buf, MPI_Aint count,
                                                       MPI_Datatype datatype, int rank, int tag,
                                                       MPIR_Comm * comm, int context_offset,
                                                       MPIDI_av_entry_t * addr, uint8_t flags,
                                                       MPIR_Errflag_t errflag, int vci, bool paid,
                                                       MPIR_Request ** req_p)
{
    const MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(addr, vci);

    MPIDI_ZC_VCI(vci).announce_next = !paid;
    const int mpi_errno = MPIDIG_isend_impl(buf, count, datatype, rank, tag, comm, context_offset,
                                            addr, flags, vci, vci, req_p, errflag);
    MPIDI_ZC_VCI(vci).announce_next = false;
    if (unlikely(!paid) && mpi_errno == MPI_SUCCESS) {
        MPIDI_ZC_VCI(vci).nr_held++;
        if (peer->self & MPIDI_ZC_FOREIGN) {
            MPIDI_ZC_foreign_await_answer(peer->foreign, *req_p);
            MPIDI_ZC_foreign_settle(peer->foreign);
        }
    } else if (unlikely(flags & MPIDIG_AM_SEND_FLAGS_SYNC) && mpi_errno == MPI_SUCCESS &&
               peer->self & MPIDI_ZC_FOREIGN) {
        MPIDI_ZC_foreign_await_ack(peer->foreign, *req_p);
        MPIDI_ZC_foreign_settle(peer->foreign);
    }
    return mpi_errno;
}

/* Sends a message of @bytes on @lane, where it is going to be parked: zc_path.h. */
static __attribute__ ((noinline)) int MPIDI_ZC_isend_parked(const void *buf, MPI_Aint count,
                                                        MPI_Datatype datatype, int rank, int tag,
                                                        MPIR_Comm * comm, int context_offset,
                                                        MPIDI_av_entry_t * addr, uint8_t flags,
                                                        MPIR_Errflag_t errflag, int vci,
                                                        MPIDI_ZC_lane_t * lane, size_t bytes,
                                                        MPIR_Request ** req_p)
{
    const int32_t cost = MPIDI_ZC_flow_cost(MPIDI_ZC_flow_is_eager(lane, bytes), bytes);
    const bool paid = MPIDI_ZC_flow_pay(lane, cost);
    const int mpi_errno = MPIDI_ZC_isend_by_ch4(buf, count, datatype, rank, tag, comm,
                                                context_offset, addr, flags, errflag, vci, paid,
                                                req_p);

    if (unlikely(mpi_errno) && paid) {
        MPIDI_ZC_flow_refund(lane, cost);
    }
    return mpi_errno;
}

/* Sends a message. @flags: MPIDIG_AM_SEND_FLAGS_.... @may_wait: as for MPIDI_ZC_send_eager(). */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_isend(const void *buf, MPI_Aint count, MPI_Datatype datatype,
                                            int rank, int tag, MPIR_Comm * comm,
                                            int context_offset, MPIDI_av_entry_t * addr,
                                            uint8_t flags, MPIR_Errflag_t errflag, bool may_wait,
                                            MPIR_Request ** req_p)
{
    int mpi_errno = MPI_SUCCESS;
    const int vci = MPIDI_ZC_send_vci(comm, rank, tag);
    int contiguous;
    MPI_Aint bytes, true_lb;
    MPIR_Datatype *type;

    MPIDI_Datatype_get_info(count, datatype, contiguous, bytes, type, true_lb);

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(addr, vci);
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci);
    if (unlikely(MPIDI_ZC_traffic != NULL) && !(peer->self & MPIDI_ZC_FOREIGN)) {
        MPIDI_ZC_traffic_add(MPIDI_ZC_world_rank_of(peer), bytes);
    }
    if (unlikely(!lane->ep)) {
        mpi_errno = MPIDI_ZC_lane_connect(peer, lane, vci);
        MPIR_ERR_CHECK(mpi_errno);
        if (unlikely(!lane->ep)) {
            mpi_errno = MPIDI_ZC_isend_parked(buf, count, datatype, rank, tag, comm,
                                              context_offset, addr, flags, errflag, vci, lane,
                                              bytes, req_p);
            goto fn_exit;
        }
    }

    const bool eager = MPIDI_ZC_flow_is_eager(lane, bytes);
    const int32_t cost = MPIDI_ZC_flow_cost(eager, bytes);
    const bool paid = MPIDI_ZC_flow_pay(lane, cost);
    if (likely(eager && paid && contiguous && flags == MPIDIG_AM_SEND_FLAGS_NONE && !*req_p)) {
        mpi_errno = MPIDI_ZC_send_eager(MPIR_get_contig_ptr(buf, true_lb), bytes, tag, comm,
                                        context_offset, peer, lane, vci, errflag, may_wait, req_p);
    } else {
        mpi_errno = MPIDI_ZC_isend_by_ch4(buf, count, datatype, rank, tag, comm, context_offset,
                                          addr, flags, errflag, vci, paid, req_p);
    }
    if (unlikely(mpi_errno) && paid) {
        MPIDI_ZC_flow_refund(lane, cost);
    }
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Sends a message of the application, which may have to wait until there are requests. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_user_isend(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, uint8_t flags,
                                                 bool may_wait, MPIR_Request ** req_p)
{
    const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(MPIDI_ZC_send_vci(comm, rank, tag));

    if (unlikely(__atomic_load_n(&vci->nr_held, __ATOMIC_RELAXED) >= MPIDI_ZC_HELD_MAX)) {
        const int mpi_errno = MPIDI_ZC_flow_await_requests(vci);
        if (mpi_errno) {
            return mpi_errno;
        }
    }
    return MPIDI_ZC_isend(buf, count, datatype, rank, tag, comm, context_offset, addr, flags,
                          MPIR_ERR_NONE, may_wait, req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_isend(const void *buf, MPI_Aint count,
                                                MPI_Datatype datatype, int rank, int tag,
                                                MPIR_Comm * comm, int context_offset,
                                                MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    return MPIDI_ZC_user_isend(buf, count, datatype, rank, tag, comm, context_offset, addr,
                               MPIDIG_AM_SEND_FLAGS_NONE, true, req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_issend(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    return MPIDI_ZC_user_isend(buf, count, datatype, rank, tag, comm, context_offset, addr,
                               MPIDIG_AM_SEND_FLAGS_SYNC, false, req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_isend_coll(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p,
                                                 MPIR_Errflag_t * errflag)
{
    return MPIDI_ZC_isend(buf, count, datatype, rank, tag, comm, context_offset, addr,
                          MPIDIG_AM_SEND_FLAGS_NONE, *errflag, false, req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_send(MPIR_Request * sreq)
{
    return MPIDIG_mpi_cancel_send(sreq);
}

/* ---- receiving ---- */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_irecv(void *buf, MPI_Aint count, MPI_Datatype datatype,
                                                int rank, int tag, MPIR_Comm * comm,
                                                int context_offset, MPIDI_av_entry_t * addr,
                                                MPIR_Request ** req_p, MPIR_Request * partner)
{
    int mpi_errno = MPI_SUCCESS;
    const int vci = MPIDI_ZC_recv_vci(comm, rank, tag);
    MPIDI_ZC_vci_t *own = &MPIDI_ZC_VCI(vci);

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    MPIDI_ZC_message_t *message = MPIDI_ZC_match_find(own, rank, tag,
                                                      comm->recvcontext_id + context_offset);
    if (unlikely(message)) {
        mpi_errno = MPIDI_ZC_match_receive(own, message, buf, count, datatype, comm, req_p);
    } else {
        mpi_errno = MPIDIG_do_irecv(buf, count, datatype, rank, tag, comm, context_offset, vci,
                                    req_p, 1, 0);
        if (unlikely(own->has_dead) && mpi_errno == MPI_SUCCESS) {
            MPIDI_ZC_match_end_if_lost(own, *req_p);
        }
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    if (MPIDU_device_gate.enabled) {
        MPI_Aint bytes;
        MPIDI_Datatype_check_size(datatype, count, bytes);
        if (unlikely((size_t) bytes >= MPIDI_ZC_global.params.min_threshold) &&
            (!addr || (size_t) bytes >= MPIDI_ZC_lane_threshold(&MPIDI_ZC_AV(addr).lane))) {
            MPIDI_ZC_landing_thread_wanted();
        }
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_imrecv(void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, MPIR_Request * message)
{
    return MPIDI_ZC_match_mrecv(buf, count, datatype, message);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_recv(MPIR_Request * rreq)
{
    return MPIDIG_mpi_cancel_recv(rreq);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_iprobe(int source, int tag, MPIR_Comm * comm,
                                                 int context_offset, MPIDI_av_entry_t * addr,
                                                 int *flag, MPI_Status * status)
{
    return MPIDI_ZC_match_probe(&MPIDI_ZC_VCI(MPIDI_ZC_recv_vci(comm, source, tag)), source, tag,
                                comm->recvcontext_id + context_offset, comm, flag, status);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_improbe(int source, int tag, MPIR_Comm * comm,
                                                  int context_offset, MPIDI_av_entry_t * addr,
                                                  int *flag, MPIR_Request ** message,
                                                  MPI_Status * status)
{
    return MPIDI_ZC_match_mprobe(&MPIDI_ZC_VCI(MPIDI_ZC_recv_vci(comm, source, tag)), source, tag,
                                 comm->recvcontext_id + context_offset, comm, flag, message,
                                 status);
}

#endif /* ZC_PT2PT_H_INCLUDED */

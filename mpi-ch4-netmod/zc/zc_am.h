/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AM_H_INCLUDED
#define ZC_AM_H_INCLUDED

/* This file sends CH4's active messages over UCP.
 *
 * The header and the data of a short message travel together. From the lane's threshold on, only
 * the header travels (UCP's RTS), and the receiver fetches the data when it knows their place: at
 * once into the user buffer if the receive is posted, at once into a landing buffer if it is not.
 *
 * All functions are called inside the lock of src_vci, or by the landing thread inside the gate.
 * dst_vci is the same number: MPIDI_ZC_lane_t.
 *
 * Only func_table.c includes this file. With several netmods in one library, the names below are
 * those of the function table everywhere else. */

#include "mpidig_rma_callbacks.h"
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_foreign.h"
#include "zc_landing_thread.h"
#include "zc_match.h"
#include "zc_outstanding.h"
#include "zc_parked.h"
#include "zc_peer.h"

MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_am_fill_header(char *out, const MPIDI_ZC_addr_t * peer,
                                                      MPIDI_ZC_lane_t * lane, int handler_id,
                                                      const void *am_hdr, MPI_Aint am_hdr_sz,
                                                      MPI_Aint data_sz,
                                                      int src_vci, int dst_vci)
{
    MPIDI_ZC_am_header_t header = {
        .sequence = lane->next_send++,
        .sender = peer->self,
        .handler_id = handler_id,
        .src_vci = src_vci,
        .dst_vci = dst_vci,
        .data_size = data_sz,
    };
    memcpy(out, &header, sizeof(header));
    memcpy(out + sizeof(header), am_hdr, am_hdr_sz);
}

/* Takes the number of a message back that UCP has refused, so that the next message gets it.
 * (Messages are numbered before they are sent, since UCP delivers what a process sends to itself
 * while it sends, and the receiver may reply.) */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_am_unnumber(MPIDI_ZC_lane_t * lane, ucs_status_ptr_t request)
{
    lane->next_send -= unlikely(UCS_PTR_IS_ERR(request));
}

/* Takes @sreq, which has not been sent, out of CH4's counts if it is of a one-sided operation. CH4
 * counts those before they begin, and the end of the epoch must not wait for this one. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_rma_unsent(int handler_id, MPIR_Request * sreq)
{
    if (MPIDI_ZC_outstanding_begins(handler_id)) {
        MPIDIG_rma_op_unsent(sreq, handler_id);
    }
}

/* Is the message the data that a receiver has asked for before the match? Then it travels with its
 * header, whatever the sender's threshold is: the receiver has made room for it, and has no request
 * to fetch it with. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_am_is_asked(int handler_id, const void *am_hdr)
{
    if (likely(handler_id != MPIDIG_SEND_DATA)) {
        return false;
    }
    const MPIDIG_send_data_msg_t *answer = am_hdr;
    return MPIDI_ZC_match_asked((uint64_t) (uintptr_t) answer->rreq_ptr);
}

/* Finds @count elements at @data: @bytes in all, at @payload, or to be packed from the stream of
 * @am by UCP if @payload is NULL. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_am_find_data(MPIDI_ZC_vci_t * vci, MPIDI_ZC_am_request_t * am,
                                                   const void *data, MPI_Aint count,
                                                   MPI_Datatype datatype, MPI_Aint * bytes,
                                                   const void **payload)
{
    int mpi_errno = MPI_SUCCESS;
    int dt_contig;
    MPI_Aint dt_true_lb;
    MPIR_Datatype *dt_ptr;

    MPIDI_Datatype_get_info(count, datatype, dt_contig, *bytes, dt_ptr, dt_true_lb);
    *payload = NULL;
    if (*bytes > 0 && likely(dt_contig)) {
        *payload = MPIR_get_contig_ptr(data, dt_true_lb);
    } else if (*bytes > 0) {
        mpi_errno = MPIDI_ZC_stream_send(vci, data, count, datatype, *bytes, &am->stream);
        MPIR_ERR_CHECK(mpi_errno);
        *payload = MPIDI_ZC_stream_whole(am->stream);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Hands the message of @sreq, whose header is complete, to UCP. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_am_post(MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane,
                                              int vci, MPIR_Request * sreq, size_t header_length,
                                              const void *payload, size_t bytes)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(sreq);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = am->announced ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
        .cb.send = MPIDI_ZC_am_send_done,
        .user_data = sreq,
    };
    size_t units = bytes;

    if (unlikely(am->stream && !payload)) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = MPIDI_ZC_global.stream_type;
        payload = am->stream;
        units = 1;
    }
    ucp_ep_h ep = lane->ep;     /* NULL: it is parked, and is sent over that later */
    if (am->announced) {
        if (likely(ep) && likely(!MPIDI_ZC_lane_shares(lane, bytes))) {
            ep = MPIDI_ZC_lane_bulk_endpoint(peer, lane, vci);
        }
        ((MPIDI_ZC_am_header_t *) am->header)->shares = ep == lane->ep;
        if (unlikely(MPIDI_ZC_global.paths)) {
            am->path_to = MPIDI_ZC_path_to(peer);
            MPIDI_ZC_path_announces(am->path_to, vci);
        }
    }
    ucs_status_ptr_t request = MPIDI_ZC_send_or_park(peer, vci, ep, MPIDI_ZC_AM_MESSAGE,
                                                     am->header, header_length, payload, units,
                                                     &param);
    MPIDI_ZC_am_unnumber(lane, request);
    if (unlikely(UCS_PTR_IS_ERR(request)) && peer->foreign) {
        MPIDI_ZC_foreign_refused(peer->foreign, UCS_PTR_STATUS(request));
    }
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");
    if (request == NULL) {
        MPIDI_ZC_am_sent(am);
        MPIDIG_global.origin_cbs[am->handler_id] (sreq);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_isend(int rank, MPIR_Comm * comm, int handler_id,
                                               const void *am_hdr, MPI_Aint am_hdr_sz,
                                               const void *data, MPI_Aint count,
                                               MPI_Datatype datatype, int src_vci, int dst_vci,
                                               MPIR_Request * sreq)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(sreq);
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(comm, rank), src_vci);
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, src_vci);
    const size_t header_length = sizeof(MPIDI_ZC_am_header_t) + am_hdr_sz;
    const void *payload;
    MPI_Aint data_sz;

    MPIR_FUNC_ENTER;

    /* what was announced for lack of credit has been asked for */
    if (unlikely(handler_id == MPIDIG_SEND_DATA)) {
        MPIDI_ZC_VCI(src_vci).nr_held--;
        if (peer->self & MPIDI_ZC_FOREIGN) {
            MPIDI_ZC_foreign_answered(sreq);
        }
    }

    /* It has been announced with the wish for an acknowledgement. (Otherwise MPIDI_ZC_isend() notes
     * that.) */
    const bool awaits_ack = unlikely(handler_id == MPIDIG_SEND_DATA) &&
        peer->self & MPIDI_ZC_FOREIGN && MPIR_cc_get(*sreq->cc_ptr) > 1;
    const bool is_operation = unlikely(peer->self & MPIDI_ZC_FOREIGN) &&
        MPIDI_ZC_outstanding_begins(handler_id);

    am->stream = NULL;
    am->header = NULL;
    am->announced = am->native = am->data_is_sent = am->lost = false;
    am->path_to = -1;
    MPIR_ERR_CHKANDSTMT(unlikely(is_operation) && MPIDI_ZC_foreign_is_dead(peer->foreign), mpi_errno,
                        MPIDI_ZC_LOST, goto fn_fail, "**zc_gone");
    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(src_vci));
    mpi_errno = MPIDI_ZC_lane_endpoint(peer, lane, src_vci);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_am_find_data(&MPIDI_ZC_VCI(src_vci), am, data, count, datatype, &data_sz,
                                      &payload);
    MPIR_ERR_CHECK(mpi_errno);

    if (likely(am_hdr_sz <= MPIDI_ZC_INLINE_AM_HEADER)) {
        am->header = am->header_inline;
    } else {
        am->header = MPL_malloc(header_length, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(!am->header, mpi_errno, MPI_ERR_OTHER, "**nomem");
    }
    MPIDI_ZC_am_fill_header(am->header, peer, lane, handler_id, am_hdr, am_hdr_sz, data_sz,
                            src_vci, dst_vci);
    am->handler_id = handler_id;
    am->vci = src_vci;
    am->announced = (size_t) data_sz >= MPIDI_ZC_lane_threshold(lane) &&
        !MPIDI_ZC_am_is_asked(handler_id, am_hdr);
    if (am->announced) {
        MPIDI_ZC_VCI(src_vci).nr_announced++;
        MPIDI_ZC_landing_thread_wanted();
    }

    MPIDI_ZC_channel_t *channel = NULL;
    if (am->announced && payload) {
        channel = MPIDI_ZC_channel_to(peer, lane, src_vci);
    }
    if (channel) {
        ucs_status_t status = MPIDI_ZC_channel_offer(channel, sreq, am->header, header_length,
                                                     payload, data_sz);
        lane->next_send -= unlikely(status != UCS_OK);
        if (unlikely(status != UCS_OK) && peer->foreign) {
            MPIDI_ZC_foreign_refused(peer->foreign, status);
        }
        MPIDI_ZC_CHECK_STATUS(status, "ucp_am_send_nbx");
    } else {
        mpi_errno = MPIDI_ZC_am_post(peer, lane, src_vci, sreq, header_length, payload, data_sz);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (unlikely(awaits_ack || is_operation)) {
        MPIDI_ZC_foreign_await_ack(peer->foreign, sreq);
    }

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    MPIDI_ZC_am_sent(am);
    MPIDI_ZC_rma_unsent(handler_id, sreq);
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_send_hdr(int rank, MPIR_Comm * comm, int handler_id,
                                                  const void *am_hdr, MPI_Aint am_hdr_sz,
                                                  int src_vci, int dst_vci)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(comm, rank), src_vci);
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, src_vci);

    MPIR_FUNC_ENTER;

    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(src_vci));
    mpi_errno = MPIDI_ZC_lane_endpoint(peer, lane, src_vci);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_am_send_header(peer, lane, src_vci, handler_id, am_hdr, am_hdr_sz);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Does no process wait for the reply to @peer, which could not be sent? One of another world may
 * have died. In MPI_Finalize its connection has been given up. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_reply_is_not_awaited(const MPIDI_ZC_addr_t * peer)
{
    return MPIDI_ZC_foreign_has_failed(peer->foreign) ||
        (MPIDI_ZC_global.closing && peer->self & MPIDI_ZC_FOREIGN);
}

/* Ends the job if a reply could not be sent. CH4 replies from within its handlers, most of which
 * have no caller to return an error to, and the process that waits for the reply would wait for
 * ever. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_replied(const MPIDI_ZC_addr_t * peer, int mpi_errno)
{
    if (unlikely(mpi_errno != MPI_SUCCESS)) {
        if (MPIDI_ZC_reply_is_not_awaited(peer)) {
            return MPI_SUCCESS;
        }
        char text[MPI_MAX_ERROR_STRING];
        MPIR_Err_get_string(mpi_errno, text, sizeof(text), NULL);
        MPID_Abort(NULL, mpi_errno, 1, text);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_isend_reply(MPIR_Comm * comm, int src_rank,
                                                     int handler_id, const void *am_hdr,
                                                     MPI_Aint am_hdr_sz, const void *data,
                                                     MPI_Aint count, MPI_Datatype datatype,
                                                     int src_vci, int dst_vci, MPIR_Request * sreq)
{
    const MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(comm, src_rank),
                                                   src_vci);
    const int mpi_errno = MPIDI_NM_am_isend(src_rank, comm, handler_id, am_hdr, am_hdr_sz, data,
                                            count, datatype, src_vci, dst_vci, sreq);

    if (unlikely(mpi_errno) && MPIDI_ZC_reply_is_not_awaited(peer)) {
        sreq->status.MPI_ERROR = MPIDI_ZC_LOST;
        /* The acknowledgement of a synchronous send does not come either. A request of a one-sided
         * operation counts its handler, too, which goes on with it. */
        for (int more = MPIR_cc_get(*sreq->cc_ptr);
             sreq->kind == MPIR_REQUEST_KIND__SEND && more > 1; more--) {
            MPID_Request_complete(sreq);
        }
        MPIDIG_global.origin_cbs[handler_id] (sreq);
    }
    return MPIDI_ZC_replied(peer, mpi_errno);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_send_hdr_reply(MPIR_Comm * comm, int src_rank,
                                                        int handler_id, const void *am_hdr,
                                                        MPI_Aint am_hdr_sz, int src_vci,
                                                        int dst_vci)
{
    const MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(comm, src_rank),
                                                   src_vci);

    if (unlikely(peer->self & MPIDI_ZC_FOREIGN) && handler_id == MPIDIG_SEND_CTS) {
        /* When CH4 is done with the receive, zc_match.c checks whether the peer has failed. */
        const MPIDIG_send_cts_msg_t *question = am_hdr;
        MPIDI_ZC_foreign_await_answer(peer->foreign, question->rreq_ptr);
    } else if (unlikely(peer->self & MPIDI_ZC_FOREIGN) && MPIDI_ZC_outstanding_asks(handler_id)) {
        const MPIDIG_put_dt_ack_msg_t *question = am_hdr;
        if (MPIDI_ZC_foreign_is_dead(peer->foreign)) {
            MPIDIG_rma_data_lost(question->target_preq_ptr, false);
            return MPI_SUCCESS;
        }
        MPIDI_ZC_foreign_await_data(peer->foreign, question->target_preq_ptr);
    }
    return MPIDI_ZC_replied(peer, MPIDI_NM_am_send_hdr(src_rank, comm, handler_id, am_hdr,
                                                       am_hdr_sz, src_vci, dst_vci));
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_hdr_max_sz(void)
{
    return MPIDI_ZC_global.max_am_header;
}

/* CH4 sizes its cells for unexpected eager data by these two. The netmod keeps such data itself
 * (zc_match.h), so any value up to a cell's size is valid. */
MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_eager_limit(void)
{
    return MPIR_CVAR_CH4_AM_PACK_BUFFER_SIZE;
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_eager_buf_limit(void)
{
    return MPIR_CVAR_CH4_AM_PACK_BUFFER_SIZE;
}

/* UCP, not CH4, chooses between eager and rendezvous. But a message without credit is announced by
 * CH4 (zc_flow.h). */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NM_am_check_eager(MPI_Aint am_hdr_sz, MPI_Aint data_sz,
                                                      const void *data, MPI_Aint count,
                                                      MPI_Datatype datatype, MPIR_Request * sreq)
{
    return !MPIDI_ZC_VCI(MPIDI_Request_get_vci(sreq)).announce_next;
}

/* CH4 has no unexpected message whose data it could copy: zc_match.h. */
MPL_STATIC_INLINE_PREFIX MPIDIG_recv_data_copy_cb MPIDI_NM_am_get_data_copy_cb(uint32_t attr)
{
    return NULL;
}

#endif /* ZC_AM_H_INCLUDED */

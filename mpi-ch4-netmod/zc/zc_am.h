/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AM_H_INCLUDED
#define ZC_AM_H_INCLUDED

/* The sending side of CH4's active messages over UCP.
 *
 * Short messages go eagerly: header and data travel together. From the
 * lane's threshold on, only the header travels (UCP's RTS) and the receiver
 * fetches the data when it knows where to: at once into the user buffer if the
 * receive is posted, at once into a landing buffer if it is not.
 *
 * All functions are called inside the lock of src_vci, or by the landing thread inside
 * the gate. dst_vci is the same number: MPIDI_ZC_lane_t.
 *
 * Only func_table.c includes this file: with several netmods in one library the
 * names below are those of the function table everywhere else. */

#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_landing_thread.h"
#include "zc_peer.h"

MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_am_fill_header(char *out, const MPIDI_ZC_addr_t * peer,
                                                      MPIDI_ZC_lane_t * lane, int handler_id, const void *am_hdr,
                                                      MPI_Aint am_hdr_sz, MPI_Aint data_sz,
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

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_isend(int rank, MPIR_Comm * comm, int handler_id,
                                               const void *am_hdr, MPI_Aint am_hdr_sz,
                                               const void *data, MPI_Aint count,
                                               MPI_Datatype datatype, int src_vci, int dst_vci,
                                               MPIR_Request * sreq)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(sreq);
    MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(MPIDIU_comm_rank_to_av(comm, rank));
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, src_vci);
    const size_t header_length = sizeof(MPIDI_ZC_am_header_t) + am_hdr_sz;

    MPIR_FUNC_ENTER;

    int dt_contig;
    MPI_Aint data_sz, dt_true_lb;
    MPIR_Datatype *dt_ptr;
    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);

    const void *payload = NULL;
    am->pack_buffer = NULL;
    am->header = NULL;
    am->announced = false;
    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(src_vci));
    mpi_errno = MPIDI_ZC_lane_endpoint(peer, lane, src_vci);
    MPIR_ERR_CHECK(mpi_errno);
    if (data_sz > 0 && likely(dt_contig)) {
        payload = MPIR_get_contig_ptr(data, dt_true_lb);
    } else if (data_sz > 0) {
        MPI_Aint packed;
        am->pack_buffer = MPL_malloc(data_sz, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(!am->pack_buffer, mpi_errno, MPI_ERR_OTHER, "**nomem");
        mpi_errno = MPIR_Typerep_pack(data, count, datatype, 0, am->pack_buffer, data_sz, &packed);
        MPIR_ERR_CHECK(mpi_errno);
        MPIR_Assert(packed == data_sz);
        payload = am->pack_buffer;
    }

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
    am->announced = (size_t) data_sz >= MPIDI_ZC_lane_threshold(lane);
    if (am->announced) {
        MPIDI_ZC_VCI(src_vci).nr_announced++;
        MPIDI_ZC_landing_thread_wanted();
    }

    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = am->announced ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
        .cb.send = MPIDI_ZC_am_send_done,
        .user_data = sreq,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_MESSAGE, am->header,
                                               header_length, payload, data_sz, &param);
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");
    if (request == NULL) {
        MPIDI_ZC_am_sent(am);
        MPIDIG_global.origin_cbs[handler_id] (sreq);
    }

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    MPIDI_ZC_am_sent(am);
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_send_hdr(int rank, MPIR_Comm * comm, int handler_id,
                                                  const void *am_hdr, MPI_Aint am_hdr_sz,
                                                  int src_vci, int dst_vci)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(MPIDIU_comm_rank_to_av(comm, rank));
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, src_vci);
    const size_t header_length = sizeof(MPIDI_ZC_am_header_t) + am_hdr_sz;

    MPIR_FUNC_ENTER;

    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(src_vci));
    mpi_errno = MPIDI_ZC_lane_endpoint(peer, lane, src_vci);
    MPIR_ERR_CHECK(mpi_errno);

    char *header = MPL_malloc(header_length, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!header, mpi_errno, MPI_ERR_OTHER, "**nomem");
    MPIDI_ZC_am_fill_header(header, peer, lane, handler_id, am_hdr, am_hdr_sz, 0, src_vci,
                            dst_vci);

    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = MPIDI_ZC_am_header_done,
        .user_data = header,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_MESSAGE, header,
                                               header_length, NULL, 0, &param);
    if (request == NULL || UCS_PTR_IS_ERR(request)) {
        MPL_free(header);
    }
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_isend_reply(MPIR_Comm * comm, int src_rank,
                                                     int handler_id, const void *am_hdr,
                                                     MPI_Aint am_hdr_sz, const void *data,
                                                     MPI_Aint count, MPI_Datatype datatype,
                                                     int src_vci, int dst_vci, MPIR_Request * sreq)
{
    return MPIDI_NM_am_isend(src_rank, comm, handler_id, am_hdr, am_hdr_sz, data, count, datatype,
                             src_vci, dst_vci, sreq);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_send_hdr_reply(MPIR_Comm * comm, int src_rank,
                                                        int handler_id, const void *am_hdr,
                                                        MPI_Aint am_hdr_sz, int src_vci,
                                                        int dst_vci)
{
    return MPIDI_NM_am_send_hdr(src_rank, comm, handler_id, am_hdr, am_hdr_sz, src_vci, dst_vci);
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_hdr_max_sz(void)
{
    return MPIDI_ZC_global.max_am_header;
}

/* CH4 sizes its cells for unexpected eager data by these two; we keep such
 * data ourselves (zc_arrival.h), so any value up to a cell's size is true. */
MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_eager_limit(void)
{
    return MPIR_CVAR_CH4_AM_PACK_BUFFER_SIZE;
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_eager_buf_limit(void)
{
    return MPIR_CVAR_CH4_AM_PACK_BUFFER_SIZE;
}

/* Always: the transport, not CH4, chooses between eager and rendezvous. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NM_am_check_eager(MPI_Aint am_hdr_sz, MPI_Aint data_sz,
                                                      const void *data, MPI_Aint count,
                                                      MPI_Datatype datatype, MPIR_Request * sreq)
{
    return true;
}

MPL_STATIC_INLINE_PREFIX MPIDIG_recv_data_copy_cb MPIDI_NM_am_get_data_copy_cb(uint32_t attr)
{
    return MPIDI_ZC_arrival_matched;
}

#endif /* ZC_AM_H_INCLUDED */

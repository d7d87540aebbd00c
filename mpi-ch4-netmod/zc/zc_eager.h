/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_EAGER_H_INCLUDED
#define ZC_EAGER_H_INCLUDED

/* Contiguous standard sends below the rendezvous threshold take the paths in this file. All others
 * are active messages of CH4.
 *
 *   short   UCP user header: none           payload: | eager_header | data |
 *   longer  UCP user header: eager_header   payload: data
 *
 * UCP sends a payload alone without allocating anything, in one copy to the transport. A header
 * and a payload together always cost it a request. */

#include "zc_impl.h"
#include "zc_flow.h"
#include "zc_peer.h"

/* Takes @credit, in MPIDI_ZC_CREDIT_UNIT, back from a packet on @lane that has not been sent. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_eager_credit_unsent(MPIDI_ZC_lane_t * lane, uint8_t credit)
{
    lane->inbound.owed += credit * MPIDI_ZC_CREDIT_UNIT;
}

/* Sends one packet from the stack, without a request of UCP. False: UCP cannot send it at once, and
 * MPIDI_ZC_send_longer() has to. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_send_short(MPIDI_ZC_lane_t * lane,
                                                  const MPIDI_ZC_eager_header_t * header,
                                                  const void *data, size_t bytes,
                                                  MPIR_Request ** req_p)
{
    MPIDI_ZC_short_packet_t packet;
    const size_t length = offsetof(MPIDI_ZC_short_packet_t, data) + bytes;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };

    packet.header = *header;
    if (bytes > 0) {
        memcpy(packet.data, data, bytes);
    }
    if (ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_EAGER, NULL, 0, &packet, length, &param) != NULL) {
        return false;
    }
    *req_p = MPIR_Request_create_complete(MPIR_REQUEST_KIND__SEND);
    return true;
}

/* Sends from the user's buffer. The request is incomplete for as long as UCP reads that. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_send_longer(MPIDI_ZC_lane_t * lane,
                                                  const MPIDI_ZC_eager_header_t * header,
                                                  const void *data, size_t bytes, int vci,
                                                  MPIR_Comm * comm, MPIR_Request ** req_p)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *sreq;

    MPIDI_CH4_REQUEST_CREATE(sreq, MPIR_REQUEST_KIND__SEND, vci, 2);
    MPIR_ERR_CHKANDJUMP(!sreq, mpi_errno, MPIX_ERR_NOREQ, "**nomemreq");
    char *kept = MPIDI_ZC_AM_REQUEST(sreq).header_inline;
    MPL_COMPILE_TIME_ASSERT(sizeof(*header) <= sizeof(MPIDI_ZC_AM_REQUEST(sreq).header_inline));
    memcpy(kept, header, sizeof(*header));

    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = MPIDI_ZC_eager_done,
        .user_data = sreq,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_EAGER, kept,
                                               sizeof(*header), data, bytes, &param);
    if (request == NULL) {
        MPID_Request_complete(sreq);
    } else if (likely(!UCS_PTR_IS_ERR(request))) {
        sreq->comm = comm;
        MPIR_Comm_add_ref(comm);
    } else {
        MPID_Request_complete(sreq);
        MPIDI_CH4_REQUEST_FREE(sreq);
    }
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");
    *req_p = sreq;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Sends a contiguous message that is short enough and paid for. It is called inside the lock of
 * @vci. @may_wait: the message may leave together with those that follow. */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_send_eager(const void *data, size_t bytes, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 const MPIDI_ZC_addr_t * peer,
                                                 MPIDI_ZC_lane_t * lane, int vci, int error_bits,
                                                 bool may_wait, MPIR_Request ** req_p)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_vci_t *own = &MPIDI_ZC_VCI(vci);
    MPIDI_ZC_bundle_t *bundle = &own->bundle;

    may_wait = may_wait && bytes <= MPIDI_ZC_BUNDLE_MESSAGE_MAX;
    if (unlikely(bundle->lane == lane) && may_wait) {
        const MPIDI_ZC_bundle_part_t part = {
            .src_rank = comm->rank,
            .tag = tag,
            .context_id = comm->context_id + context_offset,
            .bytes = bytes,
        };
        if (MPIDI_ZC_bundle_follow(own, peer, &part, data, req_p)) {
            goto fn_exit;
        }
    } else {
        MPIDI_ZC_bundle_end(own);
        bundle->lane = may_wait && lane->bundles ? lane : NULL;
    }

    const MPIDI_ZC_eager_header_t header = {
        .sender = peer->self,
        .sequence = lane->next_send,
        .src_rank = comm->rank,
        .tag = tag,
        .context_id = comm->context_id + context_offset,
        .error_bits = error_bits,
        .credit = MPIDI_ZC_flow_piggyback(lane),
    };
    if (unlikely(bytes > lane->short_max) ||
        unlikely(!MPIDI_ZC_send_short(lane, &header, data, bytes, req_p))) {
        mpi_errno = MPIDI_ZC_send_longer(lane, &header, data, bytes, vci, comm, req_p);
        if (unlikely(mpi_errno)) {
            MPIDI_ZC_eager_credit_unsent(lane, header.credit);
        }
        MPIR_ERR_CHECK(mpi_errno);
    }
    lane->next_send++;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#endif /* ZC_EAGER_H_INCLUDED */

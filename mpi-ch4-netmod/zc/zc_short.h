/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SHORT_H_INCLUDED
#define ZC_SHORT_H_INCLUDED

/* The fast path of short messages: one packet on the stack, no request.
 *
 *   UCP user header: none       payload: | short_header (24 bytes) | data |
 *
 * UCP sends a payload alone without allocating anything, in one copy to the
 * transport; header and payload together always cost it a request. */

#include "zc_impl.h"
#include "zc_peer.h"

/* Sends at once or not at all: false if the ordinary path has to. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_send_short(const void *buf, MPI_Aint count,
                                                  MPI_Datatype datatype, int tag,
                                                  MPIR_Comm * comm, int context_offset,
                                                  MPIDI_av_entry_t * addr, int vci,
                                                  int error_bits, MPIR_Request ** req_p)
{
    bool sent = false;
    int dt_contig;
    MPI_Aint data_sz, dt_true_lb;
    MPIR_Datatype *dt_ptr;

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);
    if (!dt_contig || data_sz > MPIDI_ZC_SHORT_MAX || *req_p != NULL) {
        return false;
    }

    MPIDI_ZC_short_packet_t packet;
    const size_t length = offsetof(MPIDI_ZC_short_packet_t, data) + data_sz;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    MPL_COMPILE_TIME_ASSERT(sizeof(packet.header) == 24);
    if (data_sz > 0) {
        memcpy(packet.data, MPIR_get_contig_ptr(buf, dt_true_lb), data_sz);
    }

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    const MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(addr);
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(&MPIDI_ZC_AV(addr), vci);
    packet.header = (MPIDI_ZC_short_header_t) {
        .sender = peer->self,
        .sequence = lane->next_send,
        .src_rank = comm->rank,
        .tag = tag,
        .context_id = comm->context_id + context_offset,
        .vci = vci,
        .error_bits = error_bits,
    };
    /* Without an endpoint yet the long way makes it. */
    if (likely(lane->ep) &&
        ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_SHORT, NULL, 0, &packet, length, &param) == NULL) {
        lane->next_send++;
        *req_p = MPIR_Request_create_complete(MPIR_REQUEST_KIND__SEND);
        sent = true;
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return sent;
}

#endif /* ZC_SHORT_H_INCLUDED */

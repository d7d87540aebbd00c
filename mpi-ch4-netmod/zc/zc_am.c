/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_foreign.h"
#include "zc_peer.h"

/* The receiving side of CH4's active messages: puts them back into order and
 * hands them to CH4's handlers. */

/* A message that overtook an earlier one of the same sender. */
typedef struct MPIDI_ZC_early {
    struct MPIDI_ZC_early *next;
    uint32_t sequence;
    void *descriptor;           /* UCP's, of a rendezvous; else NULL */
    size_t length;
    size_t header_length;
    char bytes[];               /* header, and the data of an eager message */
} MPIDI_ZC_early_t;

bool MPIDI_ZC_note_send_status(MPIR_Request * sreq, ucs_status_t status)
{
    if (unlikely(MPIDI_ZC_global.over)) {
        return false;
    }
    if (unlikely(status != UCS_OK)) {
        sreq->status.MPI_ERROR =
            MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__,
                                 MPI_ERR_OTHER, "**zc_ucx", "**zc_ucx %s %s", "send",
                                 ucs_status_string(status));
    }
    return true;
}

void MPIDI_ZC_eager_done(void *request, ucs_status_t status, void *user_data)
{
    MPIR_Request *sreq = user_data;

    if (MPIDI_ZC_note_send_status(sreq, status)) {
        MPID_Request_complete(sreq);
    }
    ucp_request_free(request);
}

void MPIDI_ZC_am_send_done(void *request, ucs_status_t status, void *user_data)
{
    MPIR_Request *sreq = user_data;

    if (MPIDI_ZC_note_send_status(sreq, status)) {
        const int handler_id = MPIDI_ZC_AM_REQUEST(sreq).handler_id;
        MPIDI_ZC_am_sent(&MPIDI_ZC_AM_REQUEST(sreq));
        MPIDIG_global.origin_cbs[handler_id] (sreq);
    }
    ucp_request_free(request);
}

void MPIDI_ZC_am_header_done(void *request, ucs_status_t status, void *user_data)
{
    MPL_free(user_data);
    ucp_request_free(request);
}

static bool may_land(uint64_t sender)
{
    return likely(MPIDI_ZC_global.params.intra_node) || (sender & MPIDI_ZC_FOREIGN) ||
        MPIR_Process.node_map[sender] != MPIR_Process.node_map[MPIR_Process.rank];
}

/* Runs CH4's handler for one message that is in order. @descriptor: UCP's if the
 * data is still at the sender, else NULL and @data holds it.
 *
 * CH4's send handler is always called in its "transport rendezvous" mode: it
 * then leaves unexpected data to us, eager data too, which CH4 itself would
 * keep in cells of 68 KiB however short it is. */
static int dispatch(MPIDI_ZC_vci_t * vci, const char *header, void *data, size_t length,
                    void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_header_t h;
    memcpy(&h, header, sizeof(h));
    void *am_hdr = (void *) (header + sizeof(h));
    const bool is_send = h.handler_id == MPIDIG_SEND;
    MPIR_Request *rreq = NULL;

    uint32_t attr = 0;
    MPIDIG_AM_ATTR_SET_VCIS(attr, h.src_vci, h.dst_vci);
    if (is_send || descriptor) {
        attr |= MPIDIG_AM_ATTR__IS_ASYNC | MPIDIG_AM_ATTR__IS_RNDV;
    }
    mpi_errno = MPIDIG_global.target_msg_cbs[h.handler_id] (am_hdr, data, h.data_size, attr,
                                                            attr & MPIDIG_AM_ATTR__IS_ASYNC ?
                                                            &rreq : NULL);
    MPIR_ERR_CHECK(mpi_errno);

    if (descriptor && rreq) {
        mpi_errno = MPIDI_ZC_arrival_rndv(vci, rreq, descriptor, h.data_size,
                                          is_send && may_land(h.sender));
    } else if (descriptor) {
        ucp_am_data_release(vci->worker, descriptor);
    } else if (rreq) {
        mpi_errno = MPIDI_ZC_hold(rreq, data, length);
    }
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int keep_early(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint32_t sequence,
                      const void *header, size_t header_length, const void *data, size_t length,
                      void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t data_kept = descriptor ? 0 : length;
    /* CH4 reads its header in place, and it begins after ours. */
    const size_t data_at = (header_length + 15) & ~(size_t) 15;

    MPIDI_ZC_early_t *early = MPL_malloc(sizeof(*early) + data_at + data_kept, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!early, mpi_errno, MPI_ERR_OTHER, "**nomem");
    early->sequence = sequence;
    early->descriptor = descriptor;
    early->length = length;
    early->header_length = header_length;
    memcpy(early->bytes, header, header_length);
    if (data_kept) {
        memcpy(early->bytes + data_at, data, data_kept);
    }

    MPIDI_ZC_early_t **at = &in->early;
    while (*at && (int32_t) ((*at)->sequence - sequence) < 0) {
        at = &(*at)->next;
    }
    early->next = *at;
    *at = early;
    vci->stats.reordered++;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int dispatch_early(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in)
{
    int mpi_errno = MPI_SUCCESS;

    while (in->early && in->early->sequence == in->next) {
        MPIDI_ZC_early_t *early = in->early;
        const size_t data_at = (early->header_length + 15) & ~(size_t) 15;
        in->early = early->next;
        in->next++;
        mpi_errno = dispatch(vci, early->bytes, early->bytes + data_at, early->length,
                             early->descriptor);
        MPL_free(early);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* There is nobody to return an error to inside a UCX callback. */
static void check_fatal(int mpi_errno)
{
    if (unlikely(mpi_errno != MPI_SUCCESS)) {
        char text[MPI_MAX_ERROR_STRING];
        MPIR_Err_get_string(mpi_errno, text, sizeof(text), NULL);
        MPID_Abort(NULL, mpi_errno, 1, text);
    }
}

static MPIDI_ZC_inbound_t *inbound_of(MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    if (likely(!(sender & MPIDI_ZC_FOREIGN))) {
        MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(&MPIDIU_get_av(0, sender));
        MPIDI_ZC_lane_t *lane = likely(!vci->lanes) ? &peer->lane : &vci->lanes[sender];
        /* Who has written may die; without memory, that is noticed when we write. */
        (void) MPIDI_ZC_lane_endpoint(peer, lane, vci->number);
        return &lane->inbound;
    }
    MPIDI_ZC_inbound_t *in = MPIDI_ZC_foreign_inbound(sender);
    MPIR_Assert(in);
    return in;
}

/* Header and data of one message as they come from UCP. */
static void receive(MPIDI_ZC_vci_t * vci, const void *header, size_t header_length, void *data,
                    size_t length, void *descriptor)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_am_header_t h;
    memcpy(&h, header, sizeof(h));

    MPIDI_ZC_inbound_t *in = inbound_of(vci, h.sender);
    if (unlikely(h.sequence != in->next)) {
        mpi_errno = keep_early(vci, in, h.sequence, header, header_length, data, length,
                               descriptor);
        check_fatal(mpi_errno);
        return;
    }
    in->next++;
    /* CH4's header holds 8-byte words; UCP promises no alignment. */
    if (likely(((uintptr_t) header & 7) == 0)) {
        mpi_errno = dispatch(vci, header, data, length, descriptor);
    } else {
        uint64_t aligned[32];
        void *copy = aligned;
        if (unlikely(header_length > sizeof(aligned))) {
            copy = MPL_malloc(header_length, MPL_MEM_BUFFER);
            MPIR_Assert(copy);
        }
        memcpy(copy, header, header_length);
        mpi_errno = dispatch(vci, copy, data, length, descriptor);
        if (unlikely(copy != aligned)) {
            MPL_free(copy);
        }
    }
    check_fatal(mpi_errno);
    if (unlikely(in->early)) {
        mpi_errno = dispatch_early(vci, in);
        check_fatal(mpi_errno);
    }
}

/* The commonest case, without CH4's callbacks: the receive at the head of the
 * posted queue wants this message and has one piece of room for it. False: not
 * so, and nothing has happened. */
static bool receive_at_head(int vci, const MPIDI_ZC_eager_header_t * match, const void *data,
                            MPI_Aint length)
{
#ifdef MPIDI_CH4_DIRECT_NETMOD
    MPIR_Request *rreq = MPIDI_global.per_vci[vci].posted_list;
    if (!rreq || !MPIDIG_match_request(match->src_rank, match->tag, match->context_id, rreq,
                                       MPIDIG_PT2PT_POSTED)) {
        return false;
    }

    int contiguous;
    MPI_Aint room, true_lb;
    MPIR_Datatype *datatype;
    MPL_pointer_attr_t attr;
    MPIDI_Datatype_get_info(MPIDIG_REQUEST(rreq, count), MPIDIG_REQUEST(rreq, datatype),
                            contiguous, room, datatype, true_lb);
    MPIR_GPU_query_pointer_attr(MPIDIG_REQUEST(rreq, buffer), &attr);
    if (!contiguous || length > room || attr.type == MPL_GPU_POINTER_DEV) {
        return false;
    }

    rreq = MPIDIG_rreq_dequeue(match->src_rank, match->tag, match->context_id,
                               &MPIDI_global.per_vci[vci].posted_list, MPIDIG_PT2PT_POSTED);
    if (length > 0) {
        memcpy(MPIR_get_contig_ptr(MPIDIG_REQUEST(rreq, buffer), true_lb), data, length);
    }
    rreq->status.MPI_SOURCE = match->src_rank;
    rreq->status.MPI_TAG = match->tag;
    rreq->status.MPI_ERROR = match->error_bits;
    MPIR_STATUS_SET_COUNT(rreq->status, length);
    MPIR_Datatype_release_if_not_builtin(MPIDIG_REQUEST(rreq, datatype));
    MPID_Request_complete(rreq);
    return true;
#else
    /* A wildcard receive may have a partner in a shared-memory module. */
    return false;
#endif
}

ucs_status_t MPIDI_ZC_am_handler(void *arg, const void *header, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t * param)
{
    const bool rndv = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;

    receive(arg, header, header_length, data, length, rndv ? data : NULL);
    /* A rendezvous descriptor is ours until it is received or released. */
    return rndv ? UCS_INPROGRESS : UCS_OK;
}

/* A send without options, of which only what its sender said in short has come. */
static void receive_short(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_eager_header_t * h, char *data,
                          size_t bytes)
{
    MPIDI_ZC_inbound_t *in = inbound_of(vci, h->sender);
    if (likely(h->sequence == in->next && in->early == NULL) &&
        receive_at_head(vci->number, h, data, bytes)) {
        in->next++;
        return;
    }
    const struct {
        MPIDI_ZC_am_header_t am;
        MPIDIG_hdr_t match;
    } full = {
        .am = {
            .sequence = h->sequence,
            .sender = h->sender,
            .handler_id = MPIDIG_SEND,
            .src_vci = h->vci,
            .dst_vci = h->vci,
            .data_size = bytes,
        },
        .match = {
            .src_rank = h->src_rank,
            .tag = h->tag,
            .context_id = h->context_id,
            .error_bits = h->error_bits,
            .data_sz = bytes,
        },
    };
    receive(vci, &full, sizeof(full), data, bytes, NULL);
}

ucs_status_t MPIDI_ZC_am_eager_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param)
{
    /* A short message has it before its data. It has words of 8 bytes; UCP promises no
     * alignment. */
    const bool is_short = header_length == 0;
    MPIDI_ZC_eager_header_t h;
    memcpy(&h, is_short ? data : header, sizeof(h));
    receive_short(arg, &h, is_short ? (char *) data + sizeof(h) : data,
                  is_short ? length - sizeof(h) : length);
    return UCS_OK;
}

ucs_status_t MPIDI_ZC_am_bundle_handler(void *arg, const void *header, size_t header_length,
                                        void *data, size_t length,
                                        const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_bundle_header_t bundle;
    memcpy(&bundle, data, sizeof(bundle));
    MPIDI_ZC_eager_header_t h = {
        .sender = bundle.sender,
        .sequence = bundle.sequence,
        .vci = bundle.vci,
        .error_bits = MPIR_ERR_NONE,
    };

    for (size_t at = sizeof(bundle); at < length; h.sequence++) {
        MPIDI_ZC_bundle_part_t part;
        memcpy(&part, (char *) data + at, sizeof(part));
        h.src_rank = part.src_rank;
        h.tag = part.tag;
        h.context_id = part.context_id;
        receive_short(arg, &h, (char *) data + at + sizeof(part), part.bytes);
        at += MPIDI_ZC_bundle_part_length(part.bytes);
    }
    return UCS_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpidig_rma_callbacks.h"
#include "zc_foreign.h"
#include "zc_outstanding.h"
#include "zc_peer.h"

/* CH4 counts in a request what it waits for: the message has been sent, and the target has answered. */
static bool is_being_sent(const MPIR_Request * req)
{
    return MPIR_cc_get(*req->cc_ptr) > 1;
}

/* Each part that UCX has not completed keeps a reference to @req. */
static void end_native(MPIR_Request * req)
{
    const int parts = MPIR_cc_get(*req->cc_ptr);

    req->status.MPI_ERROR = MPIDI_ZC_LOST;
    MPIDI_ZC_AM_REQUEST(req).lost = true;
    for (int part = 0; part < parts; part++) {
        MPIR_Request_add_ref(req);
    }
    for (int part = 0; part < parts; part++) {
        MPID_Request_complete(req);
    }
}

/* Ends @req, though UCP has its message. */
static void abandon(MPIR_Request * req)
{
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    MPIR_Request_add_ref(req);
    MPIDIG_global.origin_cbs[am->handler_id] (req);
    MPIDIG_rma_op_lost(req, am->handler_id, am->data_is_sent);
}

void MPIDI_ZC_outstanding_lost(MPIR_Request * req, bool returns)
{
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    if (am->native) {
        end_native(req);
    } else if (!is_being_sent(req)) {
        MPIDIG_rma_op_lost(req, am->handler_id, am->data_is_sent);
    } else {
        am->lost = true;
        if (!returns) {
            abandon(req);
        }
    }
}

void MPIDI_ZC_outstanding_returned(MPIR_Request * req)
{
    const MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    if (MPIR_cc_get(*req->cc_ptr) == 0) {
        MPIDI_CH4_REQUEST_FREE(req);
    } else {
        MPIDIG_global.origin_cbs[am->handler_id] (req);
        MPIDIG_rma_op_lost(req, am->handler_id, am->data_is_sent);
    }
}

void MPIDI_ZC_outstanding_native(MPIR_Win * win, int rank, MPIR_Request * req)
{
    const int vci = MPIDI_WIN(win, am_vci);
    const MPIDI_ZC_addr_t *peer = MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(win->comm_ptr, rank), vci);

    if (peer->foreign) {
        MPIDI_ZC_foreign_await_ack(peer->foreign, req);
    }
}

void MPIDI_ZC_outstanding_native_done(MPIR_Request * req)
{
    if (unlikely(MPIDI_ZC_AM_REQUEST(req).lost)) {
        MPIDI_CH4_REQUEST_FREE(req);
        return;
    }
    if (unlikely(MPIDI_ZC_AM_REQUEST(req).ack.at) && MPIR_cc_get(*req->cc_ptr) == 1) {
        MPIDI_ZC_foreign_acked(req);
    }
    MPID_Request_complete(req);
}

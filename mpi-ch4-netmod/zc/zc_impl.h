/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_IMPL_H_INCLUDED
#define ZC_IMPL_H_INCLUDED

/* This file has what all files of the netmod use. The subjects are in these files:
 *
 *   begin and end        zc_init, zc_params, zc_addresses, zc_worker, zc_teardown
 *   sending              zc_pt2pt.h, zc_eager.h, zc_am.h, zc_bundle, zc_burst.h; credit: zc_flow
 *   receiving            zc_am (order) ▶ zc_match ▶ zc_unexpected (short) or zc_arrival (landing)
 *   bulk                 zc_channel, zc_handshake (libzclane) or zc_peer (UCX);
 *                        non-contiguous: zc_stream
 *   one-sided            zc_rma.h, zc_win, zc_atomic
 *   other worlds         zc_spawn, zc_foreign, zc_foreign_vcis, zc_process, zc_node, zc_sender,
 *                        zc_shm_upgrade, zc_disconnect, zc_upid; zc_table.h
 *   progress             zc_landing_thread, zc_watch.h, zc_idle, zc_processors, zc_share.h,
 *                        zc_vci_locks
 *   what lands           zc_weigh.h (whether), zc_arrival (where)
 *   counters             zc_stats, zc_counter
 *   wire formats         zc_wire.h
 *   types                zc_pre.h (inside objects of CH4), zc_types.h (of the netmod) */

#include <mpidimpl.h>
#include "mpidch4r.h"
#include "ch4_impl.h"
#include "zc_types.h"
#include "zc_bundle.h"
#include "zc_landing_thread.h"
#include "zc_stream.h"

/* Is that an error of an endpoint whose process, or the network to it, has failed? Others are of
 * this process: it may have no memory, for example. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_is_loss(ucs_status_t status)
{
    switch (status) {
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_ENDPOINT_TIMEOUT:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_UNREACHABLE:
        case UCS_ERR_REJECTED:
        case UCS_ERR_CANCELED:
            return true;
        default:
            return false;
    }
}

MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_error_class(ucs_status_t status)
{
    return MPIDI_ZC_is_loss(status) ? MPIX_ERR_PROC_FAILED : MPI_ERR_OTHER;
}

/* Jumps to fn_fail if a UCX call failed; @what names the call. */
#define MPIDI_ZC_CHECK_STATUS(status, what)                                    \
    MPIR_ERR_CHKANDJUMP2((status) != UCS_OK && (status) != UCS_INPROGRESS,     \
                         mpi_errno, MPIDI_ZC_error_class(status), "**zc_ucx",  \
                         "**zc_ucx %s %s", what, ucs_status_string(status))

#define MPIDI_ZC_CHECK_POINTER(ptr, what)                                      \
    MPIR_ERR_CHKANDJUMP2(UCS_PTR_IS_ERR(ptr), mpi_errno,                       \
                         MPIDI_ZC_error_class(UCS_PTR_STATUS(ptr)),            \
                         "**zc_ucx", "**zc_ucx %s %s", what,                   \
                         ucs_status_string(UCS_PTR_STATUS(ptr)))

/* Returns the error of a request whose transfer UCX has ended with @status, on top of @before. That a
 * process has died is a class alone (MPIDI_ZC_LOST). */
MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_transfer_error(int before, const char *what,
                                                     ucs_status_t status)
{
    return MPIDI_ZC_is_loss(status) ? MPIX_ERR_PROC_FAILED :
        MPIR_Err_create_code(before, MPIR_ERR_RECOVERABLE, __func__, __LINE__, MPI_ERR_OTHER,
                             "**zc_ucx", "**zc_ucx %s %s", what, ucs_status_string(status));
}

/* Makes the endpoints that messages wait for, and handles those messages; and lets ranks leave
 * (zc_detach.h). It is called outside UCP's callbacks. */
void MPIDI_ZC_connect_back(MPIDI_ZC_vci_t * vci);
void MPIDI_ZC_unconnected_drop(MPIDI_ZC_vci_t * vci);

/* Makes the endpoint for bulk to @rank at the next progress, if there is memory for the note. It is called
 * in callbacks. */
void MPIDI_ZC_am_want_bulk(MPIDI_ZC_vci_t * vci, int rank);

/* Calls MPIDI_ZC_foreign_connect_back() for @sender, of another world, at the next progress. */
void MPIDI_ZC_am_await(MPIDI_ZC_vci_t * vci, uint64_t sender);

/* As in zc_foreign_vcis.h and zc_channel.h, which include this file. */
void MPIDI_ZC_foreign_vcis_end(MPIDI_ZC_vci_t * vci);
void MPIDI_ZC_foreign_end_losses(MPIDI_ZC_vci_t * vci);
unsigned MPIDI_ZC_channels_progress(MPIDI_ZC_vci_t * vci, bool look);

MPL_STATIC_INLINE_PREFIX unsigned MPIDI_ZC_worker_progress(MPIDI_ZC_vci_t * vci)
{
    if (unlikely(__atomic_load_n(&vci->has_ends, __ATOMIC_RELAXED))) {
        MPIDI_ZC_foreign_vcis_end(vci);
    }
    vci->in_callbacks = true;
    unsigned events = ucp_worker_progress(vci->worker);
    vci->in_callbacks = false;
    if (unlikely(vci->has_losses) && events == 0) {
        MPIDI_ZC_foreign_end_losses(vci);
    }
    if (unlikely(vci->channels || vci->channel_messages.first)) {
        events += MPIDI_ZC_channels_progress(vci, false);
    }
    if (unlikely(vci->to_do)) {
        MPIDI_ZC_connect_back(vci);
    }
    return events;
}

MPL_STATIC_INLINE_PREFIX unsigned MPIDI_ZC_progress_vci(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_bundle_end(vci);
    const unsigned events = MPIDI_ZC_worker_progress(vci);
    MPIDI_ZC_idle_polled(&vci->idle, events);
    return events;
}

/* Makes progress on all VCIs. No other thread is in MPI. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_progress_all(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_progress_vci(&MPIDI_ZC_VCI(v));
    }
}

/* Makes progress until UCP has completed @request (NULL: it has), or a rank has died, and frees
 * it. It is called in finalize, when no other thread is in MPI. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_wait(ucs_status_ptr_t request)
{
    if (request) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS && !MPIDI_ZC_global.rank_died) {
            MPIDI_ZC_progress_all();
        }
        ucp_request_free(request);
    }
}

/* Called when a transfer has ended. If it was the last one, and the landing thread does not wait
 * for the application to leave MPI, the gate need not call anything then. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_transfer_over(void)
{
    if (MPIDU_device_gate.on_exit && !MPIDI_ZC_global.listening && !MPIDI_ZC_global.timer_wanted) {
        int transfers = 0;
        for (int v = 0; v < MPIDI_global.n_vcis; v++) {
            transfers += MPIDI_ZC_VCI(v).nr_announced + MPIDI_ZC_VCI(v).nr_fetching;
        }
        if (transfers == 0) {
            MPIDU_device_gate_set_on_exit(NULL);
        }
    }
}

/* Ends the job if @mpi_errno is an error. UCX's callbacks and the landing thread have no caller to
 * return one to. */
void MPIDI_ZC_end_job_if(int mpi_errno);

/* ---- UCP callbacks, zc_am.c ---- */

/* Sets the status of a send that UCP has completed. False: the netmod has ended, and the send is
 * to be ignored. */
bool MPIDI_ZC_note_send_status(MPIR_Request * sreq, ucs_status_t status);

ucs_status_t MPIDI_ZC_am_eager_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param);

/* Sends a message of CH4 without data on @lane, which has an endpoint. */
int MPIDI_ZC_am_send_header(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci,
                            int handler_id, const void *am_hdr, size_t am_hdr_sz);

/* Sends such a message to @sender. False: there is no memory for it, or no connection. */
bool MPIDI_ZC_am_answer(MPIDI_ZC_vci_t * vci, uint64_t sender, int handler_id,
                        const void *am_hdr, size_t am_hdr_sz);

void MPIDI_ZC_eager_done(void *request, ucs_status_t status, void *user_data);
void MPIDI_ZC_am_send_over(MPIR_Request * sreq, ucs_status_t status);
void MPIDI_ZC_am_send_done(void *request, ucs_status_t status, void *user_data);
void MPIDI_ZC_am_header_done(void *request, ucs_status_t status, void *user_data);
ucs_status_t MPIDI_ZC_offer_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_am_handler(void *arg, const void *header, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t * param);

/* Frees messages that overtook others, which never arrive. */
void MPIDI_ZC_inbound_drop(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in);

/* Where ranks may leave (zc_path.h): returns the number of the path to @peer, or -1. */
int MPIDI_ZC_path_to(const MPIDI_ZC_addr_t * peer);

/* A message is about to be announced on @vci of that path, which may be -1, and UCP has completed it. Both
 * are called inside the lock of @vci, the second in callbacks, too. */
void MPIDI_ZC_path_announces(int path, int vci);
void MPIDI_ZC_path_announced(int path, int vci);

/* Frees what a request holds for a send, which UCP has completed. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_am_sent(MPIDI_ZC_am_request_t * am)
{
    if (unlikely(am->stream)) {
        MPIDI_ZC_stream_free(am->stream);
        am->stream = NULL;
    }
    if (unlikely(am->header && am->header != am->header_inline)) {
        MPL_free(am->header);
    }
    am->header = NULL;
    if (am->announced) {
        am->announced = false;
        MPIDI_ZC_VCI(am->vci).nr_announced--;
        if (unlikely(am->path_to >= 0)) {
            MPIDI_ZC_path_announced(am->path_to, am->vci);
            am->path_to = -1;
        }
        MPIDI_ZC_transfer_over();
    }
}

#endif /* ZC_IMPL_H_INCLUDED */

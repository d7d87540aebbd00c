/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_worker.h"
#include "zc_channel.h"
#include "zc_disconnect.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_path_message.h"
#include "zc_sender.h"
#include "zc_shm_upgrade.h"
#include "zc_stats.h"
#include "zc_teardown.h"

static const struct handler {
    unsigned id;
    ucp_am_recv_callback_t callback;
    bool of_job;                /* only VCI 0 receives it: it belongs to no communicator */
} handlers[] = {
    {MPIDI_ZC_AM_MESSAGE, MPIDI_ZC_am_handler, false},
    {MPIDI_ZC_AM_EAGER, MPIDI_ZC_am_eager_handler, false},
    {MPIDI_ZC_AM_BUNDLE, MPIDI_ZC_am_bundle_handler, false},
    {MPIDI_ZC_AM_CREDIT, MPIDI_ZC_credit_handler, false},
    {MPIDI_ZC_AM_OFFER, MPIDI_ZC_offer_handler, false},
    {MPIDI_ZC_AM_PULL, MPIDI_ZC_pull_handler, false},
    {MPIDI_ZC_AM_DATA, MPIDI_ZC_data_handler, false},
    {MPIDI_ZC_AM_CHANNEL, MPIDI_ZC_channel_handler, false},
    {MPIDI_ZC_AM_TEARDOWN, MPIDI_ZC_teardown_handler, true},
    {MPIDI_ZC_AM_REPORT, MPIDI_ZC_report_handler, true},
    {MPIDI_ZC_AM_DYNAMIC, MPIDI_ZC_dynamic_handler, true},
    {MPIDI_ZC_AM_HELLO, MPIDI_ZC_hello_handler, false},
    {MPIDI_ZC_AM_HOST, MPIDI_ZC_host_handler, false},
    {MPIDI_ZC_AM_FIN, MPIDI_ZC_fin_handler, false},
    {MPIDI_ZC_AM_PATH, MPIDI_ZC_path_handler, false},
};

enum { NR_HANDLERS = sizeof(handlers) / sizeof(handlers[0]) };

static ucs_status_t set_handler(MPIDI_ZC_vci_t * vci, unsigned id, ucp_am_recv_callback_t callback)
{
    const ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = callback,
        .arg = vci,
    };
    return ucp_worker_set_am_recv_handler(vci->worker, &param);
}

static bool receives(const MPIDI_ZC_vci_t * vci, const struct handler *handler)
{
    return vci->number == 0 || !handler->of_job;
}

int MPIDI_ZC_worker_open(MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,      /* by the lock of the VCI and the gate */
    };
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER };

    ucs_status_t status = ucp_worker_create(MPIDI_ZC_global.context, &params, &vci->worker);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_create");
    status = ucp_worker_query(vci->worker, &attr);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_query");
    MPIDI_ZC_global.max_am_header = attr.max_am_header - sizeof(MPIDI_ZC_am_header_t);
    status = ucp_worker_get_address(vci->worker, &vci->address, &vci->address_length);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_get_address");
    for (int i = 0; i < NR_HANDLERS; i++) {
        if (receives(vci, &handlers[i])) {
            status = set_handler(vci, handlers[i].id, handlers[i].callback);
            MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_set_am_recv_handler");
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static ucs_status_t drop(void *arg, const void *header, size_t header_length, void *data,
                         size_t length, const ucp_am_recv_param_t * param)
{
    return UCS_OK;
}

void MPIDI_ZC_worker_close(MPIDI_ZC_vci_t * vci)
{
    if (!vci->worker) {
        return;
    }
    if (vci->address) {
        ucp_worker_release_address(vci->worker, vci->address);
        vci->address = NULL;
    }
    /* Destroying a worker may progress it. */
    for (int i = 0; i < NR_HANDLERS; i++) {
        if (receives(vci, &handlers[i])) {
            (void) set_handler(vci, handlers[i].id, drop);
        }
    }
    ucp_worker_destroy(vci->worker);
    vci->worker = NULL;
}

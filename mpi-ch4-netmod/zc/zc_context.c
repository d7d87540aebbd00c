/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_context.h"
#include "zc_params.h"

/* Lets endpoints have error handling over shared memory: those to other worlds (zc_foreign.c). UCX
 * 1.13 can do it, but only if it is asked. Its warning about the second setting is that a process
 * which is taken for dead may still read the memory of a message that has ended with an error. An
 * endpoint without error handling, of this world, is not affected. UCX warns of settings that belong
 * to transports which it does not use. */
static void handle_errors_near(ucp_config_t * config, const MPIDI_ZC_transport_t * transport)
{
    ucs_status_t status = ucp_config_modify(config, "MM_ERROR_HANDLING", "y");
    if (status == UCS_OK && transport->cma) {
        status = ucp_config_modify(config, "MEMORY_INVALIDATE", "y");
    }
    MPIDI_ZC_global.errors_near = status == UCS_OK;
    if (status != UCS_OK) {
        fprintf(stderr, "zc: connections to processes of other worlds stay on the network: UCX does "
                "not handle errors over shared memory (%s)\n", ucs_status_string(status));
    }
}

/* UCX asks in rounds whether the peers of its endpoints still run, 128 in a round by default. UCX
 * 1.13 forgets that it continues at an endpoint without error handling when that is closed, and
 * then ends the process by a signal. Where a round has all of them, it continues nowhere. */
static void ask_all_at_once(ucp_config_t * config)
{
    /* Versions of UCX without that setting do not ask. */
    (void) ucp_config_modify(config, "KEEPALIVE_NUM_EPS", "inf");
}

int MPIDI_ZC_context_open(void)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_config_t *config;
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_AM,
        .estimated_num_eps = MPIR_Process.size,
    };

    if (MPIDI_global.n_vcis > 1) {
        params.field_mask |= UCP_PARAM_FIELD_MT_WORKERS_SHARED;
        params.mt_workers_shared = 1;
    }
    if (MPIR_CVAR_CH4_ZC_NATIVE_RMA) {
        params.features |= UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    }
    /* Only then: it makes shared-memory senders signal their receivers. */
    if (MPIDI_ZC_global.params.landing_thread) {
        params.features |= UCP_FEATURE_WAKEUP;
    }
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_config_read");
    ask_all_at_once(config);
    status = ucp_init(&params, config, &MPIDI_ZC_global.context);
    if (status == UCS_OK) {
        MPIDI_ZC_transport_find(&MPIDI_ZC_global.transport);
    }
    if (MPIDI_ZC_global.transport.shared_memory) {
        /* Which transports there are is only known now. */
        handle_errors_near(config, &MPIDI_ZC_global.transport);
        ucp_cleanup(MPIDI_ZC_global.context);
        MPIDI_ZC_global.context = NULL;
        status = ucp_init(&params, config, &MPIDI_ZC_global.context);
    }
    ucp_config_release(config);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_init");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_context_close(void)
{
    if (MPIDI_ZC_global.context) {
        ucp_cleanup(MPIDI_ZC_global.context);
        MPIDI_ZC_global.context = NULL;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_addresses.h"
#include "zc_channel.h"
#include "zc_context.h"
#include "zc_connecting.h"
#include "zc_detach.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_foreign_vcis.h"
#include "zc_landing_thread.h"
#include "zc_params.h"
#include "zc_processors.h"
#include "zc_counter.h"
#include "zc_spawned.h"
#include "zc_teardown.h"
#include "zc_worker.h"
#include "zc_noinline.h"

/* Every process has one for each rank of the job; those of all netmods share its memory. */
_Static_assert(sizeof(MPIDI_av_entry_t) <= 72, "an entry of the address vector has grown");
_Static_assert(MPIDI_CH4_MAX_VCIS - 1 <= MPIDI_ZC_FOREIGN_VCI_MASK >> MPIDI_ZC_FOREIGN_VCI_SHIFT,
               "a number between worlds has no room for its VCI");
_Static_assert(MPIDI_AM_HANDLERS_MAX <= UINT8_MAX, "a message has no room for its handler");

/* ---- landing memory and prediction ---- */

static void log_line(void *arg, const char *line)
{
    fprintf(stderr, "zc: rank %d: %s\n", MPIR_Process.rank, line);
}

static int init_landing(const MPIDI_ZC_params_t * params)
{
    int mpi_errno = MPI_SUCCESS;
    zc_params_t landing = {
        .size = sizeof(landing),
        .budget_bytes = params->landing_budget,
        .means = params->means,
        .flags = MPIR_CVAR_CH4_ZC_ALLOW_DEVICES ? ZC_FLAG_ALLOW_DEVICES : 0,
        .log = MPIR_CVAR_CH4_ZC_STATS ? log_line : NULL,
        .cost_file = *MPIR_CVAR_CH4_ZC_COST_FILE ? MPIR_CVAR_CH4_ZC_COST_FILE : NULL,
    };
    zcp_params_t prediction = {
        .size = sizeof(prediction),
        .kind = params->predictor,
        .horizon = params->horizon,
    };

    int err = zc_create(&landing, &MPIDI_ZC_global.landing);
    MPIR_ERR_CHKANDJUMP2(err == -ENOENT || err == -EBADMSG, mpi_errno, MPI_ERR_OTHER, "**zc_param",
                         "**zc_param %s %s", "MPIR_CVAR_CH4_ZC_COST_FILE",
                         MPIR_CVAR_CH4_ZC_COST_FILE);
    MPIR_ERR_CHKANDJUMP1(err, mpi_errno, MPI_ERR_OTHER, "**zc_landing", "**zc_landing %s",
                         strerror(-err));
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        err = zcp_create(&prediction, &MPIDI_ZC_VCI(v).predictor);
        MPIR_ERR_CHKANDJUMP1(err, mpi_errno, MPI_ERR_OTHER, "**zc_landing", "**zc_landing %s",
                             strerror(-err));
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- processors ---- */

static void choose_landing_thread(MPIDI_ZC_params_t * params)
{
    if (params->landing_thread_rests) {
        params->landing_thread = MPIDI_ZC_processors_of_host().kind != MPIDI_ZC_SHARE_CROWDED;
    }
#ifndef MPICH_IS_THREADED
    params->landing_thread = false;
#endif
    /* Before UCX has a thread. */
    if (params->landing_thread && MPIR_ThreadInfo.thread_provided != MPI_THREAD_MULTIPLE) {
        (void) MPIDU_device_gate_prepare();
    }
}

static void init_waiting(void)
{
    const MPIDI_ZC_share_t share = MPIDI_ZC_processors_of_machine();

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(v).idle, share.kind == MPIDI_ZC_SHARE_CROWDED);
    }
    MPIDU_waiting_places(share.processors);
}

/* ---- UCX ---- */

static int init_vcis(void)
{
    int mpi_errno = MPI_SUCCESS;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        MPIDI_ZC_bundle_init(vci);
        MPIDI_ZC_unexpected_init(&vci->unexpected, MPIR_TAG_MASK_ERROR_BITS(INT_MAX));
        mpi_errno = MPIDI_ZC_worker_open(vci);
        MPIR_ERR_CHECK(mpi_errno);
        if (v > 0) {
            vci->lanes = MPL_calloc(MPIR_Process.size, sizeof(*vci->lanes), MPL_MEM_ADDRESS);
            MPIR_ERR_CHKANDJUMP(!vci->lanes, mpi_errno, MPI_ERR_OTHER, "**nomem");
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- hooks ---- */

int MPIDI_ZC_init_local(int *tag_bits)
{
    int mpi_errno = MPI_SUCCESS;

    memset(&MPIDI_ZC_global, 0, sizeof(MPIDI_ZC_global));
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_VCI(v).number = v;
        MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(v).idle, false);
    }
    mpi_errno = MPIDI_ZC_params_parse(&MPIDI_ZC_global.params);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = init_landing(&MPIDI_ZC_global.params);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_stream_init();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_report_begin();
    MPIDI_ZC_counters_register();

    *tag_bits = MPIR_TAG_BITS_DEFAULT;

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_ZC_free_all();
    goto fn_exit;
}

/* Divides the budget for unexpected messages: zc_flow.h. */
static void init_flow(void)
{
    const size_t budget = MPIDI_ZC_global.params.unexpected_budget;
    const int nr_processes = MPIR_Process.size, nr_vcis = MPIDI_global.n_vcis;
    const int32_t window = MPIDI_ZC_flow_initial_window(budget, nr_processes, nr_vcis);

    MPIDI_ZC_global.window = window;
    MPIDI_ZC_global.window_growth = window == MPIDI_ZC_UNLIMITED ? 0 :
        budget - (size_t) window * nr_processes * nr_vcis;
}

int MPIDI_ZC_init_world(void)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = MPIDI_ZC_processors_init();
    MPIR_ERR_CHECK(mpi_errno);
    choose_landing_thread(&MPIDI_ZC_global.params);
    mpi_errno = MPIDI_ZC_context_open();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_params_choose_connections(&MPIDI_ZC_global.params);
    init_flow();
    mpi_errno = init_vcis();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_addresses_exchange();
    MPIR_ERR_CHECK(mpi_errno);
    init_waiting();
    mpi_errno = MPIDI_ZC_detach_init();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDIU_avt_free_hook = MPIDI_ZC_foreign_detach;
    MPIDIU_foreign_node_hook = MPIDI_ZC_foreign_node;
    MPIR_Comm_worlds_hook = MPIDI_ZC_foreign_vcis_choose;
    MPIDI_ZC_connecting_init();
    MPIDI_ZC_spawned_init();

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_post_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    if (MPIDI_global.n_vcis > 1) {
        mpi_errno = MPIDI_ZC_addresses_exchange_others();
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (MPIDI_ZC_global.params.landing_thread) {
        mpi_errno = MPIDI_ZC_landing_thread_start();
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

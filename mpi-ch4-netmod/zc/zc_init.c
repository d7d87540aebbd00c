/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sys/resource.h>
#include "mpidu_bc.h"
#include "mpidu_init_shm.h"
#include "zc_impl.h"
#include "zc_channel.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_landing_thread.h"
#include "zc_processors.h"
#include "zc_counter.h"
#include "zc_noinline.h"

/*
=== BEGIN_MPI_T_CVAR_INFO_BLOCK ===

categories :
    - name : CH4_ZC
      description : A category for CH4 zc netmod variables

cvars:
    - name        : MPIR_CVAR_CH4_ZC_RNDV_THRESHOLD
      category    : CH4_ZC
      type        : string
      default     : "128k"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_ALL
      description : >-
        Messages of at least this many bytes are announced first and fetched
        by the receiver. Sizes here and below accept k, m, g, inf and auto.

    - name        : MPIR_CVAR_CH4_ZC_ONE_COPY_THRESHOLD
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_ALL
      description : >-
        RNDV_THRESHOLD between processes of one host, where UCX has the kernel copy
        from one to the other (CMA, KNEM, XPMEM). auto - 32k, or RNDV_THRESHOLD if
        that is less.

    - name        : MPIR_CVAR_CH4_ZC_LANDING_THRESHOLD
      category    : CH4_ZC
      type        : string
      default     : "32k"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Announced messages of at least this many bytes that arrive before their
        receive is posted are fetched at once, into landing memory. inf: never.

    - name        : MPIR_CVAR_CH4_ZC_LANDING_BUDGET
      category    : CH4_ZC
      type        : string
      default     : "256m"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Landing memory of this process in bytes, never exceeded. When it is
        spent, further messages stay with their senders.

    - name        : MPIR_CVAR_CH4_ZC_NETWORK_RATE
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Bytes per second at which messages come from other hosts. One that comes before its
        receive stays with its sender where that is faster than deliveries from landing
        memory have been. auto - as measured, by size; 1 - everything lands; inf - once
        three deliveries of its size have been measured, one in 32.

    - name        : MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET
      category    : CH4_ZC
      type        : string
      default     : "256m"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Memory of this process in bytes for messages below RNDV_THRESHOLD that arrive
        before their receive is posted. When it is spent, further ones are only
        announced, and stay with their senders until they are received. inf: no limit.

    - name        : MPIR_CVAR_CH4_ZC_LANDING_THREAD
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Whether a thread lands messages, and advances all else, while the application
        is outside MPI. 1, 0, or auto - yes while each process of the job on this host,
        spawned ones included, could have a processor of those that it is bound to.

    - name        : MPIR_CVAR_CH4_ZC_BACKEND
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        How landed messages reach the user buffer. auto - the cheapest means;
        mremap - page tables or a copy; kmod - pages by the kernel module, or a
        copy; copy - always a copy.

    - name        : MPIR_CVAR_CH4_ZC_ALLOW_DEVICES
      category    : CH4_ZC
      type        : boolean
      default     : false
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Whether page tables are moved although the process uses NVIDIA's driver, VFIO or
        KNEM, which hold pages and do not count them (zc(7)). Only for programs that never
        receive into memory which they have registered there.

    - name        : MPIR_CVAR_CH4_ZC_COST_FILE
      category    : CH4_ZC
      type        : string
      default     : ""
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        If set, what rebinding and copying cost is read from this file, which
        zc-info --calibrate-to writes, and not measured in the process.

    - name        : MPIR_CVAR_CH4_ZC_INTRA_NODE
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Whether messages from processes of this world on this host land, too. 1, 0, or
        auto, which is 1.

    - name        : MPIR_CVAR_CH4_ZC_NATIVE_RMA
      category    : CH4_ZC
      type        : boolean
      default     : true
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_ALL_EQ
      description : >-
        Whether contiguous puts and gets go to the target's memory by UCX. If
        not, and for all else, handlers at the target do the work.

    - name        : MPIR_CVAR_CH4_ZC_NATIVE_ATOMICS
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_ALL_EQ
      description : >-
        With NATIVE_RMA, whether UCX does the accumulates of windows that promise
        what it needs (docs/design.md). 1, 0, or auto: where all of a window share
        memory. Over TCP, UCX takes two round trips where a message takes one.

    - name        : MPIR_CVAR_CH4_ZC_BUNDLE
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Whether nonblocking sends of short messages to one process of another host, one
        after the other, leave in one packet. 0, 1, or auto - while the application
        waits for them at once. Only where the landing thread runs.

    - name        : MPIR_CVAR_CH4_ZC_BULK_APART
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Whether messages that are announced leave over connections of their own, one for
        each direction, so that nothing else waits behind them. 0, 1, or auto - where
        UCX reaches other hosts over TCP only, and ulimit -n allows 128 descriptors and three
        (with LANE, four) for each rank of another host and VCI; the soft limit is raised
        for that.

    - name        : MPIR_CVAR_CH4_ZC_LANE
      category    : CH4_ZC
      type        : string
      default     : "ucx"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_ALL
      description : >-
        By what announced messages go to other hosts. ucx - UCX's connections; thread -
        those of libzclane, served by the application and the landing thread; auto -
        thread where UCX reaches other hosts over TCP only, else ucx.

    - name        : MPIR_CVAR_CH4_ZC_PREDICTOR
      category    : CH4_ZC
      type        : string
      default     : "default"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Which predictor names the buffer of an unexpected message. default,
        graph, dpd, last, last-size or offset.

    - name        : MPIR_CVAR_CH4_ZC_HORIZON
      category    : CH4_ZC
      type        : int
      default     : 16
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        How many of the next predicted receives are searched for an unexpected
        message, at least 1.

    - name        : MPIR_CVAR_CH4_ZC_STATS
      category    : CH4_ZC
      type        : boolean
      default     : false
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_ALL_EQ
      description : >-
        Prints a table of messages and bytes direct, rebound and copied at
        finalize, on the standard error of rank 0.

    - name        : MPIR_CVAR_CH4_ZC_STATS_FILE
      category    : CH4_ZC
      type        : string
      default     : ""
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        If set, every rank writes its statistics at finalize as one JSON object
        to this name followed by .RANK.json.

=== END_MPI_T_CVAR_INFO_BLOCK ===
*/

ucs_status_t MPIDI_ZC_teardown_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param);
void MPIDI_ZC_free_all(void);

/* Every process has one for each rank of the job; those of all netmods share its memory. */
_Static_assert(sizeof(MPIDI_av_entry_t) <= 72, "an entry of the address vector has grown");

/* ---- parameters ---- */

static int parse_size(const char *name, const char *text, size_t automatic, size_t * out)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_ERR_CHKANDJUMP2(zc_parse_size(text, out) != 0, mpi_errno, MPI_ERR_OTHER, "**zc_param",
                         "**zc_param %s %s", name, text);
    if (*out == 0) {
        *out = automatic;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int parse_means(uint32_t * means)
{
    int mpi_errno = MPI_SUCCESS;
    const char *text = MPIR_CVAR_CH4_ZC_BACKEND;
    const uint32_t copy = 1u << ZC_MEANS_COPY;

    if (!strcmp(text, "auto")) {
        *means = 0;
    } else if (!strcmp(text, "mremap")) {
        *means = copy | 1u << ZC_MEANS_MREMAP;
    } else if (!strcmp(text, "kmod")) {
        *means = copy | 1u << ZC_MEANS_KMOD;
    } else if (!strcmp(text, "copy")) {
        *means = copy;
    } else {
        MPIR_ERR_SETANDJUMP2(mpi_errno, MPI_ERR_OTHER, "**zc_param", "**zc_param %s %s",
                             "MPIR_CVAR_CH4_ZC_BACKEND", text);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int parse_switch(const char *name, const char *text, bool automatic, bool * on)
{
    int mpi_errno = MPI_SUCCESS;

    if (!strcmp(text, "auto")) {
        *on = automatic;
    } else if (!strcmp(text, "1") || !strcmp(text, "0")) {
        *on = text[0] == '1';
    } else {
        MPIR_ERR_SETANDJUMP2(mpi_errno, MPI_ERR_OTHER, "**zc_param", "**zc_param %s %s", name,
                             text);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int parse_lane(bool * channels)
{
    int mpi_errno = MPI_SUCCESS;
    const char *text = MPIR_CVAR_CH4_ZC_LANE;

    MPIR_ERR_CHKANDJUMP2(strcmp(text, "auto") && strcmp(text, "thread") && strcmp(text, "ucx"),
                         mpi_errno, MPI_ERR_OTHER, "**zc_param", "**zc_param %s %s",
                         "MPIR_CVAR_CH4_ZC_LANE", text);
    *channels = strcmp(text, "ucx");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int parse_params(MPIDI_ZC_params_t * params)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_RNDV_THRESHOLD", MPIR_CVAR_CH4_ZC_RNDV_THRESHOLD,
                           131072, &params->rndv_threshold);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_ONE_COPY_THRESHOLD",
                           MPIR_CVAR_CH4_ZC_ONE_COPY_THRESHOLD,
                           MPL_MIN((size_t) 32768, params->rndv_threshold),
                           &params->one_copy_threshold);
    MPIR_ERR_CHECK(mpi_errno);
    /* "inf", too, has to fit what a message costs: zc_flow.h. */
    params->rndv_threshold = MPL_MIN(params->rndv_threshold, MPIDI_ZC_EAGER_MAX);
    params->one_copy_threshold = MPL_MIN(params->one_copy_threshold, MPIDI_ZC_EAGER_MAX);
    params->min_threshold = MPL_MIN(params->rndv_threshold, params->one_copy_threshold);
    params->max_threshold = MPL_MAX(params->rndv_threshold, params->one_copy_threshold);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_LANDING_THRESHOLD",
                           MPIR_CVAR_CH4_ZC_LANDING_THRESHOLD, 32768, &params->landing_threshold);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_LANDING_BUDGET", MPIR_CVAR_CH4_ZC_LANDING_BUDGET,
                           256u << 20, &params->landing_budget);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_NETWORK_RATE", MPIR_CVAR_CH4_ZC_NETWORK_RATE, 0,
                           &params->network_rate);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET",
                           MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET, 256u << 20,
                           &params->unexpected_budget);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_means(&params->means);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_switch("MPIR_CVAR_CH4_ZC_LANDING_THREAD", MPIR_CVAR_CH4_ZC_LANDING_THREAD,
                             false, &params->landing_thread);
    MPIR_ERR_CHECK(mpi_errno);
    params->landing_thread_rests = !strcmp(MPIR_CVAR_CH4_ZC_LANDING_THREAD, "auto");
    mpi_errno = parse_switch("MPIR_CVAR_CH4_ZC_INTRA_NODE", MPIR_CVAR_CH4_ZC_INTRA_NODE, true,
                             &params->intra_node);
    MPIR_ERR_CHECK(mpi_errno);

    mpi_errno = parse_switch("MPIR_CVAR_CH4_ZC_NATIVE_ATOMICS", MPIR_CVAR_CH4_ZC_NATIVE_ATOMICS,
                             true, &params->atomics);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_switch("MPIR_CVAR_CH4_ZC_BUNDLE", MPIR_CVAR_CH4_ZC_BUNDLE, true,
                             &params->bundle);
    MPIR_ERR_CHECK(mpi_errno);
    params->bundle_always = !strcmp(MPIR_CVAR_CH4_ZC_BUNDLE, "1");
    params->far_atomics = !strcmp(MPIR_CVAR_CH4_ZC_NATIVE_ATOMICS, "1");

    mpi_errno = parse_switch("MPIR_CVAR_CH4_ZC_BULK_APART", MPIR_CVAR_CH4_ZC_BULK_APART,
                             true, &params->bulk_apart);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_lane(&params->channels);
    MPIR_ERR_CHECK(mpi_errno);

    int kind = zcp_kind_parse(MPIR_CVAR_CH4_ZC_PREDICTOR);
    MPIR_ERR_CHKANDJUMP2(kind < 0, mpi_errno, MPI_ERR_OTHER, "**zc_param", "**zc_param %s %s",
                         "MPIR_CVAR_CH4_ZC_PREDICTOR", MPIR_CVAR_CH4_ZC_PREDICTOR);
    params->predictor = kind;
    MPIR_ERR_CHKANDJUMP2(MPIR_CVAR_CH4_ZC_HORIZON < 1, mpi_errno, MPI_ERR_OTHER, "**zc_param",
                         "**zc_param %s %s", "MPIR_CVAR_CH4_ZC_HORIZON", "less than 1");
    params->horizon = MPIR_CVAR_CH4_ZC_HORIZON;

    /* MPI_T_finalize takes strings away from a running MPI. */
    params->calibrate = !*MPIR_CVAR_CH4_ZC_COST_FILE;
    if (*MPIR_CVAR_CH4_ZC_STATS_FILE) {
        params->stats_file = MPL_strdup(MPIR_CVAR_CH4_ZC_STATS_FILE);
        MPIR_ERR_CHKANDJUMP(!params->stats_file, mpi_errno, MPI_ERR_OTHER, "**nomem");
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

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

static void learn_to_wait(void)
{
    const MPIDI_ZC_share_t share = MPIDI_ZC_processors_of_machine();

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(v).idle, share.kind == MPIDI_ZC_SHARE_CROWDED);
    }
    MPIDU_waiting_places(share.processors);
}

/* ---- UCX ---- */

int MPIDI_ZC_set_handler(MPIDI_ZC_vci_t * vci, unsigned id, ucp_am_recv_callback_t callback)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = callback,
        .arg = vci,
    };
    ucs_status_t status = ucp_worker_set_am_recv_handler(vci->worker, &param);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_set_am_recv_handler");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* May each rank of another host have @each connections? With few descriptors it is
 * UCX that runs out of them, when a peer connects, and loses it. Up to the hard limit more can be
 * had. */
static bool descriptors_suffice(rlim_t each)
{
    enum { OTHERS = 128 };
    const rlim_t far = MPIR_Process.size -
        (MPIDI_ZC_global.transport.shared_memory ? MPIR_Process.local_size : 1);
    const rlim_t wanted = OTHERS + each * far * (rlim_t) MPIDI_global.n_vcis;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return true;
    }
    if (limit.rlim_max >= wanted) {
        limit.rlim_cur = wanted;
        return setrlimit(RLIMIT_NOFILE, &limit) == 0;
    }
    return false;
}

/* What "auto" means for connections that bulk has to itself. */
static void choose_connections(MPIDI_ZC_params_t * params)
{
    const bool auto_channels = !strcmp(MPIR_CVAR_CH4_ZC_LANE, "auto");
    const bool auto_apart = !strcmp(MPIR_CVAR_CH4_ZC_BULK_APART, "auto");
    const bool streams = MPIDI_ZC_global.transport.streams;
    /* UCX's connections, and the channel. */
    const rlim_t each = params->channels ? 4 : 3;
    const bool suffice = !streams || !(auto_channels || auto_apart) || descriptors_suffice(each);

    if (auto_channels) {
        params->channels = streams && suffice;
    }
    if (auto_apart) {
        params->bulk_apart = streams && suffice;
    }
    if ((auto_channels || auto_apart) && !suffice && MPIR_Process.rank == 0) {
        fprintf(stderr, "zc: bulk goes over the connections of all else: too few descriptors"
                " (ulimit -n) for others\n");
    }
}

static int init_context(void)
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
    status = ucp_init(&params, config, &MPIDI_ZC_global.context);
    ucp_config_release(config);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_init");
    MPIDI_ZC_transport_find(&MPIDI_ZC_global.transport);
    choose_connections(&MPIDI_ZC_global.params);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int init_worker(MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,      /* by the lock of the VCI and the gate */
    };
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER };

    MPIDI_ZC_bundle_init(vci);
    MPIDI_ZC_unexpected_init(&vci->unexpected, MPIR_TAG_MASK_ERROR_BITS(INT_MAX));
    ucs_status_t status = ucp_worker_create(MPIDI_ZC_global.context, &params, &vci->worker);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_create");
    status = ucp_worker_query(vci->worker, &attr);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_query");
    MPIDI_ZC_global.max_am_header = attr.max_am_header - sizeof(MPIDI_ZC_am_header_t);
    status = ucp_worker_get_address(vci->worker, &vci->address, &vci->address_length);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_get_address");

    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_MESSAGE, MPIDI_ZC_am_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_EAGER, MPIDI_ZC_am_eager_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_BUNDLE, MPIDI_ZC_am_bundle_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_CREDIT, MPIDI_ZC_credit_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_OFFER, MPIDI_ZC_offer_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_PULL, MPIDI_ZC_pull_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_DATA, MPIDI_ZC_data_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_CHANNEL, MPIDI_ZC_channel_handler);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* VCI 0 is also where processes say what is not CH4's. */
static int set_own_handlers(MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_TEARDOWN, MPIDI_ZC_teardown_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_REPORT, MPIDI_ZC_report_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_DYNAMIC, MPIDI_ZC_dynamic_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_BYE, MPIDI_ZC_bye_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_NEAR, MPIDI_ZC_near_handler);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_set_handler(vci, MPIDI_ZC_AM_NUMBERED, MPIDI_ZC_numbered_handler);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int init_vcis(void)
{
    int mpi_errno = MPI_SUCCESS;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        mpi_errno = init_worker(vci);
        MPIR_ERR_CHECK(mpi_errno);
        if (v > 0) {
            vci->lanes = MPL_calloc(MPIR_Process.size, sizeof(*vci->lanes), MPL_MEM_ADDRESS);
            MPIR_ERR_CHKANDJUMP(!vci->lanes, mpi_errno, MPI_ERR_OTHER, "**nomem");
        }
    }
    mpi_errno = set_own_handlers(&MPIDI_ZC_VCI(0));
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* What a process puts into CH4's table, before its mask of processors and its upid. */
typedef struct {
    uint32_t upid_length;
    uint16_t nr_vcis;
    uint16_t mask_words;
    int32_t window;             /* that it gives each sender: zc_flow.h */
    int32_t unused;
} entry_t;

static const uint64_t *mask_in(const entry_t * entry)
{
    return (const uint64_t *) (entry + 1);
}

static const MPIDI_ZC_upid_t *upid_in(const entry_t * entry)
{
    return (const MPIDI_ZC_upid_t *) (mask_in(entry) + entry->mask_words);
}

/* Memory for a table that all ranks of this host have the same of: one for all of them. The first of
 * them fills it, then all call MPIDU_Init_shm_barrier(). */
static int new_table(size_t size, size_t stride, void *table)
{
    return MPIDU_Init_shm_alloc(size * stride, table);
}

static bool fills_tables(void)
{
    return MPIR_Process.local_rank == 0;
}

/* CH4's table has 4 KiB for each rank, of which an address takes a few hundred bytes:
 * what is kept, for the day when somebody outside this world wants to connect, is as
 * wide as the longest. @table: for each rank an entry. */
static int keep_addresses(const char *table, size_t table_stride)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t size = MPIR_Process.size;
    size_t stride = 0;

    for (size_t rank = 0; rank < size; rank++) {
        const entry_t *entry = (const entry_t *) (table + rank * table_stride);
        stride = MPL_MAX(stride, (entry->upid_length + 7) & ~(size_t) 7);
        MPIR_ERR_CHKANDJUMP3((int) entry->nr_vcis != MPIDI_global.n_vcis, mpi_errno, MPI_ERR_OTHER,
                             "**zc_vcis", "**zc_vcis %d %d %d", MPIDI_global.n_vcis,
                             (int) entry->nr_vcis, (int) rank);
    }
    mpi_errno = new_table(size, stride, &MPIDI_ZC_global.world);
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_global.world_stride = stride;
    for (size_t rank = 0; rank < size && fills_tables(); rank++) {
        const entry_t *entry = (const entry_t *) (table + rank * table_stride);
        char *upid = (char *) MPIDI_ZC_global.world + rank * stride;
        memset(upid, 0, stride);
        memcpy(upid, upid_in(entry), entry->upid_length);
    }
    mpi_errno = MPIDU_Init_shm_barrier();
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Ranks of this machine that MPICH does not take for this host's: of other containers, or where
 * it is told to pretend. */
static int note_neighbours(const char *table, size_t table_stride)
{
    int mpi_errno = MPI_SUCCESS;
    const int self = MPIR_Process.rank;

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        const entry_t *entry = (const entry_t *) (table + rank * table_stride);
        if (MPIR_Process.node_map[rank] != MPIR_Process.node_map[self] &&
            MPIDI_ZC_same_machine(upid_in(entry)->host, MPIDI_ZC_upid_of(self)->host)) {
            MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_processors_add(mask_in(entry), entry->mask_words, false),
                                mpi_errno, MPI_ERR_OTHER, "**nomem");
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The one of each VCI that we give rank @rank, and the credit that it gives us. */
static void open_windows(int rank, const entry_t * entry)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_lane_t *lane = v == 0 ? &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank)).lane :
            &MPIDI_ZC_VCI(v).lanes[rank];
        lane->credit = entry->window;
        lane->inbound.window = MPIDI_ZC_global.window;
    }
}

/* Everybody learns everybody's address; endpoints come later: zc_peer.h. */
static int exchange_addresses(void)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(0);
    void *table = NULL;
    int stride, words;
    const uint64_t *mask = MPIDI_ZC_processors_own(&words);
    const size_t length = sizeof(MPIDI_ZC_upid_t) + vci->address_length;
    const size_t total = sizeof(entry_t) + words * sizeof(*mask) + length;
    entry_t *entry;
    MPIDI_ZC_upid_t *mine;
    MPIR_CHKLMEM_DECL(1);

    MPIR_CHKLMEM_MALLOC(entry, entry_t *, total, mpi_errno, "upid", MPL_MEM_ADDRESS);
    *entry = (entry_t) {
        .upid_length = length,
        .nr_vcis = MPIDI_global.n_vcis,
        .mask_words = words,
        .window = MPIDI_ZC_global.window,
    };
    memcpy((uint64_t *) mask_in(entry), mask, words * sizeof(*mask));
    mine = (MPIDI_ZC_upid_t *) upid_in(entry);
    mpi_errno = MPIDI_ZC_upid_draw(&mine->id);
    MPIR_ERR_CHECK(mpi_errno);
    mine->host = MPIDI_ZC_own_host();
    if (MPIR_CVAR_NOLOCAL) {
        mine->host = mine->host >> 32 << 32 | (uint32_t) mine->id;
    }
    memcpy(mine->address, vci->address, vci->address_length);
    mpi_errno = MPIDU_bc_table_create(MPIR_Process.rank, MPIR_Process.size, MPIR_Process.node_map,
                                      entry, (int) total, FALSE, FALSE, &table, &stride);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = keep_addresses(table, stride);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = note_neighbours(table, stride);
    MPIR_ERR_CHECK(mpi_errno);
    learn_to_wait();

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_AV(&MPIDIU_get_av(0, rank)) = (MPIDI_ZC_addr_t) {.self = MPIR_Process.rank };
        open_windows(rank, (const entry_t *) ((char *) table + (size_t) rank * stride));
    }

  fn_exit:
    if (table) {
        MPIDU_bc_table_destroy();
    }
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The same for the workers of the other VCIs, if there are any, over that of VCI 0. */
static int exchange_lane_addresses(void)
{
    int mpi_errno = MPI_SUCCESS;
    const int nr_others = MPIDI_global.n_vcis - 1;
    MPIR_Comm *comm = MPIR_Process.comm_world;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int longest = 0, stride;
    char *all = NULL;

    for (int v = 1; v <= nr_others; v++) {
        longest = MPL_MAX(longest, (int) MPIDI_ZC_VCI(v).address_length);
    }
    mpi_errno = MPIR_Allreduce_allcomm_auto(&longest, &stride, 1, MPI_INT, MPI_MAX, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    stride = (stride + 7) & ~7;

    const size_t row = (size_t) nr_others * stride;
    MPIDI_ZC_global.lane_stride = stride;
    all = MPL_calloc(MPIR_Process.size, row, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!all, mpi_errno, MPI_ERR_OTHER, "**nomem");
    char *mine = all + MPIR_Process.rank * row;
    for (int v = 1; v <= nr_others; v++) {
        const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        memcpy(mine + (v - 1) * (size_t) stride, vci->address, vci->address_length);
    }
    mpi_errno = MPIR_Allgather_allcomm_auto(MPI_IN_PLACE, 0, MPI_BYTE, all, row, MPI_BYTE, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    mpi_errno = new_table(MPIR_Process.size, row, &MPIDI_ZC_global.lane_addresses);
    MPIR_ERR_CHECK(mpi_errno);
    if (fills_tables()) {
        memcpy(MPIDI_ZC_global.lane_addresses, all, MPIR_Process.size * row);
    }
    mpi_errno = MPIDU_Init_shm_barrier();
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(all);
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
    mpi_errno = parse_params(&MPIDI_ZC_global.params);
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

/* How the budget for unexpected messages is divided: zc_flow.h. */
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
    mpi_errno = init_context();
    MPIR_ERR_CHECK(mpi_errno);
    init_flow();
    mpi_errno = init_vcis();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = exchange_addresses();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDIU_avt_free_hook = MPIDI_ZC_foreign_detach;
    MPIDIU_foreign_node_hook = MPIDI_ZC_foreign_node;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_post_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    if (MPIDI_global.n_vcis > 1) {
        mpi_errno = exchange_lane_addresses();
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

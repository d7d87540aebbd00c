/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sched.h>
#include "mpidu_bc.h"
#include "zc_impl.h"
#include "zc_foreign.h"
#include "zc_landing_thread.h"
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

    - name        : MPIR_CVAR_CH4_ZC_LANDING_THREAD
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_BASIC
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        Whether a thread lands messages while the application is outside MPI.
        1, 0, or auto - yes while this process may run on more processors than
        there are processes of the job on this host, spawned ones included.

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
_Static_assert(sizeof(MPIDI_av_entry_t) <= 64, "an entry of the address vector has grown");

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

/* A processor to spare: one that no process of the job on this host needs. */
static bool processor_to_spare(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return false;
    }
    return CPU_COUNT(&set) > MPIR_Process.local_size;
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
    params->min_threshold = MPL_MIN(params->rndv_threshold, params->one_copy_threshold);
    params->max_threshold = MPL_MAX(params->rndv_threshold, params->one_copy_threshold);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_LANDING_THRESHOLD",
                           MPIR_CVAR_CH4_ZC_LANDING_THRESHOLD, 32768, &params->landing_threshold);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_size("MPIR_CVAR_CH4_ZC_LANDING_BUDGET", MPIR_CVAR_CH4_ZC_LANDING_BUDGET,
                           256u << 20, &params->landing_budget);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_means(&params->means);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = parse_switch("MPIR_CVAR_CH4_ZC_LANDING_THREAD", MPIR_CVAR_CH4_ZC_LANDING_THREAD,
                             processor_to_spare(), &params->landing_thread);
    MPIR_ERR_CHECK(mpi_errno);
    params->landing_thread_rests = !strcmp(MPIR_CVAR_CH4_ZC_LANDING_THREAD, "auto");
#ifndef MPICH_IS_THREADED
    params->landing_thread = false;
#endif
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

/* What a process puts into CH4's table, before its upid. */
typedef struct {
    uint32_t upid_length;
    uint32_t nr_vcis;
} entry_t;

/* CH4's table has 4 KiB for each rank, of which an address takes a few hundred bytes:
 * what is kept, for the day when somebody outside this world wants to connect, is as
 * wide as the longest. @table: for each rank an entry_t and its upid. */
static int keep_addresses(const char *table, size_t table_stride)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t size = MPIR_Process.size;
    size_t stride = 0;
    entry_t entry;

    for (size_t rank = 0; rank < size; rank++) {
        memcpy(&entry, table + rank * table_stride, sizeof(entry));
        stride = MPL_MAX(stride, (entry.upid_length + 7) & ~(size_t) 7);
        MPIR_ERR_CHKANDJUMP3((int) entry.nr_vcis != MPIDI_global.n_vcis, mpi_errno, MPI_ERR_OTHER,
                             "**zc_vcis", "**zc_vcis %d %d %d", MPIDI_global.n_vcis,
                             (int) entry.nr_vcis, (int) rank);
    }
    MPIDI_ZC_global.world = MPL_calloc(size, stride, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_global.world, mpi_errno, MPI_ERR_OTHER, "**nomem");
    MPIDI_ZC_global.world_stride = stride;
    for (size_t rank = 0; rank < size; rank++) {
        memcpy(&entry, table + rank * table_stride, sizeof(entry));
        memcpy((char *) MPIDI_ZC_global.world + rank * stride,
               table + rank * table_stride + sizeof(entry), entry.upid_length);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Everybody learns everybody's address; endpoints come later: zc_peer.h. */
static int exchange_addresses(void)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(0);
    void *table = NULL;
    int stride;
    const size_t length = sizeof(MPIDI_ZC_upid_t) + vci->address_length;
    const entry_t head = {.upid_length = length,.nr_vcis = MPIDI_global.n_vcis };
    char *entry;
    MPIDI_ZC_upid_t *mine;
    MPIR_CHKLMEM_DECL(1);

    MPIR_CHKLMEM_MALLOC(entry, char *, sizeof(head) + length, mpi_errno, "upid", MPL_MEM_ADDRESS);
    memcpy(entry, &head, sizeof(head));
    mine = (MPIDI_ZC_upid_t *) (entry + sizeof(head));
    mpi_errno = MPIDI_ZC_upid_draw(&mine->id);
    MPIR_ERR_CHECK(mpi_errno);
    mine->host = MPIDI_ZC_own_host();
    if (MPIR_CVAR_NOLOCAL) {
        mine->host = mine->host >> 32 << 32 | (uint32_t) mine->id;
    }
    memcpy(mine->address, vci->address, vci->address_length);
    mpi_errno = MPIDU_bc_table_create(MPIR_Process.rank, MPIR_Process.size, MPIR_Process.node_map,
                                      entry, (int) (sizeof(head) + length), FALSE, FALSE, &table,
                                      &stride);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = keep_addresses(table, stride);
    MPIR_ERR_CHECK(mpi_errno);

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_AV(&MPIDIU_get_av(0, rank)) = (MPIDI_ZC_addr_t) {.self = MPIR_Process.rank };
        if (MPIDI_ZC_same_machine(MPIDI_ZC_upid_of(rank)->host, mine->host)) {
            for (int v = 0; v < MPIDI_global.n_vcis; v++) {
                MPIDI_ZC_idle_add_ranks(&MPIDI_ZC_VCI(v).idle, 1);
            }
        }
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
    char *mine;

    for (int v = 1; v <= nr_others; v++) {
        longest = MPL_MAX(longest, (int) MPIDI_ZC_VCI(v).address_length);
    }
    mpi_errno = MPIR_Allreduce_allcomm_auto(&longest, &stride, 1, MPI_INT, MPI_MAX, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    stride = (stride + 7) & ~7;

    const size_t row = (size_t) nr_others * stride;
    MPIDI_ZC_global.lane_stride = stride;
    MPIDI_ZC_global.lane_addresses = MPL_calloc(MPIR_Process.size, row, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_global.lane_addresses, mpi_errno, MPI_ERR_OTHER, "**nomem");
    mine = MPIDI_ZC_global.lane_addresses + MPIR_Process.rank * row;
    for (int v = 1; v <= nr_others; v++) {
        const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        memcpy(mine + (v - 1) * (size_t) stride, vci->address, vci->address_length);
    }
    mpi_errno = MPIR_Allgather_allcomm_auto(MPI_IN_PLACE, 0, MPI_BYTE,
                                            MPIDI_ZC_global.lane_addresses, row, MPI_BYTE, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");

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
        MPIDI_ZC_idle_init(&MPIDI_ZC_VCI(v).idle);
    }
    mpi_errno = parse_params(&MPIDI_ZC_global.params);
    MPIR_ERR_CHECK(mpi_errno);

    /* Before UCX has a thread. */
    if (MPIDI_ZC_global.params.landing_thread &&
        MPIR_ThreadInfo.thread_provided != MPI_THREAD_MULTIPLE) {
        (void) MPIDU_device_gate_prepare();
    }
    mpi_errno = init_landing(&MPIDI_ZC_global.params);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = init_context();
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

int MPIDI_ZC_init_world(void)
{
    int mpi_errno = MPI_SUCCESS;

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

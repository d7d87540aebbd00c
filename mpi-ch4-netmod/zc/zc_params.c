/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <stddef.h>
#include <sys/resource.h>
#include "zc_impl.h"
#include "zc_flow.h"
#include "zc_params.h"

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
        memory. Over TCP, UCX takes two round trips where a message takes one. Not where
        ranks may leave (DETACH), nor across hosts in a window of several worlds.

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
        each direction, so that nothing else waits behind them. 0; 1; or auto - where
        UCX reaches other hosts over TCP only, and ulimit -n allows 128 descriptors and three
        (with LANE four, with DETACH six) for each rank of another host and VCI; the soft
        limit is raised for that. With auto the first 4 MiB to a process (of each VCI, and after
        it has come back) take the connection that there is, since it takes time to make others.

    - name        : MPIR_CVAR_CH4_ZC_LANE
      category    : CH4_ZC
      type        : string
      default     : "auto"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_ALL
      description : >-
        By what announced messages travel to other hosts. ucx - UCX's connections; thread -
        those of libzclane, served by the application and the landing thread; auto -
        thread where UCX reaches other hosts over TCP only, and ulimit -n allows 128
        descriptors and four for each rank of another host and VCI, else ucx; the soft limit
        is raised for that.

    - name        : MPIR_CVAR_CH4_ZC_DETACH
      category    : CH4_ZC
      type        : string
      default     : "0"
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_ALL_EQ
      description : >-
        Whether a rank may be told to give up all that it has of UCX while the others go on,
        and to come back with another address (docs/detached-ranks.md). 1 or 0. With 1 the
        connections of UCX report errors, and carry all bulk (LANE is ucx).

    - name        : MPIR_CVAR_CH4_ZC_DETACH_FD
      category    : CH4_ZC
      type        : int
      default     : -1
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        With DETACH, the descriptor of a socket over which this rank is told so.
        -1: it never is.

    - name        : MPIR_CVAR_CH4_ZC_DETACH_SECONDS
      category    : CH4_ZC
      type        : int
      default     : 10
      class       : none
      verbosity   : MPI_T_VERBOSITY_USER_DETAIL
      scope       : MPI_T_SCOPE_LOCAL
      description : >-
        A rank that has been told to leave refuses, and goes on, unless all others have
        answered within this time, at least 1.

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

/* ---- the table ---- */

typedef struct {
    const char *word;           /* NULL: the end */
    uint32_t value;
} choice_t;

enum { MEANS_COPY = 1u << ZC_MEANS_COPY };

static const choice_t switches[] = {{"0", false}, {"1", true}, {NULL, 0}};

static const choice_t backends[] = {
    {"auto", 0},
    {"mremap", MEANS_COPY | 1u << ZC_MEANS_MREMAP},
    {"kmod", MEANS_COPY | 1u << ZC_MEANS_KMOD},
    {"copy", MEANS_COPY},
    {NULL, 0},
};

/* "auto": unless MPIDI_ZC_params_choose_connections() finds otherwise. */
static const choice_t lanes[] = {{"auto", true}, {"thread", true}, {"ucx", false}, {NULL, 0}};

typedef struct {
    const char *name;
    const char *const *text;    /* what MPICH has read */
    const choice_t *choices;    /* one of these words; NULL: a size */
    size_t automatic;           /* the value of "auto", where no choice has it */
    size_t field, width;        /* of MPIDI_ZC_params_t, bytes */
} option_t;

#define OPTION(cvar, field, choices, automatic)                                \
    {"MPIR_CVAR_CH4_ZC_" #cvar, (const char *const *) &MPIR_CVAR_CH4_ZC_##cvar, \
     choices, automatic, offsetof(MPIDI_ZC_params_t, field),                   \
     sizeof(((MPIDI_ZC_params_t *) NULL)->field)}

static const option_t options[] = {
    OPTION(RNDV_THRESHOLD, rndv_threshold, NULL, 131072),
    OPTION(ONE_COPY_THRESHOLD, one_copy_threshold, NULL, 32768),
    OPTION(LANDING_THRESHOLD, landing_threshold, NULL, 32768),
    OPTION(LANDING_BUDGET, landing_budget, NULL, 256u << 20),
    OPTION(NETWORK_RATE, network_rate, NULL, 0),
    OPTION(UNEXPECTED_BUDGET, unexpected_budget, NULL, 256u << 20),
    OPTION(BACKEND, means, backends, 0),
    OPTION(LANDING_THREAD, landing_thread, switches, false),
    OPTION(INTRA_NODE, intra_node, switches, true),
    OPTION(NATIVE_ATOMICS, atomics, switches, true),
    OPTION(BUNDLE, bundle, switches, true),
    OPTION(BULK_APART, bulk_apart, switches, true),
    OPTION(LANE, channels, lanes, true),
    OPTION(DETACH, detach, switches, false),
};

/* False: @text is not a value of @option. */
static bool parse(const option_t * option, const char *text, size_t * value)
{
    if (!option->choices) {
        const bool valid = zc_parse_size(text, value) == 0;
        /* "auto" */
        if (valid && *value == 0) {
            *value = option->automatic;
        }
        return valid;
    }
    for (const choice_t * choice = option->choices; choice->word; choice++) {
        if (!strcmp(text, choice->word)) {
            *value = choice->value;
            return true;
        }
    }
    *value = option->automatic;
    return !strcmp(text, "auto");
}

static void store(MPIDI_ZC_params_t * params, const option_t * option, size_t value)
{
    void *field = (char *) params + option->field;

    switch (option->width) {
        case sizeof(bool):
            *(bool *) field = value;
            break;
        case sizeof(uint32_t):
            *(uint32_t *) field = value;
            break;
        default:
            *(size_t *) field = value;
    }
}

_Static_assert(sizeof(bool) != sizeof(uint32_t) && sizeof(uint32_t) != sizeof(size_t),
               "store() distinguishes types by their widths");

/* ---- what depends on several ---- */

static bool is_word(const char *text, const char *word)
{
    return !strcmp(text, word);
}

static void set_thresholds(MPIDI_ZC_params_t * params)
{
    if (is_word(MPIR_CVAR_CH4_ZC_ONE_COPY_THRESHOLD, "auto")) {
        params->one_copy_threshold = MPL_MIN(params->one_copy_threshold, params->rndv_threshold);
    }
    /* "inf", too, has to fit what a message costs: zc_flow.h. */
    params->rndv_threshold = MPL_MIN(params->rndv_threshold, MPIDI_ZC_EAGER_MAX);
    params->one_copy_threshold = MPL_MIN(params->one_copy_threshold, MPIDI_ZC_EAGER_MAX);
    params->min_threshold = MPL_MIN(params->rndv_threshold, params->one_copy_threshold);
    params->max_threshold = MPL_MAX(params->rndv_threshold, params->one_copy_threshold);
}

static int set_prediction(MPIDI_ZC_params_t * params)
{
    int mpi_errno = MPI_SUCCESS;
    const int kind = zcp_kind_parse(MPIR_CVAR_CH4_ZC_PREDICTOR);

    MPIR_ERR_CHKANDJUMP2(kind < 0, mpi_errno, MPI_ERR_OTHER, "**zc_param", "**zc_param %s %s",
                         "MPIR_CVAR_CH4_ZC_PREDICTOR", MPIR_CVAR_CH4_ZC_PREDICTOR);
    MPIR_ERR_CHKANDJUMP2(MPIR_CVAR_CH4_ZC_HORIZON < 1, mpi_errno, MPI_ERR_OTHER, "**zc_param",
                         "**zc_param %s %s", "MPIR_CVAR_CH4_ZC_HORIZON", "less than 1");
    params->predictor = kind;
    params->horizon = MPIR_CVAR_CH4_ZC_HORIZON;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_params_parse(MPIDI_ZC_params_t * params)
{
    int mpi_errno = MPI_SUCCESS;

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        const option_t *option = &options[i];
        size_t value;
        MPIR_ERR_CHKANDJUMP2(!parse(option, *option->text, &value), mpi_errno, MPI_ERR_OTHER,
                             "**zc_param", "**zc_param %s %s", option->name, *option->text);
        store(params, option, value);
    }
    set_thresholds(params);
    mpi_errno = set_prediction(params);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP2(MPIR_CVAR_CH4_ZC_DETACH_SECONDS < 1, mpi_errno, MPI_ERR_OTHER,
                         "**zc_param", "**zc_param %s %s", "MPIR_CVAR_CH4_ZC_DETACH_SECONDS",
                         "less than 1");
    params->landing_thread_rests = is_word(MPIR_CVAR_CH4_ZC_LANDING_THREAD, "auto");
    params->bundle_always = is_word(MPIR_CVAR_CH4_ZC_BUNDLE, "1");
    params->far_atomics = is_word(MPIR_CVAR_CH4_ZC_NATIVE_ATOMICS, "1");

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

/* ---- connections ---- */

/* Is the limit of descriptors @wanted at least? Raises the soft limit if that helps. */
static bool have_descriptors(rlim_t wanted)
{
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

/* Returns the descriptors that are wanted for @each connections to each rank of another host, and
 * for what else a process has open. */
static rlim_t descriptors_of_world(rlim_t each)
{
    enum { OTHERS = 128 };
    const rlim_t far = MPIR_Process.size -
        (MPIDI_ZC_global.transport.shared_memory ? MPIR_Process.local_size : 1);
    return OTHERS + each * far * (rlim_t) MPIDI_global.n_vcis;
}

/* Do the descriptors suffice for @each connections to each rank of another host? If not, UCX would
 * run out of them when a peer connects, and would lose the peer. */
static bool descriptors_suffice(rlim_t each)
{
    return have_descriptors(descriptors_of_world(each));
}

bool MPIDI_ZC_params_descriptors_suffice(int foreign)
{
    return have_descriptors(descriptors_of_world(4) + 4 * (rlim_t) foreign);
}

void MPIDI_ZC_params_choose_connections(MPIDI_ZC_params_t * params)
{
    const bool auto_channels = !strcmp(MPIR_CVAR_CH4_ZC_LANE, "auto");
    const bool auto_apart = !strcmp(MPIR_CVAR_CH4_ZC_BULK_APART, "auto");
    const bool streams = MPIDI_ZC_global.transport.streams;

    if (params->detach) {
        params->channels = false;       /* a rank that leaves has none */
    }
    /* UCX's connections, and the channel, or those of a rank that has come back beside the old. */
    const rlim_t each = params->channels ? 4 : params->detach ? 6 : 3;
    const bool suffice = !streams || !(auto_channels || auto_apart) || descriptors_suffice(each);

    if (auto_channels && !params->detach) {
        params->channels = streams && suffice;
    }
    if (auto_apart) {
        params->bulk_apart = streams && suffice;
    }
    params->bulk_shares = auto_apart;
    if ((auto_channels || auto_apart) && !suffice && MPIR_Process.rank == 0) {
        fprintf(stderr, "zc: bulk goes over the connections of all else: too few descriptors"
                " (ulimit -n) for others\n");
    }
}

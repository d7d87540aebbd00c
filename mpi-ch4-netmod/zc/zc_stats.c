/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_counter.h"
#include "zc_foreign.h"
#include "zc_peer.h"

/* Rank 0 waits so long for the last report. */
#define GATHER_SECONDS 2.0

static MPIDI_ZC_report_t *reports;      /* rank 0: one per rank */
static int nr_reports;

/* These serve threads that read while the counters are counted, and after the end. */
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static MPIDI_ZC_report_t last;
static bool live;

/* Adds @more to @sum, which are both @bytes long and consist of uint64_t. */
static void add_words(void *sum, const void *more, size_t bytes)
{
    uint64_t *s = sum;
    const uint64_t *m = more;
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        s[i] += m[i];
    }
}

static void fill(MPIDI_ZC_report_t * report)
{
    memset(report, 0, sizeof(*report));
    report->rank = MPIR_Process.rank;
    report->landing.size = sizeof(report->landing);
    zc_stats(MPIDI_ZC_global.landing, &report->landing);
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        zcp_stats_t prediction = {.size = sizeof(prediction) };
        zcp_stats(MPIDI_ZC_VCI(v).predictor, &prediction);
        add_words(&report->prediction, &prediction, sizeof(prediction));
        add_words(&report->netmod, &MPIDI_ZC_VCI(v).stats, sizeof(report->netmod));
    }
    report->prediction.size = sizeof(report->prediction);
    report->foreign_known = MPIDI_ZC_foreign_known();
    report->netmod.window_growth = __atomic_load_n(&MPIDI_ZC_global.granted, __ATOMIC_RELAXED);
}

static void forget_reports(void)
{
    MPL_free(reports);
    reports = NULL;
    nr_reports = 0;
}

void MPIDI_ZC_report_begin(void)
{
    forget_reports();
    pthread_mutex_lock(&last_lock);
    live = true;
    pthread_mutex_unlock(&last_lock);
}

void MPIDI_ZC_report_read(MPIDI_ZC_report_t * report)
{
    pthread_mutex_lock(&last_lock);
    if (live) {
        fill(&last);
    }
    *report = last;
    pthread_mutex_unlock(&last_lock);
}

void MPIDI_ZC_report_end(void)
{
    pthread_mutex_lock(&last_lock);
    if (live) {
        fill(&last);
        live = false;
    }
    pthread_mutex_unlock(&last_lock);
}

static void write_json(FILE * file, const MPIDI_ZC_report_t * r)
{
    const char *separator = "";

    fprintf(file, "{\"rank\": %d", r->rank);
    for (int i = 0; i < MPIDI_ZC_nr_counters; i++) {
        fprintf(file, ",\n \"%s\": %llu", MPIDI_ZC_counters[i].name,
                (unsigned long long) MPIDI_ZC_counter_value(&MPIDI_ZC_counters[i], r));
    }
    fprintf(file, ",\n \"landing_thread\": %d", MPIDI_ZC_global.params.landing_thread);
    fprintf(file, ",\n \"rebound_by_means\": {\"mremap\": %llu, \"kmod\": %llu}",
            (unsigned long long) r->landing.rebound_by_means[ZC_MEANS_MREMAP],
            (unsigned long long) r->landing.rebound_by_means[ZC_MEANS_KMOD]);
    fprintf(file, ",\n \"copied_by_reason\": {");
    for (int i = ZC_REASON_NONE + 1; i < ZC_REASON_COUNT; i++) {
        if (r->landing.copied_by_reason[i] > 0) {
            fprintf(file, "%s\"%s\": %llu", separator, zc_reason_name(i),
                    (unsigned long long) r->landing.copied_by_reason[i]);
            separator = ", ";
        }
    }
    fprintf(file, "}}\n");
}

void MPIDI_ZC_report_write_file(const MPIDI_ZC_report_t * report)
{
    const char *prefix = MPIDI_ZC_global.params.stats_file;
    char path[4096], part[4096];

    if (!prefix) {
        return;
    }
    if (snprintf(path, sizeof(path), "%s.%d.json", prefix, report->rank) >= (int) sizeof(path) ||
        snprintf(part, sizeof(part), "%s.%ld.part", path, (long) getpid()) >= (int) sizeof(part)) {
        fprintf(stderr, "zc: MPIR_CVAR_CH4_ZC_STATS_FILE is too long\n");
        return;
    }
    /* Never half a file under its name: the job may be killed any time, and a spawned
     * process of the same rank may write the same. */
    FILE *file = fopen(part, "w");
    if (!file) {
        fprintf(stderr, "zc: cannot write %s: %s\n", part, strerror(errno));
        return;
    }
    write_json(file, report);
    if (fclose(file) != 0 || rename(part, path) != 0) {
        fprintf(stderr, "zc: cannot write %s: %s\n", path, strerror(errno));
    }
}

ucs_status_t MPIDI_ZC_report_handler(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length,
                                     const ucp_am_recv_param_t * param)
{
    if (reports == NULL) {
        reports = MPL_calloc(MPIR_Process.size, sizeof(*reports), MPL_MEM_OTHER);
    }
    if (reports != NULL && nr_reports < MPIR_Process.size && length == sizeof(*reports)) {
        memcpy(&reports[nr_reports++], data, length);
    }
    return UCS_OK;
}

int MPIDI_ZC_report_send(const MPIDI_ZC_report_t * report)
{
    int mpi_errno = MPI_SUCCESS;

    if (MPIR_CVAR_CH4_ZC_STATS) {
        ucp_request_param_t param = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
            .flags = UCP_AM_SEND_FLAG_EAGER,
        };
        MPIDI_ZC_addr_t *first = &MPIDI_ZC_AV(&MPIDIU_get_av(0, 0));
        mpi_errno = MPIDI_ZC_lane_endpoint(first, &first->lane, 0);
        MPIR_ERR_CHECK(mpi_errno);
        ucs_status_ptr_t request = ucp_am_send_nbx(first->lane.ep, MPIDI_ZC_AM_REPORT, NULL, 0,
                                                   report, sizeof(*report), &param);
        MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");
        MPIDI_ZC_wait(request);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static int by_rank(const void *a, const void *b)
{
    return ((const MPIDI_ZC_report_t *) a)->rank - ((const MPIDI_ZC_report_t *) b)->rank;
}

static void print_row(const char *name, const MPIDI_ZC_report_t * r)
{
    const MPIDI_ZC_stats_t *n = &r->netmod;
    const zcp_stats_t *p = &r->prediction;
    const double mib = 1024.0 * 1024.0;
    char rate[16] = "-";

    if (p->settled > 0) {
        snprintf(rate, sizeof(rate), "%.0f %%", 100.0 * p->hits / p->settled);
    }
    fprintf(stderr, "zc: %5s %9llu %8llu %8llu %11.1f %11.1f %10.1f %9s %7llu %11.1f\n", name,
            (unsigned long long) n->messages_direct, (unsigned long long) n->messages_rebound,
            (unsigned long long) n->messages_copied, n->bytes_direct / mib,
            n->bytes_rebound / mib, n->bytes_copied / mib, rate,
            (unsigned long long) n->budget_refusals, r->landing.populated_max / mib);
}

static void add_report(MPIDI_ZC_report_t * sum, const MPIDI_ZC_report_t * r)
{
    sum->netmod.messages_direct += r->netmod.messages_direct;
    sum->netmod.messages_rebound += r->netmod.messages_rebound;
    sum->netmod.messages_copied += r->netmod.messages_copied;
    sum->netmod.bytes_direct += r->netmod.bytes_direct;
    sum->netmod.bytes_rebound += r->netmod.bytes_rebound;
    sum->netmod.bytes_copied += r->netmod.bytes_copied;
    sum->netmod.budget_refusals += r->netmod.budget_refusals;
    sum->prediction.hits += r->prediction.hits;
    sum->prediction.settled += r->prediction.settled;
    sum->landing.populated_max += r->landing.populated_max;
    for (int i = 0; i < ZC_MEANS_COUNT; i++) {
        sum->landing.bytes_rebound_by_means[i] += r->landing.bytes_rebound_by_means[i];
    }
    for (int i = 0; i < ZC_REASON_COUNT; i++) {
        sum->landing.copied_by_reason[i] += r->landing.copied_by_reason[i];
    }
}

void MPIDI_ZC_report_print_all(void)
{
    MPIDI_ZC_report_t sum = { 0 };

    if (MPIR_Process.rank != 0 || !MPIR_CVAR_CH4_ZC_STATS) {
        return;
    }
    const double deadline = seconds() + GATHER_SECONDS;
    while (nr_reports < MPIR_Process.size && seconds() < deadline) {
        MPIDI_ZC_progress_all();
    }
    if (nr_reports > 0) {
        qsort(reports, nr_reports, sizeof(*reports), by_rank);
    }
    fprintf(stderr, "zc: %5s %9s %8s %8s %11s %11s %10s %9s %7s %11s\n", "rank", "direct",
            "rebound", "copied", "direct MiB", "rebound MiB", "copied MiB", "predicted",
            "refused", "landing MiB");
    for (int i = 0; i < nr_reports; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", reports[i].rank);
        print_row(name, &reports[i]);
        add_report(&sum, &reports[i]);
    }
    print_row("all", &sum);
    for (int i = ZC_MEANS_COPY + 1; i < ZC_MEANS_COUNT; i++) {
        if (sum.landing.bytes_rebound_by_means[i] > 0) {
            fprintf(stderr, "zc: rebound by %s: %.1f MiB\n", zc_means_name(i),
                    sum.landing.bytes_rebound_by_means[i] / (1024.0 * 1024.0));
        }
    }
    for (int i = ZC_REASON_NONE + 1; i < ZC_REASON_COUNT; i++) {
        if (sum.landing.copied_by_reason[i] > 0) {
            fprintf(stderr, "zc: copied because %s: %llu\n", zc_reason_name(i),
                    (unsigned long long) sum.landing.copied_by_reason[i]);
        }
    }
    if (nr_reports < MPIR_Process.size) {
        fprintf(stderr, "zc: %d ranks did not report\n", MPIR_Process.size - nr_reports);
    }
    forget_reports();
}

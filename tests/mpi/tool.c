/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_T: every setting and counter of the netmod is there and described; counters
 * are read by another thread while messages land, and after MPI_Finalize.
 *
 *   tool         with the tool interface open from before MPI_Init to after MPI_Finalize; short
 *                messages have a budget of a few KiB
 *   tool closed  closed while MPI goes on, which takes away MPICH's settings
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { TAG = 3, ROUNDS = 20, LARGE = 1 << 20 };

static const char *const settings[] = {
    "RNDV_THRESHOLD",    "ONE_COPY_THRESHOLD", "LANDING_THRESHOLD", "LANDING_BUDGET",
    "UNEXPECTED_BUDGET", "ALLOW_DEVICES",      "LANDING_THREAD",    "BUNDLE",
    "NATIVE_RMA",        "NATIVE_ATOMICS",     "BACKEND",           "COST_FILE",
    "INTRA_NODE",        "PREDICTOR",          "HORIZON",           "STATS",
    "STATS_FILE",        "BULK_APART",         "NETWORK_RATE",      "LANE"};

static const char *const counters[] = {"messages_direct",
                                       "messages_rebound",
                                       "messages_copied",
                                       "bytes_direct",
                                       "bytes_rebound",
                                       "bytes_copied",
                                       "prediction_hits",
                                       "prediction_misses",
                                       "landed",
                                       "landing_memory",
                                       "landing_high_water",
                                       "budget_refusals",
                                       "left_at_sender",
                                       "bulk_endpoints",
                                       "bulk_refusals",
                                       "channels",
                                       "channel_refusals",
                                       "offered",
                                       "copied_unpredicted",
                                       "bundles",
                                       "bundled",
                                       "landed_by_thread",
                                       "landing_in_use",
                                       "unexpected",
                                       "unexpected_high_water",
                                       "unexpected_memory",
                                       "unexpected_memory_high_water",
                                       "senders_held",
                                       "unexpected_refusals",
                                       "credit_packets"};

static const char *const levels[] = {"landing_memory",     "landing_in_use",
                                     "landing_high_water", "unexpected_high_water",
                                     "unexpected_memory",  "unexpected_memory_high_water"};

enum { NR_COUNTERS = sizeof counters / sizeof counters[0] };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[NR_COUNTERS];

static void find_settings(void)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char name[128], description[1024];
        int index, name_length = sizeof name, length = sizeof description;
        int verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum values;
        char wanted[128];
        snprintf(wanted, sizeof wanted, "MPIR_CVAR_CH4_ZC_%s", settings[i]);
        CHECK(MPI_T_cvar_get_index(wanted, &index) == MPI_SUCCESS, "no control variable %s",
              wanted);
        MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &type, &values, description,
                            &length, &bind, &scope);
        CHECK(strlen(description) > 20, "%s is not described", wanted);
    }
}

static int class_of(const char *name)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (!strcmp(name, levels[i]))
            return MPI_T_PVAR_CLASS_LEVEL;
    return MPI_T_PVAR_CLASS_COUNTER;
}

static void find_counters(void)
{
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < NR_COUNTERS; i++) {
        char wanted[128], name[128], description[1024];
        int index, name_length = sizeof name, length = sizeof description, count;
        int verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum values;
        snprintf(wanted, sizeof wanted, "ch4_zc_%s", counters[i]);
        CHECK(MPI_T_pvar_get_index(wanted, class_of(counters[i]), &index) == MPI_SUCCESS,
              "no performance variable %s", wanted);
        MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &class, &type, &values,
                            description, &length, &bind, &readonly, &continuous, &atomic);
        CHECK(type == MPI_UNSIGNED_LONG_LONG && readonly && continuous, "%s: other kind", wanted);
        CHECK(strlen(description) > 20, "%s is not described", wanted);
        CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count) == MPI_SUCCESS &&
                  count == 1,
              "no handle of %s", wanted);
    }
}

static unsigned long long value_of(const char *name)
{
    unsigned long long value = 0;
    int i = 0;
    while (strcmp(counters[i], name))
        i++;
    CHECK(MPI_T_pvar_read(session, handles[i], &value) == MPI_SUCCESS, "cannot read %s", name);
    return value;
}

static atomic_bool over;
static atomic_ullong seen, readings;

/* Never inside MPI but for reading. */
static void *watch(void *unused)
{
    (void)unused;
    unsigned long long before = 0;
    while (!atomic_load(&over)) {
        const unsigned long long now = value_of("bytes_rebound") + value_of("bytes_copied");
        CHECK(now >= before, "a counter runs backwards: %llu after %llu", now, before);
        before = now;
        if (now > 0 && now < (unsigned long long)ROUNDS * LARGE)
            atomic_store(&seen, now);
        atomic_fetch_add(&readings, 1);
        check_sleep_ms(1);
    }
    return NULL;
}

static void exchange(void)
{
    char *buf = check_malloc(LARGE);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 1) {
            pattern_fill(buf, LARGE, (uint64_t)i);
            MPI_Send(buf, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        } else if (check_rank == 0) {
            MPI_Status status;
            check_sleep_ms(10);
            MPI_Probe(1, TAG, MPI_COMM_WORLD, &status);
            MPI_Recv(buf, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, LARGE, (uint64_t)i, "watched message");
        }
    }
    free(buf);
}

/* What waits, and what is announced only: the environment's budget has room for a few of 8 bytes.
 */
static void flood(void)
{
    enum { MESSAGES = 100, LAST = 4, BYTES = 300 };
    char buf[BYTES];
    MPI_Request requests[MESSAGES];
    if (check_rank == 1) {
        pattern_fill(buf, BYTES, check_seed);
        /* Behind a barrier the first of them might come before the other has looked. */
        MPI_Recv(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Isend(buf, i % 2 ? 8 : BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        MPI_Ssend(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        /* Nothing of what comes next may be among what the other counts. */
        MPI_Recv(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (check_rank == 0) {
        const unsigned long long came = value_of("unexpected");
        MPI_Send(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value_of("unexpected") >= came + MESSAGES, "unexpected: %llu, then %llu", came,
              value_of("unexpected"));
        CHECK(value_of("unexpected_high_water") >= MESSAGES, "high-water mark: %llu messages",
              value_of("unexpected_high_water"));
        CHECK(value_of("unexpected_memory") > 0 &&
                  value_of("unexpected_memory") <= value_of("unexpected_memory_high_water"),
              "%llu bytes, at most %llu", value_of("unexpected_memory"),
              value_of("unexpected_memory_high_water"));
        CHECK(value_of("senders_held") > 0, "no sender is held");
        CHECK(value_of("unexpected_refusals") > 0 &&
                  value_of("unexpected_refusals") <= value_of("senders_held"),
              "%llu refusals, %llu held", value_of("unexpected_refusals"),
              value_of("senders_held"));
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(buf, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, i % 2 ? 8 : BYTES, check_seed, "flood");
        }
        CHECK(value_of("unexpected_memory") == 0, "%llu bytes of nothing",
              value_of("unexpected_memory"));
        CHECK(value_of("credit_packets") > 0, "no credit was sent");
        MPI_Send(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD);
    }
}

static int closed_early(int *argc, char ***argv)
{
    int level;
    check_init(argc, argv, MPI_THREAD_SINGLE);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS, "MPI_T");
    MPI_T_finalize();
    exchange();
    return check_finish();
}

int main(int argc, char **argv)
{
    int level;
    pthread_t watcher;
    if (argc > 1 && !strcmp(argv[1], "closed"))
        return closed_early(&argc, &argv);
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS, "MPI_T");
    check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    find_settings();
    find_counters();
    CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0, "thread");
    exchange();
    atomic_store(&over, true);
    pthread_join(watcher, NULL);

    const unsigned long long all = (unsigned long long)ROUNDS * LARGE;
    const unsigned long long delivered = value_of("bytes_rebound") + value_of("bytes_copied");
    if (check_rank == 0) {
        CHECK(delivered > 0 && delivered + value_of("bytes_direct") == all,
              "%llu landed bytes and %llu direct ones of %llu", delivered, value_of("bytes_direct"),
              all);
        CHECK(value_of("landing_high_water") >= LARGE, "high-water mark %llu",
              value_of("landing_high_water"));
        CHECK(atomic_load(&seen) > 0, "nothing seen on the way in %llu readings",
              atomic_load(&readings));
    }
    flood();
    check_announce_end();
    MPI_Finalize();
    CHECK(value_of("bytes_rebound") + value_of("bytes_copied") == delivered,
          "other figures after the end");
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return 0;
}

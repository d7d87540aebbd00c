/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads with communicators of their own, hence with VCIs of their own where there are
 * several (MPIR_CVAR_CH4_NUM_VCIS), do not notice each other.
 *
 *   vcis traffic   each thread runs its own mix of small, late, wildcard, probed,
 *                  synchronous and one-sided communication on its communicator
 *   vcis blocked   threads that wait (in a receive, a probe, a window's lock) hold up no
 *                  other, not even on their own communicator's VCI, and what lands for
 *                  others lands
 *   vcis tested    nonblocking collectives on communicators of all VCIs, whose messages have come,
 *                  end within a few tests of each
 *   vcis unequal   the processes have different numbers of VCIs: all are told so
 *   vcis worlds N  traffic, on communicators of the ranks and as many processes that they have
 *                  spawned, which have N VCIs: each pair of both uses all VCIs that both have,
 *                  not the first one alone
 */
#include "check.h"
#include "counter.h"
#include <pthread.h>
#include <sys/stat.h>

static MPI_Comm all; /* of the processes that take part */

enum { WORKERS = 6, ROUNDS = 36, BURST = 6, SLOTS = 64, COMPUTE_MS = 1000 };

struct worker {
    MPI_Comm comm;
    uint64_t state; /* the same stream at all ranks */
    uint64_t seed;
    char *out, *in;
    MPI_Win window;
    int64_t *slots; /* SLOTS of them, which the window exposes */
};

static size_t small_size(struct worker *w)
{
    return check_random(&w->state, 3000);
}

static size_t large_size(struct worker *w)
{
    return 64 * KIB + check_random(&w->state, 448 * KIB);
}

static uint64_t content(const struct worker *w, int round, int source, int index)
{
    return w->seed + (uint64_t)((round * check_ranks + source) * BURST + index);
}

/* Each rank but @root sends it BURST messages of @bytes, tags 0, 1, ... */
static void send_burst(struct worker *w, int round, int root, size_t bytes, int synchronous)
{
    MPI_Request requests[BURST];
    for (int i = 0; i < BURST; i++) {
        char *at = w->out + (size_t)i * bytes;
        pattern_fill(at, bytes, content(w, round, check_rank, i));
        if (synchronous)
            MPI_Issend(at, (int)bytes, MPI_BYTE, root, i, w->comm, &requests[i]);
        else
            MPI_Isend(at, (int)bytes, MPI_BYTE, root, i, w->comm, &requests[i]);
    }
    MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
}

static void receive_in_reverse(struct worker *w, int round, int root, size_t bytes)
{
    for (int source = check_ranks - 1; source >= 0; source--) {
        for (int i = BURST - 1; i >= 0 && source != root; i--) {
            MPI_Recv(w->in, (int)bytes, MPI_BYTE, source, i, w->comm, MPI_STATUS_IGNORE);
            check_content(w->in, bytes, content(w, round, source, i), "message in reverse order");
        }
    }
}

/* Messages of one sender must not overtake each other: their tags count. */
static void receive_any(struct worker *w, int round, size_t bytes, int probing)
{
    int next[16] = {0};
    CHECK(check_ranks <= 16, "%d ranks are too many", check_ranks);
    for (int i = 0; i < BURST * (check_ranks - 1); i++) {
        MPI_Status status;
        MPI_Message message;
        int count, found = 0;
        switch (probing) {
        case 0:
            MPI_Recv(w->in, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &status);
            break;
        case 1:
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &status);
            MPI_Recv(w->in, (int)bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, w->comm,
                     MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &message, &status);
            MPI_Mrecv(w->in, (int)bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            break;
        default:
            while (!found)
                MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &found, &message, &status);
            MPI_Mrecv(w->in, (int)bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK((size_t)count == bytes, "%d bytes instead of %zu", count, bytes);
        CHECK(status.MPI_TAG == next[status.MPI_SOURCE], "message %d of rank %d came as %d",
              status.MPI_TAG, status.MPI_SOURCE, next[status.MPI_SOURCE]);
        next[status.MPI_SOURCE]++;
        check_content(w->in, bytes, content(w, round, status.MPI_SOURCE, status.MPI_TAG),
                      "message from any source");
    }
}

/* Each rank writes into its slot at the next rank, and adds to a common one at rank 0. */
static void one_sided(struct worker *w, int round)
{
    const int next = (check_rank + 1) % check_ranks;
    const int before = (check_rank + check_ranks - 1) % check_ranks;
    const int64_t mine = round * 1000 + check_rank, one = 1, zero = 0;
    int64_t fetched = -1, read = -1;

    if (check_rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
        MPI_Put(&zero, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, w->window);
        MPI_Win_unlock(0, w->window);
    }
    MPI_Win_fence(0, w->window);
    MPI_Put(&mine, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, w->window);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, w->window);
    MPI_Win_fence(0, w->window);
    CHECK(w->slots[0] == round * 1000 + before, "%lld put", (long long)w->slots[0]);
    if (check_rank == 0)
        CHECK(w->slots[1] == check_ranks, "%lld added", (long long)w->slots[1]);
    MPI_Win_fence(0, w->window);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
    MPI_Fetch_and_op(&one, &fetched, MPI_INT64_T, 0, 1, MPI_SUM, w->window);
    MPI_Win_flush(0, w->window);
    MPI_Win_unlock(0, w->window);
    CHECK(fetched >= check_ranks && fetched < 2 * check_ranks, "%lld fetched", (long long)fetched);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->window);
    MPI_Get(&read, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, w->window);
    MPI_Win_unlock(next, w->window);
    CHECK(read == mine, "%lld got", (long long)read);
    MPI_Barrier(w->comm);
}

static void *traffic(void *argument)
{
    struct worker *w = argument;

    MPI_Win_create(w->slots, SLOTS * sizeof(*w->slots), sizeof(*w->slots), MPI_INFO_NULL, w->comm,
                   &w->window);
    for (int round = 0; round < ROUNDS; round++) {
        const int root = (int)check_random(&w->state, (uint64_t)check_ranks);
        const int kind = (int)check_random(&w->state, 8);
        const int late_ms = (int)check_random(&w->state, 6);
        const size_t bytes = kind == 0 || kind == 1 ? small_size(w) : large_size(w);
        int64_t sum = -1, one = 1;

        if (kind == 7) {
            one_sided(w, round);
        } else if (kind == 6) {
            MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, w->comm);
            CHECK(sum == check_ranks, "the sum is %lld", (long long)sum);
        } else if (check_rank != root) {
            send_burst(w, round, root, bytes, kind == 1 || kind == 5);
        } else {
            if (kind != 0)
                check_sleep_ms(late_ms);
            if (kind == 0 || kind == 2)
                receive_in_reverse(w, round, root, bytes);
            else
                receive_any(w, round, bytes, kind == 1 ? 0 : kind - 2);
        }
        /* Of several senders one may be a round ahead of another. */
        if (check_ranks > 2)
            MPI_Barrier(w->comm);
    }
    MPI_Win_free(&w->window);
    return NULL;
}

static void start(struct worker *w, int number)
{
    w->seed = check_seed + (uint64_t)number * 1000003;
    w->state = w->seed;
    w->out = check_malloc(BURST * 512 * KIB);
    w->in = check_malloc(512 * KIB);
    w->slots = check_malloc(SLOTS * sizeof(*w->slots));
    memset(w->slots, 0, SLOTS * sizeof(*w->slots));
    MPI_Comm_dup(all, &w->comm);
}

static void finish(struct worker *w)
{
    MPI_Comm_free(&w->comm);
    free(w->out);
    free(w->in);
    free(w->slots);
}

static void run_traffic(void)
{
    static struct worker workers[WORKERS];
    pthread_t threads[WORKERS];

    for (int i = 0; i < WORKERS; i++)
        start(&workers[i], i);
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, traffic, &workers[i]) == 0, "no thread");
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        finish(&workers[i]);
}

/* ---- blocked ---- */

enum { GO_ON = 77, FILE_NAME_BYTES = 64, PATIENCE_MS = 60000 };

/* By a file rank 0 tells that its late message has gone: rank 1 is not to enter MPI before. */
static void name_sent(const struct worker *w, char *name)
{
    snprintf(name, FILE_NAME_BYTES, "/tmp/zc-vcis-%llx", (unsigned long long)w->seed);
}

static void tell_sent(const struct worker *w)
{
    char name[FILE_NAME_BYTES];
    name_sent(w, name);
    FILE *file = fopen(name, "w");
    CHECK(file && fclose(file) == 0, "cannot write %s", name);
}

static void await_sent(const struct worker *w)
{
    char name[FILE_NAME_BYTES];
    struct stat status;
    name_sent(w, name);
    for (int ms = 0; stat(name, &status) != 0; ms++) {
        CHECK(ms < PATIENCE_MS, "%s: sending does not end before the receive is posted", name);
        check_sleep_ms(1);
    }
}

static void remove_sent(const struct worker *w)
{
    char name[FILE_NAME_BYTES];
    name_sent(w, name);
    remove(name);
}

static void *blocked_in_receive(void *argument)
{
    struct worker *w = argument;
    int word = 0;
    MPI_Recv(&word, 1, MPI_INT, 0, GO_ON, w->comm, MPI_STATUS_IGNORE);
    CHECK(word == GO_ON, "received %d", word);
    return NULL;
}

static void *blocked_in_probe(void *argument)
{
    struct worker *w = argument;
    MPI_Probe(0, GO_ON, w->comm, MPI_STATUS_IGNORE);
    return blocked_in_receive(w);
}

/* Rank 0 has the lock. */
static void *blocked_in_lock(void *argument)
{
    struct worker *w = argument;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
    MPI_Win_unlock(0, w->window);
    return NULL;
}

/* Ping-pong, so that a step held up holds up all that follow; the last message is large and
 * finds its receiver outside MPI: a thread that waits for something else has to land it. */
static void *passer_by(void *argument)
{
    struct worker *w = argument;
    const size_t bytes = 512 * KIB;
    const int peer = 1 - check_rank;

    for (int i = 0; i < 50; i++) {
        int word = i;
        if (check_rank == 0)
            MPI_Send(&word, 1, MPI_INT, peer, 1, w->comm);
        MPI_Recv(&word, 1, MPI_INT, peer, 1, w->comm, MPI_STATUS_IGNORE);
        CHECK(word == i, "received %d instead of %d", word, i);
        if (check_rank == 1)
            MPI_Send(&word, 1, MPI_INT, peer, 1, w->comm);
    }
    if (check_rank == 0) {
        pattern_fill(w->out, bytes, w->seed);
        MPI_Send(w->out, (int)bytes, MPI_BYTE, peer, 2, w->comm);
        tell_sent(w);
    } else {
        if (getenv("EXPECT_LANDING"))
            await_sent(w);
        else
            check_sleep_ms(COMPUTE_MS);
        MPI_Recv(w->in, (int)bytes, MPI_BYTE, peer, 2, w->comm, MPI_STATUS_IGNORE);
        check_content(w->in, bytes, w->seed, "late message");
    }
    return NULL;
}

/* Rank 1 has two threads for each communicator: one that waits for rank 0's very last word,
 * and one that talks with rank 0 before that. */
static void run_blocked(void)
{
    static struct worker workers[WORKERS];
    pthread_t waiting[WORKERS], passing[WORKERS];
    void *(*const kinds[])(void *) = {blocked_in_receive, blocked_in_probe, blocked_in_lock};
    int word = GO_ON;

    CHECK(check_ranks == 2, "%d ranks instead of 2", check_ranks);
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        start(w, i);
        MPI_Win_create(w->slots, SLOTS * sizeof(*w->slots), sizeof(*w->slots), MPI_INFO_NULL,
                       w->comm, &w->window);
        if (check_rank == 0) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
            remove_sent(w); /* of a run that was killed */
        }
        MPI_Barrier(w->comm);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK(check_rank == 0 || pthread_create(&waiting[i], NULL, kinds[i % 3], &workers[i]) == 0,
              "no thread");
        CHECK(pthread_create(&passing[i], NULL, passer_by, &workers[i]) == 0, "no thread");
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(passing[i], NULL);
    for (int i = 0; i < WORKERS; i++) {
        if (check_rank == 0) {
            MPI_Win_unlock(0, workers[i].window);
            if (kinds[i % 3] != blocked_in_lock)
                MPI_Send(&word, 1, MPI_INT, 1, GO_ON, workers[i].comm);
        } else {
            pthread_join(waiting[i], NULL);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        MPI_Win_free(&workers[i].window);
        if (check_rank == 0)
            remove_sent(&workers[i]);
        finish(&workers[i]);
    }
}

/* ---- tested ---- */

enum { TESTED = 8, FEW = 32 };

/* A rank finds that a collective has ended with a few tests of it, between which it computes, and
 * not with a few hundred. */
static void run_tested(void)
{
    MPI_Comm comms[TESTED];
    MPI_Request barriers[TESTED];

    for (int i = 0; i < TESTED; i++) {
        MPI_Comm_dup(all, &comms[i]);
        MPI_Barrier(comms[i]); /* has its connections made */
    }
    for (int i = 0; i < TESTED; i++)
        MPI_Ibarrier(comms[i], &barriers[i]);
    if (check_rank == 0) {
        check_sleep_ms(COMPUTE_MS);
        for (int i = 0; i < TESTED; i++) {
            int tests = 0, ended = 0;
            while (!ended) {
                CHECK(tests < FEW, "communicator %d: not ended after %d tests", i, tests);
                MPI_Test(&barriers[i], &ended, MPI_STATUS_IGNORE);
                tests++;
                if (!ended)
                    check_sleep_ms(10);
            }
            printf("# communicator %d: %d tests\n", i, tests);
        }
    }
    MPI_Waitall(TESTED, barriers, MPI_STATUSES_IGNORE);
    for (int i = 0; i < TESTED; i++)
        MPI_Comm_free(&comms[i]);
}

/* ---- worlds ---- */

/* Merges the worlds of the ranks and of their children. Returns the other one's size. */
static int meet(char *program, const char *child_vcis)
{
    MPI_Comm across;
    int others;

    MPI_Comm_get_parent(&across);
    const int is_child = across != MPI_COMM_NULL;
    if (!is_child) {
        char *arguments[] = {(char *)"worlds", (char *)child_vcis, NULL};
        CHECK(MPI_Comm_spawn(program, arguments, check_ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                             &across, MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
              "spawn");
    }
    MPI_Comm_remote_size(across, &others);
    MPI_Intercomm_merge(across, is_child, &all);
    MPI_Comm_disconnect(&across);
    MPI_Comm_rank(all, &check_rank);
    MPI_Comm_size(all, &check_ranks);
    MPI_Bcast(&check_seed, 1, MPI_UINT64_T, 0, all);
    return others;
}

static int own_vcis(void)
{
    const char *vcis = getenv("MPIR_CVAR_CH4_NUM_VCIS");
    return vcis ? atoi(vcis) : 1;
}

static void run_worlds(char *program, const char *child_vcis)
{
    const int others = meet(program, child_vcis);
    const int vcis = own_vcis();
    int common;

    MPI_Allreduce(&vcis, &common, 1, MPI_INT, MPI_MIN, all);
    run_traffic();
    struct counter endpoints = counter_open("foreign_endpoints");
    const unsigned long long made = counter_read(&endpoints);
    printf("# rank %d of %d, %d of %d VCIs: %llu connections to %d processes of the other world\n",
           check_rank, check_ranks, common, vcis, made, others);
    /* A process of VCI 0 need not send to each, but the threads of the others do. */
    CHECK(made > (unsigned)(others * (common - 1)) && made <= (unsigned)(others * common),
          "%llu connections to %d processes on %d VCIs", made, others, common);
    counter_close(&endpoints);
    MPI_Comm_disconnect(&all);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "traffic";
    const char *rank = getenv("PMI_RANK");

    if (!strcmp(what, "unequal"))
        setenv("MPIR_CVAR_CH4_NUM_VCIS", rank && atoi(rank) == 0 ? "3" : "2", 1);
    if (!strcmp(what, "worlds") && getenv("PMI_SPAWNED"))
        setenv("MPIR_CVAR_CH4_NUM_VCIS", argv[2], 1);
    all = MPI_COMM_WORLD;
    check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (!strcmp(what, "blocked"))
        run_blocked();
    else if (!strcmp(what, "tested"))
        run_tested();
    else if (!strcmp(what, "worlds"))
        run_worlds(argv[0], argv[2]);
    else
        run_traffic();
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    return check_finish();
}

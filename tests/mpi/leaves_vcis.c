/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks leave and come back while threads of all of them send to each other, each on a communicator
 * of its own, hence on several VCIs (MPIR_CVAR_CH4_NUM_VCIS). Contents, order and envelopes of all
 * messages are as ever, and so is what windows of these communicators hold. The program knows
 * nothing of it; holder.c tells the ranks to.
 *
 *     leaves_vcis FILE NUMBER WHAT...   makes FILE.ready, and goes on until there are NUMBER files
 *                                       FILE.<rank>
 *
 * WHAT: some of
 *   messages     of 0 bytes to 2 MiB by wildcards, probes, synchronous and cancelled
 *   collectives
 *   windows      of each communicator
 *   computing    now and then no thread is in MPI
 *   blocked      one thread of each rank is in a receive, on a communicator of its own, all the
 *                time
 *   alone        the others do nothing but that: no thread asks for progress on the first VCI
 *   probing      but for one of rank 0
 */
#include "marks.h"
#include <pthread.h>

enum { WORKERS = 5, FEW = 4, GO_ON = 77, NEVER = 1 << 20, MOST = 2 << 20, SLOTS = 4096 };

static const size_t sizes[] = {0, 1, 8, 100, 2000, 9000, 70000, 200000, 600000, MOST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct {
    const char *file;
    int number;
    int messages, collectives, windows, computing, blocked, alone, probing;
} job;

typedef struct {
    MPI_Comm comm;
    uint64_t seed, state; /* the same stream at all ranks */
    void **out;           /* to each rank FEW */
    MPI_Request *requests;
    char *in;
    int *seen;
    MPI_Win window; /* of slots at each rank, which another rank has each */
    int64_t *slots;
    int rounds;
} worker_t;

static size_t size_of(const worker_t *w, int round, int from, int to, int i)
{
    const uint64_t x =
        pattern_mix(w->seed ^ pattern_mix((uint64_t)round << 32 | (uint64_t)from << 20 |
                                          (uint64_t)to << 8 | (uint64_t)i));
    /* Most are short, as in most programs. */
    const size_t limit = sizes[x % 8 ? x % 6 : x / 64 % SIZES];
    return x % 3 && limit > 1 ? 1 + (x >> 20) % limit : limit;
}

static uint64_t content_of(const worker_t *w, int round, int from, int to, int i)
{
    return pattern_mix(w->seed + 3 * (uint64_t)round) ^
           ((uint64_t)from << 40 | (uint64_t)to << 20 | (uint64_t)i);
}

/** send_all - FEW messages to every other rank. Returns how many those are. */
static int send_all(worker_t *w, int round, int synchronous)
{
    int n = 0;
    for (int i = 0; i < FEW; i++) {
        for (int to = 0; to < check_ranks; to++) {
            if (to == check_rank)
                continue;
            const size_t bytes = size_of(w, round, check_rank, to, i);
            w->out[n] = check_malloc(bytes);
            pattern_fill(w->out[n], bytes, content_of(w, round, check_rank, to, i));
            if (synchronous && i % 2)
                MPI_Issend(w->out[n], (int)bytes, MPI_BYTE, to, round, w->comm, &w->requests[n]);
            else
                MPI_Isend(w->out[n], (int)bytes, MPI_BYTE, to, round, w->comm, &w->requests[n]);
            n++;
        }
    }
    return n;
}

static void check_message(worker_t *w, int round, const void *data, const MPI_Status *status)
{
    const int from = status->MPI_SOURCE, i = w->seen[from]++;
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    CHECK(status->MPI_TAG == round, "tag %d in round %d", status->MPI_TAG, round);
    CHECK((size_t)bytes == size_of(w, round, from, check_rank, i),
          "%d bytes, message %d of rank %d", bytes, i, from);
    check_content(data, (size_t)bytes, content_of(w, round, from, check_rank, i), "message");
}

/** exchange - with each other rank; of @kind 0 in order, 1 some synchronous, 2 wildcards, 3 probed
 */
static void exchange(worker_t *w, int round, int kind)
{
    const int n = send_all(w, round, kind == 1);
    MPI_Status status;
    MPI_Message message;

    memset(w->seen, 0, (size_t)check_ranks * sizeof *w->seen);
    if (check_random(&w->state, 4) == 0)
        check_sleep_ms((int)check_random(&w->state, 8));
    for (int i = 0; i < FEW; i++) {
        for (int other = 0; other < check_ranks; other++) {
            const int from = kind >= 2 ? MPI_ANY_SOURCE : other;
            if (other == check_rank)
                continue;
            if (kind == 3) {
                MPI_Mprobe(from, round, w->comm, &message, &status);
                MPI_Mrecv(w->in, MOST, MPI_BYTE, &message, &status);
            } else {
                MPI_Recv(w->in, MOST, MPI_BYTE, from, round, w->comm, &status);
            }
            check_message(w, round, w->in, &status);
        }
    }
    MPI_Waitall(n, w->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        free(w->out[i]);
}

static void cancel_one(worker_t *w)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(w->in, 8, MPI_BYTE, MPI_ANY_SOURCE, NEVER, w->comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled, "a receive that nothing matches");
}

static void collectives(worker_t *w, int round)
{
    const int count = 1 + (int)check_random(&w->state, 50000), root = round % check_ranks;
    int64_t *sums = check_malloc((size_t)count * sizeof *sums);
    for (int i = 0; i < count; i++)
        sums[i] = (int64_t)i * (check_rank + 1) + round;
    MPI_Allreduce(MPI_IN_PLACE, sums, count, MPI_INT64_T, MPI_SUM, w->comm);
    for (int i = 0; i < count; i++)
        CHECK(sums[i] ==
                  (int64_t)i * check_ranks * (check_ranks + 1) / 2 + (int64_t)round * check_ranks,
              "element %d of a sum", i);
    if (check_rank == root)
        pattern_fill(sums, (size_t)count * sizeof *sums, (uint64_t)round);
    MPI_Bcast(sums, count, MPI_INT64_T, root, w->comm);
    check_content(sums, (size_t)count * sizeof *sums, (uint64_t)round, "broadcast");
    free(sums);
}

/** use_window - each rank puts to the next one, gets it back, and draws a number at rank 0 */
static void use_window(worker_t *w, int round)
{
    const int next = (check_rank + 1) % check_ranks;
    const int before = (check_rank + check_ranks - 1) % check_ranks;
    const int count = 1 + (int)check_random(&w->state, SLOTS - 1);
    const size_t bytes = (size_t)count * sizeof(int64_t);
    const int64_t one = 1, least = (int64_t)round * check_ranks;
    int64_t *out = check_malloc(bytes), *in = check_malloc(bytes), drawn = -1;

    pattern_fill(out, bytes, content_of(w, round, check_rank, next, FEW));
    MPI_Win_fence(0, w->window);
    MPI_Put(out, count, MPI_INT64_T, next, 1, count, MPI_INT64_T, w->window);
    MPI_Win_fence(0, w->window);
    check_content(&w->slots[1], bytes, content_of(w, round, before, check_rank, FEW), "put");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->window);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->window);
    MPI_Get(in, count, MPI_INT64_T, next, 1, count, MPI_INT64_T, w->window);
    MPI_Win_unlock(next, w->window);
    check_content(in, bytes, content_of(w, round, check_rank, next, FEW), "got back");
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
    MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, 0, 0, MPI_SUM, w->window);
    MPI_Win_unlock(0, w->window);
    CHECK(drawn >= least && drawn < least + check_ranks, "%lld drawn in round %d", (long long)drawn,
          round);
    MPI_Barrier(w->comm);
    free(out);
    free(in);
}

static int goes_on(MPI_Comm comm)
{
    int more = check_rank == 0 && found(job.file) < job.number;
    MPI_Bcast(&more, 1, MPI_INT, 0, comm);
    return more;
}

static void *work(void *argument)
{
    worker_t *w = argument;
    int round = 0;
    do {
        if (job.messages) {
            for (int kind = 0; kind < 4; kind++)
                exchange(w, 4 * round + kind, kind);
            cancel_one(w);
        }
        if (job.collectives)
            collectives(w, round);
        if (job.windows)
            use_window(w, round);
        if (job.computing)
            check_sleep_ms((int)check_random(&w->state, 20));
        round++;
    } while (goes_on(w->comm));
    w->rounds = round;
    return NULL;
}

static void start(worker_t *w, int number)
{
    const size_t ranks = (size_t)check_ranks;
    w->seed = check_seed + (uint64_t)number * 1000003;
    w->state = w->seed;
    w->out = check_malloc(FEW * ranks * sizeof *w->out);
    w->requests = check_malloc(FEW * ranks * sizeof *w->requests);
    w->in = check_malloc(MOST);
    w->seen = check_malloc(ranks * sizeof *w->seen);
    MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
    if (job.windows) {
        MPI_Win_allocate(SLOTS * sizeof *w->slots, sizeof *w->slots, MPI_INFO_NULL, w->comm,
                         &w->slots, &w->window);
        w->slots[0] = 0;
        MPI_Barrier(w->comm);
    }
}

static void finish(worker_t *w)
{
    if (job.windows)
        MPI_Win_free(&w->window);
    MPI_Comm_free(&w->comm);
    free(w->out);
    free(w->requests);
    free(w->in);
    free(w->seen);
}

/* ---- a thread that waits ---- */

static MPI_Comm waiting;

static void *wait_for_word(void *unused)
{
    int word = 0;
    (void)unused;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, GO_ON, waiting, MPI_STATUS_IGNORE);
    CHECK(word == GO_ON, "received %d", word);
    return NULL;
}

/** give_word - to the threads that wait; then they end */
static void give_word(void)
{
    const int word = GO_ON;
    for (int to = 0; check_rank == 0 && to < check_ranks; to++)
        MPI_Send(&word, 1, MPI_INT, to, GO_ON, waiting);
}

/** probe_for_nothing - makes progress on the first VCI */
static void probe_for_nothing(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "a message that nobody sends");
}

/** add_ranks - of all, over the first VCI, on which the orders were */
static void add_ranks(void)
{
    int sum = check_rank;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == check_ranks * (check_ranks - 1) / 2, "the sum of all ranks is %d", sum);
}

static int wants(int argc, char **argv, const char *what)
{
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], what))
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    static worker_t workers[WORKERS];
    pthread_t threads[WORKERS], waits;

    check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(argc > 3, "usage: leaves_vcis FILE NUMBER WHAT...");
    job.file = argv[1];
    job.number = atoi(argv[2]);
    job.messages = wants(argc, argv, "messages");
    job.collectives = wants(argc, argv, "collectives");
    job.windows = wants(argc, argv, "windows");
    job.computing = wants(argc, argv, "computing");
    job.alone = wants(argc, argv, "alone");
    job.probing = wants(argc, argv, "probing");
    job.blocked = job.alone || wants(argc, argv, "blocked");

    /* The first communicators are on the first VCIs, MPI_COMM_WORLD on the first of all. */
    MPI_Comm_dup(MPI_COMM_WORLD, &waiting);
    for (int i = 0; i < WORKERS && !job.alone; i++)
        start(&workers[i], i);
    if (job.blocked)
        CHECK(pthread_create(&waits, NULL, wait_for_word, NULL) == 0, "no thread");
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0)
        mark(job.file, ".ready");
    for (int i = 0; i < WORKERS && !job.alone; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
    for (int i = 0; i < WORKERS && !job.alone; i++)
        pthread_join(threads[i], NULL);
    while (job.alone && check_rank == 0 && found(job.file) < job.number) {
        if (job.probing)
            probe_for_nothing();
        check_sleep_ms(10);
    }
    if (job.blocked) {
        give_word();
        pthread_join(waits, NULL);
    }
    for (int i = 0; i < WORKERS && !job.alone; i++)
        finish(&workers[i]);
    MPI_Comm_free(&waiting);
    add_ranks();
    if (check_rank == 0)
        printf("# %d rounds\n", workers[0].rounds);
    return check_finish();
}

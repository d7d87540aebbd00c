/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive target: rank 1 computes without entering MPI, and rank 0 accesses its memory meanwhile.
 *
 *   rank 0   |-- LEAD_MS --|-- MPI_Win_lock, operation, MPI_Win_unlock --|
 *   rank 1   |-- work ------------------------------------------------------------|
 *
 * put, get, accumulate:  of SIZE bytes, that is of words of 8 bytes (accumulate: MPI_SUM)
 * fetch_and_op:          of a word, hence at SIZE 8 only
 * ssend:                 MPI_Ssend of SIZE 8 to a receive that rank 1 has posted before
 *
 * Both sides verify what the other one wrote. One JSON line per repetition on rank 0: µs of the
 * epoch.
 */
#include "bench.h"

enum { WORD = 8, LEAD_MS = 5, TARGET = 1, DATA = 1 };
enum operation { PUT, GET, ACCUMULATE, FETCH_AND_OP, SSEND, OPERATIONS };

static const char *const names[] = {"put", "get", "accumulate", "fetch_and_op", "ssend"};

struct access {
    enum operation operation;
    size_t bytes;
    MPI_Win window;
    char *memory; /* the window's */
    char *local;  /* sent, or received into */
    char *expected;
};

static uint64_t seed_of(const struct access *a, int rep, int rank)
{
    return a->bytes * 1000003u + (uint64_t)(rep * 2 + rank);
}

/* What the window holds before (@rank: TARGET), or what rank 0 brings. */
static void fill(const struct access *a, char *buf, int rep, int rank)
{
    pattern_fill(buf, a->bytes, seed_of(a, rep, rank));
}

static void fill_window(const struct access *a, int rep)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, a->window);
    fill(a, a->memory, rep, TARGET);
    MPI_Win_unlock(TARGET, a->window);
}

static void sum(const struct access *a, int rep)
{
    fill(a, a->expected, rep, 0);
    fill(a, a->local, rep, TARGET);
    for (size_t at = 0; at < a->bytes; at += WORD) {
        uint64_t x, y;
        memcpy(&x, a->expected + at, WORD);
        memcpy(&y, a->local + at, WORD);
        x += y;
        memcpy(a->expected + at, &x, WORD);
    }
}

static void compare(const struct access *a, const char *buf)
{
    if (memcmp(buf, a->expected, a->bytes) != 0) {
        fprintf(stderr, "wrong data of %s, %zu bytes\n", names[a->operation], a->bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* What the window holds afterwards. */
static void verify_window(const struct access *a, int rep)
{
    if (a->operation == ACCUMULATE || a->operation == FETCH_AND_OP)
        sum(a, rep);
    else
        fill(a, a->expected, rep, a->operation == PUT ? 0 : TARGET);
    MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, a->window);
    compare(a, a->memory);
    MPI_Win_unlock(TARGET, a->window);
}

static void work_on_target(const struct access *a, int rep, uint64_t rounds)
{
    MPI_Request request;
    fill_window(a, rep);
    if (a->operation == SSEND)
        MPI_Irecv(a->local, (int)a->bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    bench_work(rounds);
    if (a->operation == SSEND) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        bench_verify(a->local, a->bytes, seed_of(a, rep, 0));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    verify_window(a, rep);
}

static void operate(const struct access *a, uint64_t *before)
{
    const int words = (int)(a->bytes / WORD);
    if (a->operation == SSEND) {
        MPI_Ssend(a->local, (int)a->bytes, MPI_BYTE, TARGET, DATA, MPI_COMM_WORLD);
        return;
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, a->window);
    if (a->operation == PUT)
        MPI_Put(a->local, words, MPI_UINT64_T, TARGET, 0, words, MPI_UINT64_T, a->window);
    else if (a->operation == GET)
        MPI_Get(a->local, words, MPI_UINT64_T, TARGET, 0, words, MPI_UINT64_T, a->window);
    else if (a->operation == ACCUMULATE)
        MPI_Accumulate(a->local, words, MPI_UINT64_T, TARGET, 0, words, MPI_UINT64_T, MPI_SUM,
                       a->window);
    else
        MPI_Fetch_and_op(a->local, before, MPI_UINT64_T, TARGET, 0, MPI_SUM, a->window);
    MPI_Win_unlock(TARGET, a->window);
}

/* µs of the epoch */
static double access_target(const struct access *a, int rep, uint64_t lead)
{
    uint64_t before = 0;
    fill(a, a->local, rep, 0);
    fill(a, a->expected, rep, TARGET);
    MPI_Barrier(MPI_COMM_WORLD);
    bench_work(lead);
    const double begin = bench_now_us();
    operate(a, &before);
    const double took_us = bench_now_us() - begin;
    if (a->operation == GET)
        compare(a, a->local);
    if (a->operation == FETCH_AND_OP)
        compare(a, (const char *)&before);
    MPI_Barrier(MPI_COMM_WORLD);
    return took_us;
}

static void measure(const struct bench_options *o, const struct access *a, int rank,
                    double rounds_per_us)
{
    const uint64_t rounds =
        (uint64_t)(1000 * (rank == 0 ? LEAD_MS : o->compute_ms) * rounds_per_us);
    const double start = bench_now_us();
    for (int rep = 0; bench_again(o, rep, start); rep++) {
        if (rank == TARGET) {
            work_on_target(a, rep, rounds);
            continue;
        }
        const double took_us = access_target(a, rep, rounds);
        if (rep >= o->warmup)
            printf("{\"bench\":\"passive\",\"bytes\":%zu,\"rep\":%d,\"%s\":%.2f}\n", a->bytes,
                   rep - o->warmup, names[a->operation], took_us);
    }
    fflush(stdout);
}

static void measure_size(const struct bench_options *o, size_t bytes, int rank,
                         double rounds_per_us)
{
    struct access a = {.bytes = bytes};
    MPI_Win_allocate(rank == TARGET ? (MPI_Aint)bytes : 0, WORD, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &a.memory, &a.window);
    a.local = bench_malloc(bytes);
    a.expected = bench_malloc(bytes);
    for (a.operation = PUT; a.operation < OPERATIONS; a.operation++)
        if (bytes == WORD || a.operation < FETCH_AND_OP)
            measure(o, &a, rank, rounds_per_us);
    free(a.expected);
    free(a.local);
    MPI_Win_free(&a.window);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 10,
                              .warmup = 2,
                              .compute_ms = 50,
                              .sizes = {8, 4096, 65536, 1048576, 4194304},
                              .nr_sizes = 5};
    bench_parse(argc, argv, "access to the memory of a rank that computes", &o);
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    for (int i = 0; i < o.nr_sizes; i++)
        if (o.sizes[i] == 0 || o.sizes[i] % WORD) {
            fprintf(stderr, "sizes are multiples of %d bytes\n", WORD);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    const double rounds_per_us = bench_rounds_per_us();
    for (int i = 0; i < o.nr_sizes; i++)
        measure_size(&o, o.sizes[i], rank, rounds_per_us);
    return bench_finish(rank);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks exchange blocks, as a transposition of a matrix does: MPI_Irecv, MPI_Isend, MPI_Wait
 * for both.
 *
 *   in_step   both begin at once
 *   ahead     rank 0 begins, and rank 1 works for half as long as an exchange takes before it does:
 *
 *   rank 0   |-- exchange ---------------------------------|
 *   rank 1   |-- work --------|-- exchange ----------------|-- word from rank 0 that it is done
 *                             |------------- timed --------------|
 *
 * Bytes of both directions by that time. It ends when both have everything, which is verified.
 * One JSON line per repetition on rank 0, in MB/s.
 */
#include "bench.h"

enum { DATA = 1, DONE = 2, TIME = 3, TIMED = 1 };
enum pace { IN_STEP, AHEAD };

static const char *const pace_names[] = {"in_step", "ahead"};

struct exchange {
    int rank;
    size_t bytes;
    char *in, *out;
};

static uint64_t seed_of(const struct exchange *x, int sender, int count)
{
    return x->bytes * 1000003u + (uint64_t)(count * 2 + sender);
}

/* µs on rank 1, known to both; it works for @rounds before */
static double exchange(const struct exchange *x, int count, uint64_t rounds)
{
    const int partner = 1 - x->rank;
    MPI_Request receive, send;
    pattern_fill(x->out, x->bytes, seed_of(x, x->rank, count));
    MPI_Barrier(MPI_COMM_WORLD);
    if (x->rank == TIMED)
        bench_work(rounds);
    const double begin = bench_now_us();
    MPI_Irecv(x->in, (int)x->bytes, MPI_BYTE, partner, DATA, MPI_COMM_WORLD, &receive);
    MPI_Isend(x->out, (int)x->bytes, MPI_BYTE, partner, DATA, MPI_COMM_WORLD, &send);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    double took_us = 0;
    if (x->rank == TIMED) {
        MPI_Recv(NULL, 0, MPI_BYTE, partner, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        took_us = bench_now_us() - begin;
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, partner, DONE, MPI_COMM_WORLD);
    }
    bench_verify(x->in, x->bytes, seed_of(x, partner, count));
    MPI_Bcast(&took_us, 1, MPI_DOUBLE, TIMED, MPI_COMM_WORLD);
    return took_us;
}

static void measure(const struct bench_options *o, struct exchange *x, double rounds_per_us)
{
    double *warmup_us = bench_malloc((size_t)o->warmup * sizeof *warmup_us);
    int count = 0;
    for (int rep = 0; rep < o->warmup; rep++)
        warmup_us[rep] = exchange(x, count++, 0);
    const double lead_us = bench_median(warmup_us, o->warmup) / 2;
    for (enum pace pace = IN_STEP; pace <= AHEAD; pace++) {
        const uint64_t rounds = pace == AHEAD ? (uint64_t)(lead_us * rounds_per_us) : 0;
        const double start = bench_now_us();
        for (int rep = 0; bench_again(o, o->warmup + rep, start); rep++) {
            const double took_us = exchange(x, count++, rounds);
            if (x->rank == 0)
                printf("{\"bench\":\"transpose\",\"bytes\":%zu,\"rep\":%d,\"%s\":%.2f}\n", x->bytes,
                       rep, pace_names[pace], 2 * (double)x->bytes / took_us);
        }
    }
    fflush(stdout);
    free(warmup_us);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 10,
                              .warmup = 3,
                              .sizes = {65536, 262144, 1048576, 4194304, 16777216, 67108864},
                              .nr_sizes = 6};
    bench_parse(argc, argv, "blocks exchanged by two ranks, in step and not", &o);
    bench_want_warmup(&o, argv[0], "the lead");
    MPI_Init(&argc, &argv);
    struct exchange x = {.rank = bench_ranks(2)};
    const double rounds_per_us = bench_rounds_per_us();
    for (int i = 0; i < o.nr_sizes; i++) {
        x.bytes = o.sizes[i];
        x.in = bench_malloc(x.bytes);
        x.out = bench_malloc(x.bytes);
        measure(&o, &x, rounds_per_us);
        free(x.out);
        free(x.in);
    }
    return bench_finish(x.rank);
}

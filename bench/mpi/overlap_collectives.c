/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a nonblocking collective hides behind computation: every rank starts it, works as
 * long as the bare collective takes without entering MPI, and waits. Of any number of ranks the
 * slowest counts. The share that hid is
 *
 *   100 % * (work + collective - both) / min(work, collective)      (work, collective: medians)
 *
 * 100 (the most there can be; above is noise and cut off): it cost nothing; 0: it only began in
 * MPI_Wait; below: it cost extra.
 *
 * SIZE is what a rank holds: MPI_Ialltoall and MPI_Iallgather cut it into a block for each rank.
 * Results are verified each time. -k chooses one of them; without, all. One JSON line per
 * repetition on rank 0.
 */
#include "collective.h"

static const char *const kinds[] = {"ialltoall", "iallgather", "ibcast", "iallreduce", NULL};

static void start(const struct collective_job *j, MPI_Request *request)
{
    switch (j->kind) {
    case ALLTOALL:
        MPI_Ialltoall(j->out, (int)j->bytes, MPI_BYTE, j->in, (int)j->bytes, MPI_BYTE,
                      MPI_COMM_WORLD, request);
        break;
    case ALLGATHER:
        MPI_Iallgather(j->out, (int)j->bytes, MPI_BYTE, j->in, (int)j->bytes, MPI_BYTE,
                       MPI_COMM_WORLD, request);
        break;
    case BCAST:
        MPI_Ibcast(j->in, (int)j->bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
        break;
    case ALLREDUCE:
        MPI_Iallreduce(j->out, j->in, (int)(j->bytes / 8), MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD,
                       request);
        break;
    }
}

static double of_slowest(double took_us)
{
    double slowest_us;
    MPI_Allreduce(&took_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest_us;
}

/* µs of the collective with @rounds of work behind it */
static double collective(const struct collective_job *j, int count, uint64_t rounds)
{
    MPI_Request request;
    memset(j->in, 0, collective_room(j));
    collective_prepare(j, count);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = bench_now_us();
    start(j, &request);
    bench_work(rounds);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double took_us = bench_now_us() - begin;
    collective_verify(j, count);
    return of_slowest(took_us);
}

/* All ranks at once: they may share processors. */
static double work_alone(uint64_t rounds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return of_slowest(bench_work_us(rounds));
}

static void print_shares(const struct collective_job *j, size_t size, double *alone_us,
                         double *work_us, const double *both_us, int done)
{
    const double alone = bench_median(alone_us, done), work = bench_median(work_us, done);
    const double most = work < alone ? work : alone;
    for (int rep = 0; rep < done; rep++) {
        const double share = (work + alone - both_us[rep]) / most;
        printf("{\"bench\":\"overlap-collectives\",\"bytes\":%zu,\"rep\":%d,\"%s\":%.1f}\n", size,
               rep, kinds[j->kind], 100 * (share < 1 ? share : 1));
    }
    fflush(stdout);
}

static void measure(const struct bench_options *o, struct collective_job *j, size_t size,
                    double rounds_per_us)
{
    const size_t most = (size_t)(o->repetitions > o->warmup ? o->repetitions : o->warmup);
    double *alone_us = bench_malloc(most * sizeof(double));
    double *work_us = bench_malloc(most * sizeof(double));
    double *both_us = bench_malloc(most * sizeof(double));
    int count = 0, done = 0;
    collective_allocate(j);
    for (int rep = 0; rep < o->warmup; rep++)
        alone_us[rep] = collective(j, count++, 0);
    const uint64_t rounds = (uint64_t)(bench_median(alone_us, o->warmup) * rounds_per_us);
    const double begin = bench_now_us();
    for (; bench_again(o, o->warmup + done, begin); done++) {
        alone_us[done] = collective(j, count++, 0);
        work_us[done] = work_alone(rounds);
        both_us[done] = collective(j, count++, rounds);
    }
    if (j->rank == 0)
        print_shares(j, size, alone_us, work_us, both_us, done);
    collective_free(j);
    free(both_us);
    free(work_us);
    free(alone_us);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 10,
                              .warmup = 3,
                              .sizes = {262144, 1048576, 4194304, 8388608, 16777216},
                              .nr_sizes = 5};
    bench_parse(argc, argv, "nonblocking collectives hidden behind computation, per cent", &o);
    const int chosen = bench_kind(&o, kinds);
    bench_want_warmup(&o, argv[0], "the amount of work");
    struct collective_job j = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
    double rounds_per_us = bench_rounds_per_us();
    MPI_Bcast(&rounds_per_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < o.nr_sizes; i++) {
        if (o.sizes[i] % (8 * (size_t)j.ranks)) {
            if (j.rank == 0)
                fprintf(stderr, "sizes are multiples of 8 bytes for each rank\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (int kind = ALLTOALL; kind <= ALLREDUCE; kind++) {
            j.kind = (enum collective)kind;
            j.bytes = kind <= ALLGATHER ? o.sizes[i] / (size_t)j.ranks : o.sizes[i];
            if (!o.kind || kind == chosen)
                measure(&o, &j, o.sizes[i], rounds_per_us);
        }
    }
    return bench_finish(j.rank);
}

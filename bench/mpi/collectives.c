/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: -k alltoall, allgather, bcast or allreduce. SIZE is what one
 * rank sends another (alltoall), contributes (allgather), or holds (bcast,
 * allreduce). Time per operation of the slowest rank, the mean of a batch for
 * small sizes; results are verified after every batch. One JSON line per
 * repetition on rank 0.
 */
#include "bench.h"

enum kind { ALLTOALL, ALLGATHER, BCAST, ALLREDUCE };

static const char *const kinds[] = {"alltoall", "allgather", "bcast", "allreduce", NULL};

struct job {
    enum kind kind;
    int rank, ranks;
    size_t bytes;
    char *in, *out; /* received, sent */
};

/* Content of the block that @from sends @to. */
static uint64_t seed_of(const struct job *j, int rep, int from, int to)
{
    return j->bytes * 1000003u + (uint64_t)((rep * j->ranks + from) * j->ranks + to);
}

/* Element @i of @rank's summand. */
static uint64_t summand(uint64_t seed, int rank, size_t i)
{
    return seed + i * (uint64_t)(rank + 1);
}

static void prepare(const struct job *j, int rep)
{
    uint64_t *out = (uint64_t *)j->out;
    switch (j->kind) {
    case ALLTOALL:
        for (int to = 0; to < j->ranks; to++)
            pattern_fill(j->out + (size_t)to * j->bytes, j->bytes, seed_of(j, rep, j->rank, to));
        break;
    case ALLGATHER:
        pattern_fill(j->out, j->bytes, seed_of(j, rep, j->rank, 0));
        break;
    case BCAST:
        if (j->rank == 0)
            pattern_fill(j->in, j->bytes, seed_of(j, rep, 0, 0));
        break;
    case ALLREDUCE:
        for (size_t i = 0; i < j->bytes / 8; i++)
            out[i] = summand(seed_of(j, rep, 0, 0), j->rank, i);
        break;
    }
}

static void run(const struct job *j)
{
    switch (j->kind) {
    case ALLTOALL:
        MPI_Alltoall(j->out, (int)j->bytes, MPI_BYTE, j->in, (int)j->bytes, MPI_BYTE,
                     MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(j->out, (int)j->bytes, MPI_BYTE, j->in, (int)j->bytes, MPI_BYTE,
                      MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(j->in, (int)j->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(j->out, j->in, (int)(j->bytes / 8), MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        break;
    }
}

static void verify_sum(const struct job *j, int rep)
{
    const uint64_t *in = (const uint64_t *)j->in;
    for (size_t i = 0; i < j->bytes / 8; i++) {
        uint64_t sum = 0;
        for (int rank = 0; rank < j->ranks; rank++)
            sum += summand(seed_of(j, rep, 0, 0), rank, i);
        if (in[i] != sum) {
            fprintf(stderr, "wrong sum in element %zu of %zu\n", i, j->bytes / 8);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static void verify(const struct job *j, int rep)
{
    switch (j->kind) {
    case ALLTOALL:
    case ALLGATHER:
        for (int from = 0; from < j->ranks; from++)
            bench_verify(j->in + (size_t)from * j->bytes, j->bytes,
                         seed_of(j, rep, from, j->kind == ALLTOALL ? j->rank : 0));
        break;
    case BCAST:
        bench_verify(j->in, j->bytes, seed_of(j, rep, 0, 0));
        break;
    case ALLREDUCE:
        verify_sum(j, rep);
        break;
    }
}

/* Operations timed together: the clock and the barrier shall not matter. */
static int batch_of(size_t bytes)
{
    return bytes <= 1024 ? 10 : bytes <= 65536 ? 4 : 1;
}

static void measure(const struct bench_options *o, struct job *j)
{
    const int batch = batch_of(j->bytes);
    const size_t all = j->bytes * (size_t)j->ranks;
    j->out = bench_malloc(all);
    j->in = bench_malloc(all);
    const double start = bench_now_us();
    for (int rep = 0; bench_again(o, rep, start); rep++) {
        memset(j->in, 0, all);
        prepare(j, rep);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = bench_now_us();
        for (int n = 0; n < batch; n++)
            run(j);
        double took_us = (bench_now_us() - begin) / batch, slowest_us = 0;
        verify(j, rep);
        MPI_Reduce(&took_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (j->rank == 0 && rep >= o->warmup)
            printf("{\"bench\":\"%s\",\"bytes\":%zu,\"rep\":%d,\"time\":%.2f}\n", kinds[j->kind],
                   j->bytes, rep - o->warmup, slowest_us);
    }
    fflush(stdout);
    free(j->in);
    free(j->out);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 5,
                              .warmup = 2,
                              .sizes = {8, 1024, 16384, 65536, 262144, 1048576, 4194304, 16777216},
                              .nr_sizes = 8};
    bench_parse(argc, argv, "collectives on any number of ranks", &o);
    struct job j = {.kind = (enum kind)bench_kind(&o, kinds)};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
    for (int i = 0; i < o.nr_sizes; i++) {
        j.bytes = o.sizes[i];
        if (j.kind == ALLREDUCE && j.bytes % 8) {
            if (j.rank == 0)
                fprintf(stderr, "allreduce wants multiples of 8 bytes\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        measure(&o, &j);
    }
    return bench_finish(j.rank);
}

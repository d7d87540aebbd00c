/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: -k alltoall, allgather, bcast or allreduce. SIZE is what one
 * rank sends another (alltoall), contributes (allgather), or holds (bcast,
 * allreduce). Time per operation of the slowest rank, the mean of a batch for
 * small sizes; results are verified after every batch. One JSON line per
 * repetition on rank 0.
 */
#include "collective.h"

static const char *const kinds[] = {"alltoall", "allgather", "bcast", "allreduce", NULL};

static void run(const struct collective_job *j)
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

/* Operations timed together: the clock and the barrier shall not matter. */
static int batch_of(size_t bytes)
{
    return bytes <= 1024 ? 10 : bytes <= 65536 ? 4 : 1;
}

static void measure(const struct bench_options *o, struct collective_job *j)
{
    const int batch = batch_of(j->bytes);
    collective_allocate(j);
    const double start = bench_now_us();
    for (int rep = 0; bench_again(o, rep, start); rep++) {
        memset(j->in, 0, collective_room(j));
        collective_prepare(j, rep);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = bench_now_us();
        for (int n = 0; n < batch; n++)
            run(j);
        double took_us = (bench_now_us() - begin) / batch, slowest_us = 0;
        collective_verify(j, rep);
        MPI_Reduce(&took_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (j->rank == 0 && rep >= o->warmup)
            printf("{\"bench\":\"%s\",\"bytes\":%zu,\"rep\":%d,\"time\":%.2f}\n", kinds[j->kind],
                   j->bytes, rep - o->warmup, slowest_us);
    }
    fflush(stdout);
    collective_free(j);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 5,
                              .warmup = 2,
                              .sizes = {8, 1024, 16384, 65536, 262144, 1048576, 4194304, 16777216},
                              .nr_sizes = 8};
    bench_parse(argc, argv, "collectives on any number of ranks", &o);
    struct collective_job j = {.kind = (enum collective)bench_kind(&o, kinds)};
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

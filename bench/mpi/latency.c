/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong: half a round trip, the mean of a batch per repetition. Every
 * message is verified. One JSON line per repetition on rank 0.
 */
#include "bench.h"

enum { BATCH = 100 };

static void ping_pong(int rank, size_t bytes, char *out, char *in, uint64_t seed)
{
    for (int i = 0; i < BATCH; i++) {
        if (rank == 0) {
            MPI_Send(out, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(in, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            bench_verify(in, bytes, seed);
        } else {
            MPI_Recv(in, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            bench_verify(in, bytes, seed);
            MPI_Send(out, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 50, .warmup = 5, .sizes = {8}, .nr_sizes = 1};
    bench_parse(argc, argv, "small-message latency", &o);
    MPI_Init(&argc, &argv);
    int rank = bench_ranks(2);
    for (int i = 0; i < o.nr_sizes; i++) {
        const size_t bytes = o.sizes[i];
        char *out = bench_malloc(bytes), *in = bench_malloc(bytes);
        const double start = bench_now_us();
        for (int rep = 0; bench_again(&o, rep, start); rep++) {
            pattern_fill(out, bytes, (uint64_t)rep);
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = bench_now_us();
            ping_pong(rank, bytes, out, in, (uint64_t)rep);
            double half_us = (bench_now_us() - begin) / (2.0 * BATCH);
            if (rank == 0 && rep >= o.warmup)
                printf("{\"bench\":\"latency\",\"bytes\":%zu,\"rep\":%d,\"latency\":%.3f}\n", bytes,
                       rep - o.warmup, half_us);
        }
        free(in);
        free(out);
    }
    return bench_finish(rank);
}

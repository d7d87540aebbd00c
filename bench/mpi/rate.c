/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message rate: rank 1 sends windows of small messages to receives that rank 0
 * posts just before; one answer per window. What arrives is summed and checked.
 * One JSON line per repetition (a batch of windows) on rank 0, in messages/s.
 */
#include "window.h"

enum { BATCH = 50 };

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 20, .warmup = 3, .sizes = {8}, .nr_sizes = 1};
    bench_parse(argc, argv, "messages per second, windows of 64", &o);
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    for (int i = 0; i < o.nr_sizes; i++) {
        const size_t bytes = o.sizes[i];
        char *buf = bench_malloc(bytes * WINDOW);
        const double start = bench_now_us();
        for (int rep = 0; bench_again(&o, rep, start); rep++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = bench_now_us();
            for (int n = 0; n < BATCH; n++)
                (rank == 0 ? window_receive : window_send)(bytes, buf, (uint64_t)(rep * BATCH + n),
                                                           MPI_COMM_WORLD);
            double took_us = bench_now_us() - begin;
            if (rank == 0 && rep >= o.warmup)
                printf("{\"bench\":\"rate\",\"bytes\":%zu,\"rep\":%d,\"rate\":%.0f}\n", bytes,
                       rep - o.warmup, WINDOW * BATCH * 1e6 / took_us);
        }
        free(buf);
    }
    return bench_finish(rank);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver that is ready: rank 0 posts a window of receives, then tells
 * rank 1 to send. Bandwidth from the go-ahead to the last byte; every byte is
 * verified afterwards. One JSON line per repetition on rank 0.
 */
#include "bench.h"

enum { GO = 1, DATA = 2, WINDOW = 4 };

static uint64_t seed_of(size_t bytes, int rep, int slot)
{
    return bytes * 1000003u + (uint64_t)(rep * WINDOW + slot);
}

static void send_windows(const struct bench_options *o, size_t bytes, char **buf)
{
    MPI_Request request[WINDOW];
    for (int rep = 0; rep < o->warmup + o->repetitions; rep++) {
        for (int i = 0; i < WINDOW; i++)
            pattern_fill(buf[i], bytes, seed_of(bytes, rep, i));
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < WINDOW; i++)
            MPI_Isend(buf[i], (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request[i]);
        MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    }
}

static void receive_windows(const struct bench_options *o, size_t bytes, char **buf)
{
    MPI_Request request[WINDOW];
    for (int rep = 0; rep < o->warmup + o->repetitions; rep++) {
        for (int i = 0; i < WINDOW; i++)
            MPI_Irecv(buf[i], (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request[i]);
        double begin = bench_now_us();
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
        double took_us = bench_now_us() - begin;
        for (int i = 0; i < WINDOW; i++)
            bench_verify(buf[i], bytes, seed_of(bytes, rep, i));
        if (rep >= o->warmup)
            printf("{\"bench\":\"preposted\",\"bytes\":%zu,\"rep\":%d,\"bandwidth\":%.2f}\n", bytes,
                   rep - o->warmup, (double)bytes * WINDOW / took_us);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 20,
                              .warmup = 3,
                              .sizes = {65536, 262144, 1048576, 4194304, 16777216, 67108864},
                              .nr_sizes = 6};
    bench_parse(argc, argv, "large messages whose receives are posted first", &o);
    MPI_Init(&argc, &argv);
    int rank = bench_ranks();
    for (int i = 0; i < o.nr_sizes; i++) {
        char *buf[WINDOW];
        for (int slot = 0; slot < WINDOW; slot++)
            buf[slot] = bench_malloc(o.sizes[i]);
        if (rank == 0)
            receive_windows(&o, o.sizes[i], buf);
        else
            send_windows(&o, o.sizes[i], buf);
        for (int slot = 0; slot < WINDOW; slot++)
            free(buf[slot]);
    }
    return bench_finish(rank);
}

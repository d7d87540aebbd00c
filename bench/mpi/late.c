/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The late receiver. Rank 1 sends at once; rank 0 first does a fixed amount of
 * work without entering MPI, then posts the receive and reads every byte.
 *
 *   rank 1   |-- MPI_Send ------ sender_held -------|
 *   rank 0   |-- work ------------|-- MPI_Recv --|-- read --|
 *            |                    |-post_to_data-|          |
 *            |---------------------- total ----------------|
 *
 * Before, the same work is timed alone, and afterwards the same reading again:
 *
 *   stretch    the work while the message arrives / the work alone
 *   relative   total / (work alone + reading again)
 *
 * One JSON line per repetition on rank 0.
 */
#include "bench.h"

enum { GO = 1, DATA = 2, HELD = 3 };

static uint64_t seed_of(size_t bytes, int rep)
{
    return bytes * 1000003u + (uint64_t)rep;
}

static void send_all(const struct bench_options *o, size_t bytes, char *buf, double *held_us)
{
    for (int rep = 0; rep < o->warmup + o->repetitions; rep++) {
        pattern_fill(buf, bytes, seed_of(bytes, rep));
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double begin = bench_now_us();
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        held_us[rep] = bench_now_us() - begin;
    }
    MPI_Send(held_us, o->warmup + o->repetitions, MPI_DOUBLE, 0, HELD, MPI_COMM_WORLD);
}

static void receive_all(const struct bench_options *o, size_t bytes, char *buf, double *held_us,
                        uint64_t rounds)
{
    const int all = o->warmup + o->repetitions;
    double *post_us = bench_malloc((size_t)all * sizeof *post_us);
    double *total_us = bench_malloc((size_t)all * sizeof *total_us);
    double *stretch = bench_malloc((size_t)all * sizeof *stretch);
    double *relative = bench_malloc((size_t)all * sizeof *relative);
    for (int rep = 0; rep < all; rep++) {
        const double alone_us = rep < o->warmup ? 0 : bench_work_us(rounds);
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        double begin = bench_now_us();
        bench_work(rounds);
        double posted = bench_now_us();
        MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        post_us[rep] = bench_now_us() - posted;
        bench_verify(buf, bytes, seed_of(bytes, rep));
        total_us[rep] = bench_now_us() - begin;
        const double again = bench_now_us();
        bench_verify(buf, bytes, seed_of(bytes, rep));
        const double read_us = bench_now_us() - again;
        stretch[rep] = (posted - begin) / alone_us;
        relative[rep] = total_us[rep] / (alone_us + read_us);
    }
    MPI_Recv(held_us, all, MPI_DOUBLE, 1, HELD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int rep = o->warmup; rep < all; rep++)
        printf("{\"bench\":\"late\",\"bytes\":%zu,\"rep\":%d,\"post_to_data\":%.2f,"
               "\"total\":%.2f,\"sender_held\":%.2f,\"stretch\":%.4f,\"relative\":%.4f}\n",
               bytes, rep - o->warmup, post_us[rep], total_us[rep], held_us[rep], stretch[rep],
               relative[rep]);
    fflush(stdout);
    free(relative);
    free(stretch);
    free(total_us);
    free(post_us);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 15,
                              .warmup = 5,
                              .compute_ms = 50,
                              .sizes = {65536, 262144, 1048576, 4194304, 16777216, 67108864},
                              .nr_sizes = 6};
    bench_parse(argc, argv, "a large message to a receiver that posts late", &o);
    MPI_Init(&argc, &argv);
    int rank = bench_ranks(2);

    uint64_t rounds = rank == 0 ? (uint64_t)(o.compute_ms * 1000 * bench_rounds_per_us()) : 0;
    MPI_Barrier(MPI_COMM_WORLD);

    double *held_us = bench_malloc((size_t)(o.warmup + o.repetitions) * sizeof *held_us);
    for (int i = 0; i < o.nr_sizes; i++) {
        char *buf = bench_malloc(o.sizes[i]);
        if (rank == 0)
            receive_all(&o, o.sizes[i], buf, held_us, rounds);
        else
            send_all(&o, o.sizes[i], buf, held_us);
        free(buf);
    }
    free(held_us);
    return bench_finish(rank);
}

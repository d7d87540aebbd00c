/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching among many unexpected messages. Rank 1 sends SIZE messages (a count
 * here) of 8 bytes, each with a tag of its own; when all are there, rank 0 times
 * a few receives for the oldest of them (in_order) or the newest (reverse), then
 * takes the rest. Every message is checked. One JSON line per repetition on
 * rank 0: µs per receive; for large counts also the memory a queued message
 * costs, in bytes (growth of the resident set).
 */
#include "bench.h"

enum { GO = 1, ALL_SENT = 2, FIRST_TAG = 3, TIMED = 32, MANY = 10000 };

static uint64_t content_of(int index, int rep)
{
    return pattern_mix((uint64_t)rep << 32 | (uint64_t)index);
}

static void send_messages(int count, int rep)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        uint64_t word = content_of(i, rep);
        MPI_Send(&word, 8, MPI_BYTE, 0, FIRST_TAG + i, MPI_COMM_WORLD);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, ALL_SENT, MPI_COMM_WORLD);
}

static void receive_message(int index, int rep)
{
    uint64_t word = 0;
    MPI_Recv(&word, 8, MPI_BYTE, 1, FIRST_TAG + index, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (word != content_of(index, rep)) {
        fprintf(stderr, "wrong data in message %d\n", index);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* µs per receive; @resident_kib: once all are queued */
static double receive_messages(int count, int rep, int reverse, long *resident_kib)
{
    const int timed = count < TIMED ? count : TIMED;
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    /* One connection keeps the order: after this message all others are here. */
    MPI_Recv(NULL, 0, MPI_BYTE, 1, ALL_SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *resident_kib = bench_status_kib("VmRSS:");
    double begin = bench_now_us();
    for (int i = 0; i < timed; i++)
        receive_message(reverse ? count - 1 - i : i, rep);
    double took_us = bench_now_us() - begin;
    /* The rest from the old end, where no queue is slow. */
    for (int i = timed; i < count; i++)
        receive_message(reverse ? i - timed : i, rep);
    return took_us / timed;
}

int main(int argc, char **argv)
{
    struct bench_options o = {
        .repetitions = 3, .warmup = 1, .sizes = {1, 10, 100, 1000, 10000, 100000}, .nr_sizes = 6};
    bench_parse(argc, argv, "receives among many unexpected messages; SIZE counts messages", &o);
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    MPI_Barrier(MPI_COMM_WORLD);
    const long before_kib = bench_status_kib("VmRSS:");
    for (int i = 0; i < o.nr_sizes; i++) {
        const int count = (int)o.sizes[i];
        /* Short queues are cheap, and a single receive is a small thing to time. */
        struct bench_options here = o;
        here.repetitions *= count <= 1000 ? 10 : 1;
        const double start = bench_now_us();
        for (int rep = 0; bench_again(&here, rep, start); rep++)
            for (int reverse = 0; reverse <= 1; reverse++) {
                long resident_kib = 0;
                if (rank == 1) {
                    send_messages(count, 2 * rep + reverse);
                    continue;
                }
                double each_us = receive_messages(count, 2 * rep + reverse, reverse, &resident_kib);
                if (rep < o.warmup)
                    continue;
                printf("{\"bench\":\"matching\",\"bytes\":8,\"rep\":%d,\"queued\":%d,\"%s\":%.3f",
                       rep - o.warmup, count, reverse ? "reverse" : "in_order", each_us);
                if (count >= MANY)
                    printf(",\"memory\":%.0f",
                           1024.0 * (double)(resident_kib - before_kib) / count);
                printf("}\n");
                fflush(stdout);
            }
    }
    return bench_finish(rank);
}

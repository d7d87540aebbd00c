/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flood of messages that are not received yet. Rank 1 sends SIZE messages (a count here) of
 * 8 bytes with MPI_Send, in 1,000 tags by turns; rank 0 probes for a tag that never comes until
 * all are queued, then receives them in the order of sending and checks each. One JSON line
 * for each count on rank 0: seconds from the first to the last of them (queue), seconds to
 * receive all (drain), and what a queued message takes (growth of the resident set, bytes).
 * The line of the largest count is printed once more without the count.
 *
 * To queue all of them the library must not hold senders: run with
 * MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET=inf. Each count is a flood of its own, in the same
 * process; what the library keeps of the smaller ones is there when the larger begin.
 */
#include "bench.h"

enum { TAGS = 1000, GO = TAGS, SENT = TAGS + 1, NEVER = TAGS + 2 };

static void send_flood(size_t count)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = pattern_mix(i);
        MPI_Send(&word, 8, MPI_BYTE, 0, (int)(i % TAGS), MPI_COMM_WORLD);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, SENT, MPI_COMM_WORLD);
}

static void receive_flood(size_t count, int is_last)
{
    int there = 0;
    const long before_kib = bench_status_kib("VmRSS:");
    const double begin = bench_now_us();
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    for (int all = 0; !all;) {
        MPI_Iprobe(1, NEVER, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        MPI_Iprobe(1, SENT, MPI_COMM_WORLD, &all, MPI_STATUS_IGNORE);
    }
    const double queued = bench_now_us();
    const long grown_kib = bench_status_kib("VmRSS:") - before_kib;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = 0;
        MPI_Recv(&word, 8, MPI_BYTE, 1, (int)(i % TAGS), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (word != pattern_mix(i)) {
            fprintf(stderr, "wrong data in message %llu\n", (unsigned long long)i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    const double drained = bench_now_us();
    MPI_Recv(NULL, 0, MPI_BYTE, 1, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int whole = 0; whole <= is_last; whole++) {
        printf("{\"bench\":\"flood\",\"bytes\":8,\"rep\":0,");
        if (!whole)
            printf("\"queued\":%zu,", count);
        printf("\"bytes_per_message\":%.1f,\"queue\":%.4f,\"drain\":%.4f}\n",
               1024.0 * (double)grown_kib / (double)count, (queued - begin) / 1e6,
               (drained - queued) / 1e6);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bench_options o = {
        .repetitions = 1, .sizes = {100000, 1000000, 10000000}, .nr_sizes = 3};
    bench_parse(argc, argv, "many messages before their receives; SIZE counts messages", &o);
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < o.nr_sizes; i++) {
        if (rank == 1)
            send_flood(o.sizes[i]);
        else
            receive_flood(o.sizes[i], i == o.nr_sizes - 1);
    }
    return bench_finish(rank);
}

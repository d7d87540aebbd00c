/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message rate of several threads under MPI_THREAD_MULTIPLE: thread i of rank 1 sends
 * windows of 8-byte messages to receives that thread i of rank 0 posts just before, each
 * pair on a communicator of its own. SIZE is the number of threads of a rank (1, 2, ...).
 * What arrives is checked. One JSON line per repetition on rank 0: messages/s of all
 * threads together.
 */
#include "window.h"
#include <pthread.h>

enum { BATCH = 50, BYTES = 8, MAX_THREADS = 16 };

struct thread {
    pthread_t id;
    MPI_Comm comm;
    int rank;
    uint64_t seed;
};

static void *run(void *argument)
{
    const struct thread *t = argument;
    char buf[WINDOW * BYTES];
    for (int n = 0; n < BATCH; n++)
        (t->rank == 0 ? window_receive : window_send)(BYTES, buf, t->seed + (uint64_t)n, t->comm);
    return NULL;
}

static void run_threads(struct thread *threads, int nr_threads, uint64_t seed)
{
    for (int i = 0; i < nr_threads; i++) {
        threads[i].seed = seed + (uint64_t)i * 1000003u;
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0) {
            fprintf(stderr, "no thread to be had\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    for (int i = 0; i < nr_threads; i++)
        pthread_join(threads[i].id, NULL);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 10, .warmup = 1, .sizes = {1, 2, 4}, .nr_sizes = 3};
    bench_parse(argc, argv, "messages per second of several threads; SIZE: threads", &o);
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    const int rank = bench_ranks(2);
    if (provided != MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    struct thread threads[MAX_THREADS];
    for (int i = 0; i < MAX_THREADS; i++) {
        threads[i].rank = rank;
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
    }
    for (int i = 0; i < o.nr_sizes; i++) {
        const int nr_threads = (int)o.sizes[i];
        if (nr_threads < 1 || nr_threads > MAX_THREADS) {
            fprintf(stderr, "1 to %d threads, not %d\n", MAX_THREADS, nr_threads);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        const double start = bench_now_us();
        for (int rep = 0; bench_again(&o, rep, start); rep++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = bench_now_us();
            run_threads(threads, nr_threads, (uint64_t)rep);
            const double took_us = bench_now_us() - begin;
            if (rank == 0 && rep >= o.warmup)
                printf("{\"bench\":\"threads\",\"bytes\":%d,\"threads\":%d,\"rep\":%d,"
                       "\"rate\":%.0f}\n",
                       BYTES, nr_threads, rep - o.warmup,
                       (double)nr_threads * WINDOW * BATCH * 1e6 / took_us);
        }
    }
    for (int i = 0; i < MAX_THREADS; i++)
        MPI_Comm_free(&threads[i].comm);
    return bench_finish(rank);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libzcm costs a message between two ranks, sent again and again.
 *
 *   pingpong HOW BYTES SETS EACH [FILE]
 *
 * One line per set of EACH: "set N ns", the time of one message. HOW:
 *
 *   pingpong   there and back
 *   both       one from each rank to the other, at the same time
 *   burst      BURST one after the other, and a word back: they may travel together
 *   vcis       there and back on two threads, each with its own communicator
 *
 * FILE: before the first set the ranks come to safe points until it exists, so that they can move.
 * PLAIN: without libzcm. Both ranks touch what they have received.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifndef PLAIN
#include <zcm/zcm.h>
#endif

enum { BURST = 64, THREADS = 2 };

/* What one thread sends and receives. */
struct pair {
    MPI_Comm comm;
    char *out, *in; /* BYTES each; for a burst, BURST times as many */
    int bytes, rank, each;
    long sum;
};

/* Between sets, and before the first: up to then libzcm notes what a rank calls and receives. */
static void safe_point(void)
{
#ifndef PLAIN
    zcm_safe_point();
#endif
}

static void touch(struct pair *of, char *memory, int bytes)
{
    for (int i = 0; i < bytes; i += 64)
        of->sum += memory[i]++;
}

static void there_and_back(struct pair *of)
{
    if (of->rank == 0)
        MPI_Send(of->in, of->bytes, MPI_BYTE, 1, 0, of->comm);
    MPI_Recv(of->in, of->bytes, MPI_BYTE, 1 - of->rank, 0, of->comm, MPI_STATUS_IGNORE);
    touch(of, of->in, of->bytes);
    if (of->rank == 1)
        MPI_Send(of->in, of->bytes, MPI_BYTE, 0, 0, of->comm);
}

static void both_ways(struct pair *of)
{
    MPI_Request requests[2];
    MPI_Irecv(of->in, of->bytes, MPI_BYTE, 1 - of->rank, 0, of->comm, &requests[0]);
    MPI_Isend(of->out, of->bytes, MPI_BYTE, 1 - of->rank, 0, of->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    touch(of, of->in, of->bytes);
}

static void burst(struct pair *of)
{
    MPI_Request requests[BURST];
    char word = 0;
    for (int i = 0; i < BURST; i++) {
        char *const at = of->in + (size_t)i * of->bytes;
        if (of->rank == 0)
            MPI_Isend(at, of->bytes, MPI_BYTE, 1, 0, of->comm, &requests[i]);
        else
            MPI_Irecv(at, of->bytes, MPI_BYTE, 0, 0, of->comm, &requests[i]);
    }
    MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    touch(of, of->in, BURST * of->bytes);
    if (of->rank == 1)
        MPI_Send(&word, 1, MPI_BYTE, 0, 1, of->comm);
    else
        MPI_Recv(&word, 1, MPI_BYTE, 1, 1, of->comm, MPI_STATUS_IGNORE);
}

static void *on_a_thread(void *argument)
{
    struct pair *const of = argument;
    for (int i = 0; i < of->each; i++)
        there_and_back(of);
    return NULL;
}

static void on_threads(struct pair *pairs)
{
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, on_a_thread, &pairs[t]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

/* Each way: its name, one turn of it, and how many messages that is at a time. */
static const struct way {
    const char *name;
    void (*turn)(struct pair *);
    int messages;
} kWays[] = {{"pingpong", there_and_back, 2},
             {"both", both_ways, 1},
             {"burst", burst, BURST},
             {"vcis", NULL, 2}};

static const struct way *way_of(const char *name)
{
    for (size_t i = 0; i < sizeof kWays / sizeof *kWays; i++)
        if (strcmp(kWays[i].name, name) == 0)
            return &kWays[i];
    return NULL;
}

/* Both ranks stop at the same turn: rank 0 has looked. */
static void move_until(const char *file)
{
    for (int ends = 0; !ends;) {
        ends = access(file, F_OK) == 0;
        MPI_Bcast(&ends, 1, MPI_INT, 0, MPI_COMM_WORLD);
        safe_point();
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void one_set(const struct way *way, struct pair *pairs)
{
    if (!way->turn) {
        on_threads(pairs);
        return;
    }
    for (int i = 0; i < pairs->each; i++)
        way->turn(pairs);
}

int main(int argc, char **argv)
{
    int rank, ranks, level;
    struct pair pairs[THREADS] = {0};
    const struct way *const way = argc > 4 ? way_of(argv[1]) : NULL;
    MPI_Init_thread(&argc, &argv, way && !way->turn ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &level);
#ifndef PLAIN
    if (zcm_init(&argc, &argv) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int bytes = argc > 4 ? atoi(argv[2]) : 0, sets = argc > 4 ? atoi(argv[3]) : 0;
    const int each = argc > 4 ? atoi(argv[4]) : 0;
    if (!way || ranks != 2 || bytes < 1 || each < 1 || (!way->turn && level != MPI_THREAD_MULTIPLE))
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int t = 0; t < THREADS; t++) {
        pairs[t] = (struct pair){MPI_COMM_WORLD,
                                 calloc((size_t)bytes + 1, BURST),
                                 calloc((size_t)bytes + 1, BURST),
                                 bytes,
                                 rank,
                                 each,
                                 0};
        if (!pairs[t].in || !pairs[t].out)
            MPI_Abort(MPI_COMM_WORLD, 2);
        if (!way->turn)
            MPI_Comm_dup(MPI_COMM_WORLD, &pairs[t].comm);
    }
    safe_point();
    if (argc > 5)
        move_until(argv[5]);
    for (int set = 0; set < sets; set++) {
        const double begin = MPI_Wtime();
        one_set(way, pairs);
        if (rank == 0)
            printf("set %.1f ns\n", (MPI_Wtime() - begin) / each / way->messages * 1e9);
        safe_point();
    }
    if (rank == 0)
        printf("sum %ld\n", pairs[0].sum + pairs[1].sum);
    for (int t = 0; t < THREADS; t++) {
        if (!way->turn)
            MPI_Comm_free(&pairs[t].comm);
        free(pairs[t].in);
        free(pairs[t].out);
    }
#ifndef PLAIN
    zcm_finalize();
#endif
    MPI_Finalize();
    return 0;
}

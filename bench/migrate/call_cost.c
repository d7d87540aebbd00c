/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many instructions libzcm executes in calls of MPI: two ranks.
 *
 *   calls [WHERE]     one line per call: "CALL INSTRUCTIONS CLOCK", the least of several, and as
 *                     many in the vdso; with the name of a call also its steps, a line "at LIBRARY
 *                     OFFSET" for each
 *
 * PLAIN: without libzcm. Each call finds what it waits for, so that MPI need not be waited for.
 */
#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef PLAIN
#include <zcm/zcm.h>
#endif

#include "steps.h"

/* The first one has symbols looked up; another may see a tick of the clock, and tell it. */
enum { REPEATED = 9 };

#define CALLS(_)                                                                                   \
    _(MPI_Send)                                                                                    \
    _(MPI_Recv)                                                                                    \
    _(MPI_Isend)                                                                                   \
    _(MPI_Wait_send)                                                                               \
    _(MPI_Irecv)                                                                                   \
    _(MPI_Wait_receive)                                                                            \
    _(MPI_Test)                                                                                    \
    _(MPI_Test_done)                                                                               \
    _(MPI_Waitall)                                                                                 \
    _(MPI_Sendrecv)                                                                                \
    _(MPI_Start)                                                                                   \
    _(MPI_Wait_persistent)                                                                         \
    _(MPI_Iprobe)                                                                                  \
    _(MPI_Allreduce)                                                                               \
    _(MPI_Bcast)                                                                                   \
    _(MPI_Barrier)
#define NUMBER(name) OF_##name,
#define NAME(name) #name,
enum { CALLS(NUMBER) CALL_COUNT };
static const char *const names[] = {CALLS(NAME)};

static long least[CALL_COUNT], clocks[CALL_COUNT];
static struct steps shown;
static const char *where = "";
static int rank;

static void note(int call)
{
    const struct steps *last = steps_last();
    if (last->clock < clocks[call])
        clocks[call] = last->clock;
    if (last->count >= least[call])
        return;
    least[call] = last->count;
    if (strcmp(names[call], where) == 0)
        shown = *last;
}

#define COUNT(name, call)                                                                          \
    do {                                                                                           \
        STEPS(call);                                                                               \
        note(OF_##name);                                                                           \
    } while (0)

static void together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What has been sent before both have met has come when it is looked for. */
static void until_come(void)
{
    int there = 0;
    together();
    while (rank == 1 && !there)
        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

static void blocking(void)
{
    double word = 0, other = 0;
    if (rank == 0)
        COUNT(MPI_Send, MPI_Send(&word, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    until_come();
    if (rank == 1)
        COUNT(MPI_Recv, MPI_Recv(&word, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    together();
    COUNT(MPI_Sendrecv, MPI_Sendrecv(&word, 1, MPI_DOUBLE, 1 - rank, 0, &other, 1, MPI_DOUBLE,
                                     1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void nonblocking(void)
{
    double word = 0, other = 0;
    MPI_Request one, both[2];
    MPI_Status statuses[2];
    int done = 0;
    if (rank == 0) {
        together();
        COUNT(MPI_Isend, MPI_Isend(&word, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &one));
        COUNT(MPI_Wait_send, MPI_Wait(&one, MPI_STATUS_IGNORE));
        together();
        together();
        MPI_Send(&word, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        together();
    } else {
        COUNT(MPI_Irecv, MPI_Irecv(&word, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &one));
        COUNT(MPI_Test, MPI_Test(&one, &done, MPI_STATUS_IGNORE));
        together();
        together();
        COUNT(MPI_Wait_receive, MPI_Wait(&one, MPI_STATUS_IGNORE));
        MPI_Irecv(&word, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &one);
        together();
        together();
        for (done = 0; !done;)
            STEPS(MPI_Test(&one, &done, MPI_STATUS_IGNORE));
        note(OF_MPI_Test_done);
    }
    MPI_Irecv(&other, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&word, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
    together();
    COUNT(MPI_Waitall, MPI_Waitall(2, both, statuses));
    COUNT(MPI_Iprobe, MPI_Iprobe(1 - rank, 0, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE));
}

static void persistent(MPI_Request *request)
{
    COUNT(MPI_Start, MPI_Start(request));
    together();
    COUNT(MPI_Wait_persistent, MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void collective(void)
{
    double word = 0, sum = 0;
    COUNT(MPI_Allreduce, MPI_Allreduce(&word, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    if (rank == 0)
        COUNT(MPI_Bcast, MPI_Bcast(&word, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    else
        MPI_Bcast(&word, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    COUNT(MPI_Barrier, MPI_Barrier(MPI_COMM_WORLD));
}

static void count_all(void)
{
    double word = 0;
    MPI_Request request;
    for (int i = 0; i < CALL_COUNT; i++)
        least[i] = clocks[i] = LONG_MAX;
    if (rank == 0)
        MPI_Send_init(&word, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
    else
        MPI_Recv_init(&word, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < REPEATED; i++) {
        blocking();
        nonblocking();
        persistent(&request);
        collective();
    }
    MPI_Request_free(&request);
}

static void show(void)
{
    struct {
        long least;
        int rank;
    } here[CALL_COUNT], of_both[CALL_COUNT];
    long clocks_of_both[CALL_COUNT];
    for (int i = 0; i < CALL_COUNT; i++) {
        here[i].least = least[i];
        here[i].rank = rank;
    }
    MPI_Allreduce(here, of_both, CALL_COUNT, MPI_LONG_INT, MPI_MINLOC, MPI_COMM_WORLD);
    MPI_Allreduce(clocks, clocks_of_both, CALL_COUNT, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    for (int i = 0; i < CALL_COUNT; i++) {
        if (rank == 0)
            printf("%s %ld %ld\n", names[i], of_both[i].least, clocks_of_both[i]);
        if (strcmp(names[i], where) != 0 || of_both[i].rank != rank)
            continue;
        for (long k = 0; k < shown.count && k < STEPS_NOTED; k++) {
            Dl_info in;
            if (dladdr((void *)shown.at[k], &in))
                printf("at %s %lx\n", in.dli_fname, shown.at[k] - (unsigned long)in.dli_fbase);
        }
    }
}

int main(int argc, char **argv)
{
    int ranks;
    where = argc > 1 ? argv[1] : "";
    steps_open();
    MPI_Init(&argc, &argv);
#ifndef PLAIN
    if (zcm_init(&argc, &argv) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
#ifndef PLAIN
    zcm_safe_point(); /* up to here libzcm notes what is called and received */
#endif
    count_all();
    show();
#ifndef PLAIN
    zcm_safe_point();
    zcm_finalize();
#endif
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to oneself: nothing but the MPI library's own work, which is where
 * the tracer's shows most. Prints nanoseconds per round of the calls named, of
 * processor time: what else runs on the machine does not count. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 200000
#define WINDOW 8

static char in[WINDOW][64], out[64];

static void one(int i)
{
    MPI_Request request;
    MPI_Irecv(in[i % WINDOW], 64, MPI_CHAR, 0, i % 100, MPI_COMM_SELF, &request);
    MPI_Send(out, 8, MPI_CHAR, 0, i % 100, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void several(int i)
{
    MPI_Request requests[WINDOW];
    if (i % WINDOW)
        return;
    for (int k = 0; k < WINDOW; k++)
        MPI_Irecv(in[k], 64, MPI_CHAR, 0, k, MPI_COMM_SELF, &requests[k]);
    for (int k = 0; k < WINDOW; k++)
        MPI_Send(out, 8, MPI_CHAR, 0, k, MPI_COMM_SELF);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
}

static void collective(int i)
{
    (void)i;
    MPI_Allreduce(out, in, 8, MPI_CHAR, MPI_MAX, MPI_COMM_SELF);
}

static void poll(int i)
{
    static MPI_Request request = MPI_REQUEST_NULL;
    int flag;
    if (i == 0)
        MPI_Irecv(in, 1, MPI_CHAR, 0, 101, MPI_COMM_SELF, &request);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (i == ROUNDS - 1) {
        MPI_Send(out, 1, MPI_CHAR, 0, 101, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static double processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(const char *name, void (*round)(int))
{
    for (int i = 0; i < WINDOW * 100; i++)
        if (round != poll)
            round(i);
    const double begin = processor_ns();
    for (int i = 0; i < ROUNDS; i++)
        round(i);
    printf("%s %.2f\n", name, (processor_ns() - begin) / ROUNDS);
}

int main(int argc, char **argv)
{
    const int wanted = argc > 1 && atoi(argv[1]) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int provided;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    measure("irecv_send_wait", one);
    measure("irecv_send_waitall", several);
    measure("allreduce", collective);
    measure("test", poll);
    MPI_Finalize();
    return 0;
}

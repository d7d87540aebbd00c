/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message takes with the tracer and without it, in one process: the functions that the
 * program is linked with, which are the tracer's if it is loaded, and those of the library behind
 * it take turns. Two ranks, or one that sends to itself.
 *
 * usage: message_cost TURNS
 *
 * A line for each case and turn: CASE TRACED PLAIN, in nanoseconds of a message (of a step, for
 * "stencil"). With two ranks it is the time that passes, half of it for a message there and back;
 * with one it is processor time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS(X) X(Send) X(Recv) X(Isend) X(Irecv) X(Wait) X(Waitall)

struct functions {
#define X(name) __typeof__(MPI_##name) *name;
    FUNCTIONS(X)
#undef X
};

#define ROUNDS 500 /* in a turn */
#define BYTES 8
#define FACE 8192
#define WORK 20000 /* of a step of the stencil: some 50 us */

static char in[FACE], out[FACE];
static int rank, peer;

/* The library's, from the file that has a function which the tracer does not have. */
static struct functions find_library(void)
{
    struct functions found;
    Dl_info info;
    void *library = dladdr((void *)MPI_Wtime, &info) ? dlopen(info.dli_fname, RTLD_LAZY) : NULL;
#define X(name)                                                                                    \
    *(void **)&found.name = library ? dlsym(library, "PMPI_" #name) : NULL;                        \
    if (!found.name) {                                                                             \
        fputs("message_cost: the MPI library has no PMPI_" #name "\n", stderr);                    \
        exit(1);                                                                                   \
    }
    FUNCTIONS(X)
#undef X
    return found;
}

static void send(const struct functions *mpi)
{
    mpi->Send(out, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void receive(const struct functions *mpi)
{
    mpi->Recv(in, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ping_pong(const struct functions *mpi)
{
    if (rank == 0)
        send(mpi);
    receive(mpi);
    if (rank != 0)
        send(mpi);
}

static void ping_pong_wait(const struct functions *mpi)
{
    MPI_Request request;
    mpi->Irecv(in, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
    if (rank == 0)
        send(mpi);
    mpi->Wait(&request, MPI_STATUS_IGNORE);
    if (rank != 0)
        send(mpi);
}

static void exchange(const struct functions *mpi, int bytes)
{
    MPI_Request requests[2];
    mpi->Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    mpi->Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
    mpi->Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void waitall(const struct functions *mpi)
{
    exchange(mpi, BYTES);
}

static void stencil(const struct functions *mpi)
{
    static volatile double sum;
    double value = sum;
    for (int i = 0; i < WORK; i++)
        value = value * 0.5 + (double)i;
    sum = value;
    exchange(mpi, FACE);
}

static double read_ns(void)
{
    struct timespec t;
    clock_gettime(peer == rank ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(void (*round)(const struct functions *), const struct functions *mpi,
                      int messages)
{
    const double begin = read_ns();
    for (int i = 0; i < ROUNDS; i++)
        round(mpi);
    return (read_ns() - begin) / ROUNDS / messages;
}

int main(int argc, char **argv)
{
    const struct functions traced = {
#define X(name) MPI_##name,
        FUNCTIONS(X)
#undef X
    };
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const struct functions plain = find_library();
    const int turns = argc > 1 ? atoi(argv[1]) : 1;
    peer = size - 1 - rank;
    /* Messages on the way from the first to the last byte of a round, one after the other. */
    const int there_and_back = size > 1 ? 2 : 1;
    const struct {
        const char *name;
        void (*round)(const struct functions *);
        int messages;
    } cases[] = {{"send_recv", ping_pong, there_and_back},
                 {"irecv_send_wait", ping_pong_wait, there_and_back},
                 {"irecv_isend_waitall", waitall, 1},
                 {"stencil", stencil, 1}};
    /* A send to oneself may wait for its receive. */
    const size_t first = size > 1 ? 0 : 1;
    for (int turn = -2; turn < turns; turn++)
        for (size_t i = first; i < sizeof(cases) / sizeof(cases[0]); i++) {
            double ns[2];
            for (int k = 0; k < 2; k++) {
                const int which = (k + turn) & 1;
                ns[which] = measure(cases[i].round, which ? &plain : &traced, cases[i].messages);
            }
            if (rank == 0 && turn >= 0)
                printf("%s %.2f %.2f\n", cases[i].name, ns[0], ns[1]);
        }
    MPI_Finalize();
    return 0;
}

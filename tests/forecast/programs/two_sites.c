/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 sends to rank 1, which rests first, in each of twelve rounds: three messages of 1 MiB that
 * lie there together, and then one whose buffer is another each time. */
#include "rest.h"

enum { ROUNDS = 12, MIB = 1 << 20, TOGETHER = 3, REST_MS = 20 };

static int fifo;

static void __attribute__((noinline)) send_three(char *data)
{
    MPI_Request requests[TOGETHER];
    say(fifo);
    for (int i = 0; i < TOGETHER; i++)
        MPI_Isend(data + i * MIB, MIB, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(TOGETHER, requests, MPI_STATUSES_IGNORE);
}

static void __attribute__((noinline)) receive_three(char *data)
{
    MPI_Request requests[TOGETHER];
    hear(fifo);
    rest(REST_MS);
    for (int i = 0; i < TOGETHER; i++)
        MPI_Irecv(data + i * MIB, MIB, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(TOGETHER, requests, MPI_STATUSES_IGNORE);
}

static void __attribute__((noinline)) send_one(char *data)
{
    say(fifo);
    MPI_Send(data, MIB, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
}

static void __attribute__((noinline)) receive_one(char *data)
{
    hear(fifo);
    rest(REST_MS);
    MPI_Recv(data, MIB, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    /* Without an order: in units of a page and some bytes. */
    static const int places[ROUNDS] = {7, 2, 11, 5, 0, 9, 3, 12, 1, 8, 4, 10};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = touched(16 * MIB);
    fifo = open_fifo(0);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        rank == 0 ? send_three(data) : receive_three(data);
        MPI_Barrier(MPI_COMM_WORLD);
        rank == 0 ? send_one(data) : receive_one(data + TOGETHER * MIB + places[i] * 70001);
    }
    if (rank == 0) {
        remove_fifo(0);
        rest(REST_MS);
    }
    MPI_Finalize();
    return 0;
}

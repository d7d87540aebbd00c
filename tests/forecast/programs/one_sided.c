/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication that is not recorded: each rank puts 5 times 4 KiB into the memory of the next one,
 * gets 1 KiB once, adds once 8 bytes and asks for them; with MPI-4 it starts a persistent barrier
 * thrice. */
#include "rest.h"

static char other[4096];

static void start_persistent(int next)
{
    MPI_Request request;
    /* Nothing to say of this one: it goes nowhere. */
    MPI_Send_init(other, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    /* Nor of this one: it is recorded. */
    MPI_Send_init(other, 1, MPI_BYTE, next, 1, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Recv(other, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
#if MPI_VERSION >= 4
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
#endif
}

int main(int argc, char **argv)
{
    int rank, size;
    long one = 1, before = 0;
    char *mine;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int next = (rank + 1) % size;
    MPI_Win_allocate(8192, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < 5; i++)
        MPI_Put(other, 4096, MPI_BYTE, next, 0, 4096, MPI_BYTE, window);
    MPI_Put(other, 4096, MPI_BYTE, MPI_PROC_NULL, 0, 4096, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    MPI_Get(other, 1024, MPI_BYTE, next, 4096, 1024, MPI_BYTE, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
    MPI_Accumulate(&one, 1, MPI_LONG, next, 8, 1, MPI_LONG, MPI_SUM, window);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, next, 8, MPI_SUM, window);
    MPI_Win_unlock(next, window);
    MPI_Win_free(&window);
    start_persistent(next);
    MPI_Finalize();
    return 0;
}

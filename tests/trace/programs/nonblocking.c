/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests completed by every function, also in another order than posted. */
#include "expect.h"

#define N 6
static int data[N][64];
static MPI_Request requests[N];
static MPI_Status statuses[N];
static int indices[N];

/* Rank 0 sends with tags in reverse order, so that the last posted comes first. */
static void post(int round)
{
    for (int i = 0; i < N; i++) {
        if (rank == 0) {
            const int tag = 10 * round + N - 1 - i;
            if (i % 3 == 0)
                MPI_Isend(data[i], 16, MPI_INT, 1, tag, MPI_COMM_WORLD, &requests[i]);
            else if (i % 3 == 1)
                MPI_Issend(data[i], 16, MPI_INT, 1, tag, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irsend(data[i], 16, MPI_INT, 1, tag, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(data[i], 64, MPI_INT, 0, 10 * round + i, MPI_COMM_WORLD, &requests[i]);
            p2p(MPI_COMM_WORLD, 0, 10 * round + i, 64, data[i]);
        }
    }
}

static void complete(int round)
{
    int flag = 0, n = 0, idx;
    switch (round) {
    case 0:
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
        break;
    case 1:
        MPI_Waitall(N, requests, statuses);
        break;
    case 2:
        for (int i = 0; i < N; i++)
            MPI_Waitany(N, requests, &idx, &statuses[0]);
        break;
    case 3:
        for (int done = 0; done < N; done += n)
            MPI_Waitsome(N, requests, &n, indices, round % 2 ? statuses : MPI_STATUSES_IGNORE);
        break;
    case 4:
        for (int i = N - 1; i >= 0; i--)
            for (flag = 0; !flag;)
                MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        break;
    case 5:
        while (!flag)
            MPI_Testall(N, requests, &flag, statuses);
        break;
    case 6:
        for (int done = 0; done < N; done += flag)
            MPI_Testany(N, requests, &idx, &flag, MPI_STATUS_IGNORE);
        break;
    case 7:
        for (int done = 0; done < N; done += n)
            MPI_Testsome(N, requests, &n, indices, MPI_STATUSES_IGNORE);
        break;
    default:
        while (!flag)
            MPI_Request_get_status(requests[2], &flag, MPI_STATUS_IGNORE);
        MPI_Waitall(N, requests, statuses);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int round = 0; round < 9 && rank < 2; round++) {
        int ready = 0;
        if (rank == 1)
            post(round);
        /* A ready send needs its receive. */
        if (rank == 0) {
            MPI_Recv(&ready, 1, MPI_INT, 1, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            p2p(MPI_COMM_WORLD, 1, 999, 4, &ready);
            post(round);
        } else {
            MPI_Send(&ready, 1, MPI_INT, 0, 999, MPI_COMM_WORLD);
        }
        complete(round);
    }
    if (rank == 1) {
        /* Cancelled: no row. */
        MPI_Irecv(data[0], 1, MPI_INT, 0, 12345, MPI_COMM_WORLD, &requests[0]);
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    end();
    return 0;
}

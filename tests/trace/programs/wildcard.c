/* SPDX-License-Identifier: BSD-3-Clause */
/* Any source, any tag; probes. The rows say what really came. */
#include "expect.h"

#define N 5
static int data[N * 64][32];

static void collect(void)
{
    MPI_Request requests[N * 63];
    MPI_Status statuses[N * 63];
    const int n = N * (size - 1);
    for (int i = 0; i < n; i++)
        MPI_Irecv(data[i], 32, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(n, requests, statuses);
    for (int i = 0; i < n; i++) {
        int count;
        MPI_Get_count(&statuses[i], MPI_INT, &count);
        p2p(MPI_COMM_WORLD, statuses[i].MPI_SOURCE, statuses[i].MPI_TAG, 4 * (size_t)count,
            data[i]);
    }
}

static void collect_probed(void)
{
    MPI_Message messages[3];
    MPI_Status status;
    MPI_Request request;
    int flag = 0;
    /* The order of the probes is not that of the receives. */
    MPI_Mprobe(1, 77, MPI_COMM_WORLD, &messages[0], &status);
    MPI_Mprobe(1, 77, MPI_COMM_WORLD, &messages[1], &status);
    while (!flag)
        MPI_Improbe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &messages[2], &status);
    MPI_Mrecv(data[0], 32, MPI_INT, &messages[1], &status);
    p2p(MPI_COMM_WORLD, 1, 77, 8, data[0]);
    MPI_Imrecv(data[1], 32, MPI_INT, &messages[0], &request);
    p2p(MPI_COMM_WORLD, 1, 77, 4, data[1]);
    MPI_Mrecv(data[2], 32, MPI_INT, &messages[2], MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, 1, 77, 12, data[2]);
    MPI_Wait(&request, &status);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (rank == 0)
        collect();
    else
        for (int i = 0; i < N; i++)
            MPI_Send(data[0], rank + i, MPI_INT, 0, 100 * rank + i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD); /* any tag would take what comes next, too */
    if (rank == 0)
        collect_probed();
    else if (rank == 1)
        for (int i = 1; i <= 3; i++)
            MPI_Send(data[0], i, MPI_INT, 0, 77, MPI_COMM_WORLD);
    end();
    return 0;
}

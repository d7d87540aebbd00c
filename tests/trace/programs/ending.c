/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends as told: finalize, exit (without MPI_Finalize), abort, kill, code. */
#include "expect.h"

#include <signal.h>
#include <time.h>

static int data[64];

static void exchange(int i)
{
    MPI_Sendrecv(data, 1, MPI_INT, rank ^ 1, i, data + 8, 8, MPI_INT, rank ^ 1, i, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, rank ^ 1, i, 4, data + 8);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "finalize";
    const int n = argc > 2 ? atoi(argv[2]) : 100;
    begin(&argc, &argv);
    for (int i = 0; i < n; i++)
        exchange(i);
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (strcmp(how, "kill") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        kill(getpid(), SIGKILL);
    }
    if (strcmp(how, "free") == 0 && rank == 1) {
        /* The program does not see the first message come; the second is still the second. */
        MPI_Request request;
        MPI_Irecv(data, 1, MPI_INT, 0, 5000, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Recv(data + 1, 8, MPI_INT, 0, 5000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, 0, 5000, 8, data + 1);
    }
    if (strcmp(how, "free") == 0 && rank == 0) {
        MPI_Send(data, 1, MPI_INT, 1, 5000, MPI_COMM_WORLD);
        MPI_Send(data, 2, MPI_INT, 1, 5000, MPI_COMM_WORLD);
    }
    end();
    return strcmp(how, "code") == 0 ? 3 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends as told: finalize, exit (without MPI_Finalize), abort, kill, code; handler: as exit, in the
 * error handler of a collective, and handler_threads: with MPI_THREAD_MULTIPLE. */
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

static void exit_in_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    exit(3);
}

static void fail(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(exit_in_handler, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "finalize";
    const int n = argc > 2 ? atoi(argv[2]) : 100;
    int provided;
    if (strcmp(how, "handler_threads") == 0) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
        expect_open();
    } else {
        begin(&argc, &argv);
    }
    for (int i = 0; i < n; i++)
        exchange(i);
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strncmp(how, "handler", 7) == 0)
        fail();
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

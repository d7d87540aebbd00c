/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 1 asks the launcher one thing after the other; rank 0 waits until it is told to end. They do
 * not communicate.
 *
 *   asks FILE        rank 0 ends once FILE exists
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank;
    char port[MPI_MAX_PORT_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    printf("rank %d is %d\n", rank, (int)getpid());
    fflush(stdout);
    while (rank == 1)
        MPI_Lookup_name("nothing of that name", MPI_INFO_NULL, port);
    while (argc > 1 && access(argv[1], F_OK))
        usleep(10000);
    printf("all right\n");
    fflush(stdout);
    _exit(0);
}

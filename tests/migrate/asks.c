/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 1 asks the launcher one thing after the other; rank 0 waits until it is told to end. They do
 * not communicate.
 *
 *   asks FILE         rank 0 ends once FILE exists
 *   asks FILE spawns  each rank spawns a process, which calls MPI_Init() once FILE exists
 *   asks FILE child   what it spawns
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int spawn(char **argv, int is_child)
{
    char *arguments[] = {argv[1], "child", NULL};
    MPI_Comm other;
    while (is_child && access(argv[1], F_OK))
        usleep(10000);
    MPI_Init(NULL, NULL);
    if (is_child)
        MPI_Comm_get_parent(&other);
    else
        MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other,
                       MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    printf("%s: all right\n", is_child ? "child" : "parent");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return spawn(argv, !strcmp(argv[2], "child"));
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

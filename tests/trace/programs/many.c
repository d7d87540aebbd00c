/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many N KIB: rank 1 receives N words from rank 0. From MPI_Init on, which makes files of its own,
 * no file may grow beyond KIB (ulimit -f).
 */
#include <mpi.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    int rank, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3)
        abort();
    const int n = atoi(argv[1]);
    const rlim_t bytes = (rlim_t)atoi(argv[2]) << 10;
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, bytes});
    for (int i = 0; i < n; i++)
        if (rank == 0)
            MPI_Send(&word, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(&word, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}

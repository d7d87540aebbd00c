/* SPDX-License-Identifier: BSD-3-Clause */

/* What each rank sends is received in the step after: one message is always on its way to it. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, step;
    double mine = 1, theirs = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (step = 0; step < 100; step++) {
        MPI_Send(&mine, 1, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD);
        if (step > 0)
            MPI_Recv(&theirs, 1, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        mine += theirs;
    }
    MPI_Recv(&theirs, 1, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %g\n", sum);
    MPI_Finalize();
    return 0;
}

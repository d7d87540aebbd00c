/* SPDX-License-Identifier: BSD-3-Clause */
/* What the next iteration needs is on its way while this one computes. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, step;
    double mine = 1, theirs = 0;
    MPI_Request in, out;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Irecv(&theirs, 1, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &in);
    for (step = 0; step < 100; step++) {
        MPI_Isend(&mine, 1, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, &out);
        MPI_Wait(&in, MPI_STATUS_IGNORE);
        MPI_Wait(&out, MPI_STATUS_IGNORE);
        mine += theirs;
        MPI_Irecv(&theirs, 1, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &in);
    }
    MPI_Cancel(&in);
    MPI_Wait(&in, MPI_STATUS_IGNORE);
    printf("%g\n", mine);
    MPI_Finalize();
    return 0;
}

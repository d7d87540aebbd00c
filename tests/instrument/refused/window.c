/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided communication: the window lives as long as the program. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, step;
    double shared = 0, one = 1, sum = 0;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_create(&shared, sizeof shared, sizeof shared, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (step = 0; step < 100; step++) {
        MPI_Win_fence(0, window);
        MPI_Accumulate(&one, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, MPI_SUM, window);
        MPI_Win_fence(0, window);
        MPI_Allreduce(&shared, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    printf("%g\n", sum);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop is one of several threads, if it is compiled for OpenMP. */
#include <mpi.h>

int main(int argc, char **argv)
{
    double cells[100] = {0}, sum = 0, all;
    int step, i;
    MPI_Init(&argc, &argv);
    for (step = 0; step < 100; step++) {
#pragma omp parallel for
        for (i = 0; i < 100; i++)
            cells[i] += step;
        MPI_Allreduce(&cells[3], &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    MPI_Finalize();
    return sum < 0;
}

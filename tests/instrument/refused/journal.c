/* SPDX-License-Identifier: BSD-3-Clause */
/* A file stays open all the time, and the random numbers are libc's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *journal;

int main(int argc, char **argv)
{
    int step;
    double mine, sum;
    MPI_Init(&argc, &argv);
    journal = fopen("journal.txt", "w");
    for (step = 0; step < 100; step++) {
        mine = rand() / (double)RAND_MAX;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        fprintf(journal, "%g\n", sum);
    }
    fclose(journal);
    MPI_Finalize();
    return 0;
}

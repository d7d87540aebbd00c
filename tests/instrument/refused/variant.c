/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that are a number or the place of one, and numbers that are pointers. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct value {
    int is_shared;
    union {
        double own;
        double *shared;
    } u;
};

static struct value values[10];
static uintptr_t hidden;

int main(int argc, char **argv)
{
    int step;
    double mine = 0, sum;
    MPI_Init(&argc, &argv);
    values[3].u.shared = malloc(sizeof(double));
    values[3].is_shared = 1;
    *values[3].u.shared = 4;
    hidden = (uintptr_t)values[3].u.shared ^ 1;
    for (step = 0; step < 100; step++) {
        mine += values[3].is_shared ? *values[3].u.shared : values[3].u.own;
        *(double *)(hidden ^ 1) += 1;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("%g\n", sum);
    MPI_Finalize();
    return 0;
}

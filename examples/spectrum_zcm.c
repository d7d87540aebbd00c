/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Smooths a picture again and again in the space of its Walsh-Hadamard transform:
 *
 *     ZC_MIGRATE=1 mpiexec -n 4 ./spectrum_zcm [N [STEPS]]
 *
 * The library that transforms (transform.h) uses MPI_COMM_WORLD inside. At the end rank 0 prints a
 * checksum, which is the same for every run.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zcm/zcm.h>

#include "transform.h"

int main(int argc, char **argv)
{
    int rank, n = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 200, step = 0;

    MPI_Init(&argc, &argv);
    if (zcm_init(&argc, &argv) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int rows = transform_begin(n);
    if (rows == 0) {
        if (rank == 0)
            fprintf(stderr, "spectrum: %d is no power of two that the ranks divide\n", n);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double *picture = malloc((size_t)rows * (size_t)n * sizeof *picture);
    if (!picture)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < rows * n; i++)
        picture[i] = (double)((rank * rows * n + i) * 7919L % 1009);
    if (zcm_register("picture", picture, (size_t)rows * (size_t)n, MPI_DOUBLE) != 0 ||
        zcm_register("step", &step, 1, MPI_INT) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);

    for (; step < steps; step++) {
        if (zcm_safe_point() != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
        transform(picture);
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < n; c++) {
                const int roughness = __builtin_popcount((unsigned)(rank * rows + r)) +
                                      __builtin_popcount((unsigned)c);
                picture[r * n + c] *= 1 - 1e-3 * roughness;
            }
        transform(picture);
        for (int i = 0; i < rows * n; i++)
            picture[i] /= (double)n * n;
    }

    /* Of bits, so that it is the same in whatever order MPI adds. */
    unsigned long mine = 0, all, bits;
    for (int i = 0; i < rows * n; i++) {
        memcpy(&bits, &picture[i], sizeof bits);
        mine += bits * (2 * (unsigned long)(rank * rows * n + i) + 1);
    }
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d x %d after %d steps, checksum %016lx\n", n, n, step, all);
    transform_end();
    zcm_finalize();
    free(picture);
    MPI_Finalize();
    return 0;
}

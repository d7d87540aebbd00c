/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that opens a library as soon as that is there, be it before MPI_Init or later.
 *
 *   plugin LIBRARY FILE     all ranks end once FILE exists
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
#include <zcm/zcm.h>

int main(int argc, char **argv)
{
    int rank, ends = 0;
    long steps = 0;
    if (argc < 3)
        return 2;
    const char *path = argv[1], *end = argv[2];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MPI_Init(&argc, &argv);
    if (zcm_init(&argc, &argv) != 0 || zcm_register("steps", &steps, 1, MPI_LONG) != 0)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (; !ends; steps++) {
        if (zcm_safe_point() != 0)
            return 1;
        if (!library && (library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
            printf("rank %d opened it later\n", rank);
            fflush(stdout);
        }
        usleep(2000);
        ends = rank == 0 && access(end, F_OK) == 0;
        MPI_Bcast(&ends, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("all right\n");
    zcm_finalize();
    MPI_Finalize();
    return 0;
}

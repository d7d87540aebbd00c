/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank has printed before it calls MPI_Abort is printed, all of it: it says why.
 */
#include "check.h"

enum { LINES = 1000 };

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 1) {
        for (int i = 1; i <= LINES; i++)
            fprintf(stderr, "line %d of %d\n", i, LINES);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    /* Not in MPI_Finalize: there, others may end first. */
    for (;;)
        MPI_Barrier(MPI_COMM_SELF);
}

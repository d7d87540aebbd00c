/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs for zcm-run --verify: each has a field that it advances from its own values, from a seed
 * and, in step 100, from the time.
 *
 *   forgetful right STEPS     all is registered
 *   forgetful seed STEPS      the seed is not
 *   forgetful time STEPS      it depends on the time, with or without moves
 *   forgetful packed STEPS    the field is a copy made when it is saved
 *   forgetful crash STEPS     without what is not registered it cannot go on
 *   forgetful step STEPS      the counter of steps is not, so a rank that resumes begins anew
 *   forgetful tag STEPS       nor is it here, where messages have it as their tag
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

enum { CELLS = 640 };

static double field[CELLS], copy[CELLS];
static unsigned seed = 1;

static int pack(void *arg)
{
    (void)arg;
    memcpy(copy, field, sizeof copy);
    return 0;
}

int main(int argc, char **argv)
{
    const struct timespec little = {.tv_nsec = 2000000};
    long step = 0;
    int rank;
    if (argc < 3)
        return 2;
    const char *mode = argv[1];
    const long steps = strtol(argv[2], NULL, 10);
    MPI_Init(&argc, &argv);
    if (zcm_init(&argc, &argv) != 0)
        return 1;
    MPI_Comm_rank(zcm_world(), &rank);
    const int is_packed = !strcmp(mode, "packed");
    if (zcm_register("field", is_packed ? copy : field, CELLS, MPI_DOUBLE) != 0 ||
        (strcmp(mode, "step") && strcmp(mode, "tag") &&
         zcm_register("step", &step, 1, MPI_LONG) != 0) ||
        (strcmp(mode, "seed") && zcm_register("seed", &seed, 1, MPI_UNSIGNED) != 0))
        return 1;
    if (is_packed) {
        zcm_on_save(pack, NULL);
        memcpy(field, copy, sizeof field);
    }
    char *needed = zcm_resumed() && !strcmp(mode, "crash") ? NULL : mode[0] ? argv[1] : NULL;
    for (; step < steps; step++) {
        if (zcm_safe_point() != 0)
            return 1;
        if (!needed)
            exit(7);
        seed = seed * 1103515245u + 12345u;
        /* One of the cells from the 320th on. */
        field[CELLS / 2 + seed % (CELLS / 2)] += seed % 7;
        if (step == 100 && !strcmp(mode, "time"))
            field[0] = (double)time(NULL) + getpid();
        double least = field[rank];
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, zcm_world());
        field[1] += least;
        if (!strcmp(mode, "tag"))
            MPI_Sendrecv_replace(&field[2], 1, MPI_DOUBLE, !rank, (int)step, !rank, (int)step,
                                 zcm_world(), MPI_STATUS_IGNORE);
        nanosleep(&little, NULL);
    }
    if (rank == 0)
        printf("all right\n");
    zcm_finalize();
    MPI_Finalize();
    return 0;
}

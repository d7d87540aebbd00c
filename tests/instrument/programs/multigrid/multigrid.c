/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Poisson's equation with a source that changes with time, by V-cycles of a multigrid method. Rows
 * are dealt to the processes at every level.
 *
 *     mpiexec -n 4 multigrid [ROWS_OF_A_PROCESS [COLUMNS [STEPS]]]
 */
#include "grid.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int my_rank, n_ranks, below, above;

static hierarchy_t grids;
static double norms[3];

typedef struct {
    int rows, columns, steps, cycles;
    double time, dt;
} run_t;

static void parse(run_t *run, int argc, char **argv)
{
    int i;
    int *numbers[3];
    numbers[0] = &run->rows;
    numbers[1] = &run->columns;
    numbers[2] = &run->steps;
    run->rows = 16;
    run->columns = 31;
    run->steps = 60;
    run->cycles = 2;
    run->time = 0;
    run->dt = 0.05;
    for (i = 1; i < argc && i <= 3; i++)
        *numbers[i - 1] = atoi(argv[i]);
}

static void set_source(level_t *l, double time)
{
    int i, j;
    for (i = 1; i <= l->rows; i++)
        for (j = 1; j <= l->columns; j++) {
            const double x = j * l->h, y = (my_rank * l->rows + i) * l->h;
            l->f[i][j] = sin(6.28 * x + time) * cos(3.1 * y) + 0.5 * cos(time * y);
        }
}

static unsigned long long digest(const level_t *l)
{
    unsigned long long sum = 0, bits;
    int i, j;
    for (i = 1; i <= l->rows; i++)
        for (j = 1; j <= l->columns; j++) {
            memcpy(&bits, &l->u[i][j], sizeof bits);
            sum = (sum ^ bits) * 0x9e3779b97f4a7c15ULL;
        }
    return sum;
}

int main(int argc, char **argv)
{
    run_t run;
    double mine, norm = 0;
    unsigned long long sum, total;
    int step, cycle;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    below = my_rank == 0 ? MPI_PROC_NULL : my_rank - 1;
    above = my_rank == n_ranks - 1 ? MPI_PROC_NULL : my_rank + 1;
    run.rows = 0;
    parse(&run, argc, argv);
    make_hierarchy(&grids, run.rows, run.columns);

    for (step = 0; step < run.steps; step++) {
        set_source(&grids.level[0], run.time);
        for (cycle = 0; cycle < run.cycles; cycle++)
            v_cycle(&grids, 0, 2, 1);
        mine = residual(&grids.level[0]);
        MPI_Allreduce(&mine, &norm, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        norms[step % 3] = sqrt(norm);
        run.time += run.dt;
    }

    sum = digest(&grids.level[0]);
    MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (my_rank == 0)
        printf("multigrid: %d levels, %ld relaxations, norms %.9g %.9g %.9g, checksum %016llx\n",
               grids.nlevels, grids.relaxations, norms[0], norms[1], norms[2], total);
    free_hierarchy(&grids);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wave equation on a membrane that is fixed at its border, by finite differences. The plate is
 * cut into bands of rows, one per process. Three time levels take turns in their places.
 *
 *     mpiexec -n 4 wave [ROWS [COLUMNS [STEPS]]]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field, i, j) ((field)[(size_t)(i) * (size_t)(columns + 2) + (size_t)(j)])

static int rank, size, rows, columns, steps;
static int up, down;
static double courant = 0.4;

static void usage(const char *program)
{
    if (rank == 0)
        fprintf(stderr, "usage: %s [ROWS [COLUMNS [STEPS]]]\n", program);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void read_arguments(int argc, char **argv)
{
    int all[3] = {64, 48, 200};
    if (rank == 0)
        for (int i = 1; i < argc && i < 4; i++)
            all[i - 1] = atoi(argv[i]);
    MPI_Bcast(all, 3, MPI_INT, 0, MPI_COMM_WORLD);
    if (all[0] < size || all[1] < 3 || all[2] < 0)
        usage(argv[0]);
    rows = all[0] / size;
    columns = all[1];
    steps = all[2];
}

static double *new_field(void)
{
    double *field = malloc((size_t)(rows + 2) * (size_t)(columns + 2) * sizeof(double));
    if (!field) {
        fprintf(stderr, "wave: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(field, 0, (size_t)(rows + 2) * (size_t)(columns + 2) * sizeof(double));
    return field;
}

static void pluck(double *now, double *before)
{
    const double pi = acos(-1.0);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            const double x = (double)(rank * rows + i) / (rows * size + 1);
            const double y = (double)j / (columns + 1);
            AT(now, i, j) = sin(pi * x) * sin(2 * pi * y) + 0.3 * sin(3 * pi * x) * sin(pi * y);
            AT(before, i, j) = AT(now, i, j);
        }
}

static void exchange(double *field)
{
    MPI_Sendrecv(&AT(field, 1, 1), columns, MPI_DOUBLE, up, 1, &AT(field, rows + 1, 1), columns,
                 MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&AT(field, rows, 1), columns, MPI_DOUBLE, down, 2, &AT(field, 0, 1), columns,
                 MPI_DOUBLE, up, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double advance(const double *before, const double *now, double *next)
{
    const double c = courant * courant;
    static double smoothed; /* damps a little, so that nothing grows for ever */
    double energy = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            const double bend = AT(now, i - 1, j) + AT(now, i + 1, j) + AT(now, i, j - 1) +
                                AT(now, i, j + 1) - 4 * AT(now, i, j);
            AT(next, i, j) = 2 * AT(now, i, j) - AT(before, i, j) + c * bend;
            const double speed = AT(next, i, j) - AT(now, i, j);
            energy += speed * speed;
        }
    smoothed = 0.9 * smoothed + 0.1 * energy;
    return energy - 1e-6 * smoothed;
}

static unsigned long long digest(const double *field)
{
    unsigned long long sum = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            unsigned long long bits;
            memcpy(&bits, &AT(field, i, j), sizeof bits);
            sum = (sum ^ bits) * 0x9e3779b97f4a7c15ULL;
        }
    return sum;
}

int main(int argc, char **argv)
{
    double *before, *now, *next, *spare;
    double energy, total = 0, highest = 0;
    int step;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    read_arguments(argc, argv);
    up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    before = new_field();
    now = new_field();
    next = new_field();
    pluck(now, before);

    for (step = 0; step < steps; step++) {
        exchange(now);
        energy = advance(before, now, next);
        MPI_Allreduce(&energy, &total, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (total > highest)
            highest = total;
        spare = before;
        before = now;
        now = next;
        next = spare;
    }

    unsigned long long mine = digest(now), all;
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wave: %d steps, highest %.17g, checksum %016llx\n", step, highest, all);
    free(before);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}

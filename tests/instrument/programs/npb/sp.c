/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Five equations of diffusion and reaction in a cube, of fourth order, by steps that are implicit
 * along one axis after the other: along each line five systems whose matrices have five diagonals.
 * In the manner of NPB's SP: its partition, its messages.
 *
 *     mpiexec -n 4 sp [N [STEPS]]
 */
#include "cells.h"
#include "npb.h"
#include <math.h>

#define UPPER (2 * COMPONENTS)            /* what is above the diagonal in a point's rows */
#define PASSED (2 * (UPPER + COMPONENTS)) /* doubles of a line forward: of two points */
#define PASSED_BACK (2 * COMPONENTS)
#define REACTION 0.5

static struct cube cube;
static double over_h2, dt;

void evaluate(const struct cell *one, int i, int j, int k, double *result)
{
    int axis, l;
    const double *u = one->u + place_in_u(&cube, i, j, k) * COMPONENTS;
    for (l = 0; l < COMPONENTS; l++)
        result[l] = REACTION * u[l] * u[(l + 1) % COMPONENTS];
    for (axis = 0; axis < 3; axis++) {
        const size_t step = step_in_u(&cube, axis) * COMPONENTS;
        for (l = 0; l < COMPONENTS; l++) {
            const double *at = u + l;
            result[l] -= over_h2 / 12 *
                         (16 * (*(at - step) + *(at + step)) - *(at - 2 * step) - *(at + 2 * step) -
                          30 * *at);
        }
    }
}

/* The row of component L at a point: what is left of it when the two before it are eliminated.
 * BEFORE: (upper, right-hand sides) of the one before that, and of the one before. */
static void eliminate_row(const double *u, int l, const double *before, double *upper, double *rhs)
{
    const double near = -16 * dt * over_h2 / 12, far = dt * over_h2 / 12;
    const double *second = before, *first = before + UPPER + COMPONENTS;
    double left = near, diagonal, right = near, over;
    diagonal = 1 + 30 * dt * over_h2 / 12 + dt * REACTION / 3 * u[(l + 1) % COMPONENTS];
    left -= far * second[2 * l];
    diagonal -= far * second[2 * l + 1];
    *rhs -= far * second[UPPER + l];
    diagonal -= left * first[2 * l];
    right -= left * first[2 * l + 1];
    *rhs -= left * first[UPPER + l];
    over = 1 / diagonal;
    upper[0] = right * over;
    upper[1] = far * over;
    *rhs *= over;
}

/* From the first to the last point of each line of a cell; IN and OUT: of the two points before and
 * of the last two. */
static void eliminate(const struct cell *one, int axis, double *upper, double *rhs,
                      const double *in, double *out)
{
    int line, i, l, start[3];
    for (line = 0; line < cube.m * cube.m; line++) {
        double passed[PASSED];
        memcpy(passed, in + line * PASSED, sizeof passed);
        start_of_line(&cube, axis, line, start);
        for (i = 0; i < cube.m; i++) {
            const double *u;
            double *of_point, *right;
            start[axis] = i;
            u = one->u + place_in_u(&cube, start[0], start[1], start[2]) * COMPONENTS;
            of_point = upper + place(&cube, start[0], start[1], start[2]) * UPPER;
            right = rhs + place(&cube, start[0], start[1], start[2]) * COMPONENTS;
            for (l = 0; l < COMPONENTS; l++)
                eliminate_row(u, l, passed, of_point + 2 * l, right + l);
            memmove(passed, passed + PASSED / 2, PASSED / 2 * sizeof *passed);
            memcpy(passed + PASSED / 2, of_point, UPPER * sizeof *passed);
            memcpy(passed + PASSED / 2 + UPPER, right, COMPONENTS * sizeof *passed);
        }
        memcpy(out + line * PASSED, passed, sizeof passed);
    }
}

/* Back from the last point: RHS becomes the solution. */
static void substitute(int axis, const double *upper, double *rhs, const double *in, double *out)
{
    int line, i, l, start[3];
    for (line = 0; line < cube.m * cube.m; line++) {
        double next[PASSED_BACK]; /* of the next point and of the one behind it */
        memcpy(next, in + line * PASSED_BACK, sizeof next);
        start_of_line(&cube, axis, line, start);
        for (i = cube.m - 1; i >= 0; i--) {
            size_t at;
            start[axis] = i;
            at = place(&cube, start[0], start[1], start[2]);
            for (l = 0; l < COMPONENTS; l++) {
                const double *of_point = upper + at * UPPER + 2 * l;
                const double value = rhs[at * COMPONENTS + (size_t)l] - of_point[0] * next[l] -
                                     of_point[1] * next[COMPONENTS + l];
                rhs[at * COMPONENTS + (size_t)l] = value;
                next[COMPONENTS + l] = next[l];
                next[l] = value;
            }
        }
        memcpy(out + line * PASSED_BACK, next, sizeof next);
    }
}

void sweep(int axis, double **rhs)
{
    double *upper[MOST_CELLS], *in, *out;
    const int lines = cube.m * cube.m;
    int layer, q;
    for (q = 0; q < cube.q; q++)
        upper[q] = allocate(points_of_cell(&cube) * UPPER);
    in = allocate((size_t)(lines * PASSED));
    out = allocate((size_t)(lines * PASSED));
    for (layer = 0; layer < cube.q; layer++) {
        q = cell_in(&cube, axis, layer);
        eliminate(&cube.cell[q], axis, upper[q], rhs[q], in, out);
        if (layer + 1 < cube.q)
            pass_on(&cube, axis, 1, out, in, lines * PASSED);
    }
    memset(in, 0, (size_t)(lines * PASSED) * sizeof *in);
    for (layer = cube.q - 1; layer >= 0; layer--) {
        q = cell_in(&cube, axis, layer);
        substitute(axis, upper[q], rhs[q], in, out);
        if (layer > 0)
            pass_on(&cube, axis, -1, out, in, lines * PASSED_BACK);
    }
    for (q = 0; q < cube.q; q++)
        free(upper[q]);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int step, numbers[2] = {12, 60};
    double before, after;

    MPI_Init(&argc, &argv);
    read_numbers(argc, argv, numbers, 2);
    make_cube(&cube, numbers[0], 2);
    over_h2 = (double)(cube.n + 1) * (cube.n + 1);
    dt = 1 / over_h2;
    begin_with_wanted(&cube);
    set_goal(&cube);
    begin_with_guess(&cube);
    before = error_of(&cube);

    for (step = 0; step < numbers[1]; step++)
        make_step(&cube, dt);

    after = error_of(&cube);
    conclude("sp", step, after < before, after, digest_of_cube(&cube));
    free_cube(&cube);
    MPI_Finalize();
    return 0;
}

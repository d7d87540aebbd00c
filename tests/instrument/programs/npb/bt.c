/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Five coupled equations of convection and diffusion in a cube, by steps that are implicit along
 * one axis after the other: along each line a system whose matrix has three diagonals of blocks of
 * 5 x 5. In the manner of NPB's BT: its partition, its messages.
 *
 *     mpiexec -n 4 bt [N [STEPS]]
 */
#include "cells.h"
#include "npb.h"
#include <math.h>

#define BLOCK (COMPONENTS * COMPONENTS)
#define PASSED (BLOCK + COMPONENTS) /* doubles of a line, from layer to layer */
#define CONVECTION 0.5

static struct cube cube;
static double over_h2, over_2h, dt;

/* The flux is CONVECTION * u[l] * u[l + 1]. */
static double flux(const double *u, int l)
{
    return CONVECTION * u[l] * u[(l + 1) % COMPONENTS];
}

void evaluate(const struct cell *one, int i, int j, int k, double *result)
{
    int axis, l;
    const double *u = one->u + place_in_u(&cube, i, j, k) * COMPONENTS;
    for (l = 0; l < COMPONENTS; l++)
        result[l] = 0;
    for (axis = 0; axis < 3; axis++) {
        const double *before = u - step_in_u(&cube, axis) * COMPONENTS;
        const double *after = u + step_in_u(&cube, axis) * COMPONENTS;
        for (l = 0; l < COMPONENTS; l++)
            result[l] += over_2h * (flux(after, l) - flux(before, l)) -
                         over_h2 * (before[l] - 2 * u[l] + after[l]);
    }
}

/* The block of the neighbour at U, which is before (SIGN -1) or after (1). */
static void block_of(const double *u, double sign, double *block)
{
    int l;
    memset(block, 0, BLOCK * sizeof *block);
    for (l = 0; l < COMPONENTS; l++) {
        const int next = (l + 1) % COMPONENTS;
        block[l * COMPONENTS + l] = dt * (sign * over_2h * CONVECTION * u[next] - over_h2);
        block[l * COMPONENTS + next] = dt * sign * over_2h * CONVECTION * u[l];
    }
}

/* B x = (C, R), by elimination; the results are in C and R. */
static void solve_block(double *b, double *c, double *r)
{
    int p, row, l;
    for (p = 0; p < COMPONENTS; p++) {
        const double pivot = 1 / b[p * COMPONENTS + p];
        for (l = p; l < COMPONENTS; l++)
            b[p * COMPONENTS + l] *= pivot;
        for (l = 0; l < COMPONENTS; l++)
            c[p * COMPONENTS + l] *= pivot;
        r[p] *= pivot;
        for (row = 0; row < COMPONENTS; row++) {
            const double factor = b[row * COMPONENTS + p];
            if (row == p)
                continue;
            for (l = p; l < COMPONENTS; l++)
                b[row * COMPONENTS + l] -= factor * b[p * COMPONENTS + l];
            for (l = 0; l < COMPONENTS; l++)
                c[row * COMPONENTS + l] -= factor * c[p * COMPONENTS + l];
            r[row] -= factor * r[p];
        }
    }
}

/* One point of a line: C and R with the neighbour before, (C, R) of PASSED, eliminated. */
static void eliminate_point(const double *before, const double *after, const double *passed,
                            double *c, double *r)
{
    double a[BLOCK], b[BLOCK];
    int row, l, k;
    block_of(before, -1, a);
    block_of(after, 1, c);
    memset(b, 0, sizeof b);
    for (l = 0; l < COMPONENTS; l++)
        b[l * COMPONENTS + l] = 1 + 2 * dt * over_h2;
    for (row = 0; row < COMPONENTS; row++)
        for (k = 0; k < COMPONENTS; k++) {
            for (l = 0; l < COMPONENTS; l++)
                b[row * COMPONENTS + l] -= a[row * COMPONENTS + k] * passed[k * COMPONENTS + l];
            r[row] -= a[row * COMPONENTS + k] * passed[BLOCK + k];
        }
    solve_block(b, c, r);
}

/* From the first to the last point of each line of a cell; IN and OUT: of the points before and at
 * the last one. */
static void eliminate(const struct cell *one, int axis, double *blocks, double *rhs,
                      const double *in, double *out)
{
    int line, i, start[3];
    for (line = 0; line < cube.m * cube.m; line++) {
        double passed[PASSED];
        memcpy(passed, in + line * PASSED, sizeof passed);
        start_of_line(&cube, axis, line, start);
        for (i = 0; i < cube.m; i++) {
            const double *u;
            size_t at;
            start[axis] = i;
            u = one->u + place_in_u(&cube, start[0], start[1], start[2]) * COMPONENTS;
            at = place(&cube, start[0], start[1], start[2]);
            eliminate_point(u - step_in_u(&cube, axis) * COMPONENTS,
                            u + step_in_u(&cube, axis) * COMPONENTS, passed, blocks + at * BLOCK,
                            rhs + at * COMPONENTS);
            memcpy(passed, blocks + at * BLOCK, BLOCK * sizeof *passed);
            memcpy(passed + BLOCK, rhs + at * COMPONENTS, COMPONENTS * sizeof *passed);
        }
        memcpy(out + line * PASSED, passed, sizeof passed);
    }
}

/* Back from the last point: RHS becomes the solution. */
static void substitute(int axis, const double *blocks, double *rhs, const double *in, double *out)
{
    int line, i, row, k, start[3];
    for (line = 0; line < cube.m * cube.m; line++) {
        double next[COMPONENTS];
        memcpy(next, in + line * COMPONENTS, sizeof next);
        start_of_line(&cube, axis, line, start);
        for (i = cube.m - 1; i >= 0; i--) {
            size_t at;
            start[axis] = i;
            at = place(&cube, start[0], start[1], start[2]);
            for (row = 0; row < COMPONENTS; row++)
                for (k = 0; k < COMPONENTS; k++)
                    rhs[at * COMPONENTS + (size_t)row] -=
                        blocks[at * BLOCK + (size_t)(row * COMPONENTS + k)] * next[k];
            memcpy(next, rhs + at * COMPONENTS, sizeof next);
        }
        memcpy(out + line * COMPONENTS, next, sizeof next);
    }
}

void sweep(int axis, double **rhs)
{
    double *blocks[MOST_CELLS], *in, *out;
    const int lines = cube.m * cube.m;
    int layer, q;
    for (q = 0; q < cube.q; q++)
        blocks[q] = allocate(points_of_cell(&cube) * BLOCK);
    in = allocate((size_t)(lines * PASSED));
    out = allocate((size_t)(lines * PASSED));
    for (layer = 0; layer < cube.q; layer++) {
        q = cell_in(&cube, axis, layer);
        eliminate(&cube.cell[q], axis, blocks[q], rhs[q], in, out);
        if (layer + 1 < cube.q)
            pass_on(&cube, axis, 1, out, in, lines * PASSED);
    }
    memset(in, 0, (size_t)(lines * PASSED) * sizeof *in);
    for (layer = cube.q - 1; layer >= 0; layer--) {
        q = cell_in(&cube, axis, layer);
        substitute(axis, blocks[q], rhs[q], in, out);
        if (layer > 0)
            pass_on(&cube, axis, -1, out, in, lines * COMPONENTS);
    }
    for (q = 0; q < cube.q; q++)
        free(blocks[q]);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int step, numbers[2] = {12, 60};
    double before, after;

    MPI_Init(&argc, &argv);
    read_numbers(argc, argv, numbers, 2);
    make_cube(&cube, numbers[0], 1);
    over_h2 = (double)(cube.n + 1) * (cube.n + 1);
    over_2h = 0.5 * (cube.n + 1);
    dt = 1 / over_h2;
    begin_with_wanted(&cube);
    set_goal(&cube);
    begin_with_guess(&cube);
    before = error_of(&cube);

    for (step = 0; step < numbers[1]; step++)
        make_step(&cube, dt);

    after = error_of(&cube);
    conclude("bt", step, after < before, after, digest_of_cube(&cube));
    free_cube(&cube);
    MPI_Finalize();
    return 0;
}

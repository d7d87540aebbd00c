/* SPDX-License-Identifier: BSD-3-Clause */
#include "cells.h"
#include "npb.h"
#include <math.h>

#define TAG_OF_BORDERS 100
#define TAG_OF_SWEEPS 200

static double *packed[6], *unpacked[6];

double *allocate(size_t doubles)
{
    double *memory = calloc(doubles, sizeof *memory);
    demand(memory != NULL, "out of memory");
    return memory;
}

size_t place_in_u(const struct cube *c, int i, int j, int k)
{
    const size_t edge = (size_t)(c->m + 2 * c->border);
    return ((size_t)(k + c->border) * edge + (size_t)(j + c->border)) * edge +
           (size_t)(i + c->border);
}

size_t step_in_u(const struct cube *c, int axis)
{
    const size_t edge = (size_t)(c->m + 2 * c->border);
    return axis == 0 ? 1 : axis == 1 ? edge : edge * edge;
}

size_t place(const struct cube *c, int i, int j, int k)
{
    return ((size_t)k * (size_t)c->m + (size_t)j) * (size_t)c->m + (size_t)i;
}

size_t step_of(const struct cube *c, int axis)
{
    const size_t edge = (size_t)c->m;
    return axis == 0 ? 1 : axis == 1 ? edge : edge * edge;
}

size_t points_of_cell(const struct cube *c)
{
    return (size_t)c->m * (size_t)c->m * (size_t)c->m;
}

void start_of_line(const struct cube *c, int axis, int line, int *start)
{
    start[axis] = 0;
    start[axis == 0 ? 1 : 0] = line % c->m;
    start[axis == 2 ? 1 : 2] = line / c->m;
}

static int process_at(int row, int column, int q)
{
    return (row + q) % q * q + (column + q) % q;
}

void make_cube(struct cube *c, int n, int border)
{
    int rank, size, k, row, column;
    size_t edge, face;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    c->n = n;
    c->border = border;
    for (c->q = 1; c->q * c->q < size; c->q++)
        ;
    demand(c->q * c->q == size && c->q <= MOST_CELLS, "the number of processes is a square");
    demand(n % c->q == 0 && n / c->q >= border, "N must be a multiple of its root");
    c->m = n / c->q;
    row = rank / c->q;
    column = rank % c->q;
    edge = (size_t)(c->m + 2 * border);
    for (k = 0; k < c->q; k++) {
        struct cell *one = &c->cell[k];
        one->at[0] = (row + k) % c->q;
        one->at[1] = (column + k) % c->q;
        one->at[2] = k;
        one->u = allocate(edge * edge * edge * COMPONENTS);
        one->goal = allocate(points_of_cell(c) * COMPONENTS);
    }
    c->before[0] = process_at(row - 1, column, c->q);
    c->after[0] = process_at(row + 1, column, c->q);
    c->before[1] = process_at(row, column - 1, c->q);
    c->after[1] = process_at(row, column + 1, c->q);
    c->before[2] = process_at(row + 1, column + 1, c->q);
    c->after[2] = process_at(row - 1, column - 1, c->q);
    face = (size_t)(c->q * border * c->m * c->m) * COMPONENTS;
    for (k = 0; k < 6; k++) {
        packed[k] = allocate(face);
        unpacked[k] = allocate(face);
    }
}

void free_cube(struct cube *c)
{
    int k;
    for (k = 0; k < c->q; k++) {
        free(c->cell[k].u);
        free(c->cell[k].goal);
    }
    for (k = 0; k < 6; k++) {
        free(packed[k]);
        free(unpacked[k]);
    }
}

/* Of the cells that have a neighbour there: their layers along AXIS from FIRST on, as many as the
 * border has, to or from BUFFER. How many doubles. */
static int copy_layers(struct cube *c, int axis, int side, int first, double *buffer, int into)
{
    int k, layer, line, l, start[3], used = 0;
    for (k = 0; k < c->q; k++) {
        if (c->cell[k].at[axis] == (side > 0 ? c->q - 1 : 0))
            continue;
        for (layer = first; layer < first + c->border; layer++)
            for (line = 0; line < c->m * c->m; line++) {
                double *u;
                start_of_line(c, axis, line, start);
                start[axis] = layer;
                u = c->cell[k].u + place_in_u(c, start[0], start[1], start[2]) * COMPONENTS;
                for (l = 0; l < COMPONENTS; l++, used++)
                    if (into)
                        buffer[used] = u[l];
                    else
                        u[l] = buffer[used];
            }
    }
    return used;
}

void exchange_borders(struct cube *c)
{
    MPI_Request all[12];
    int axis, most = c->q * c->border * c->m * c->m * COMPONENTS;
    for (axis = 0; axis < 3; axis++) {
        MPI_Irecv(unpacked[2 * axis], most, MPI_DOUBLE, c->before[axis], TAG_OF_BORDERS + axis,
                  MPI_COMM_WORLD, &all[2 * axis]);
        MPI_Irecv(unpacked[2 * axis + 1], most, MPI_DOUBLE, c->after[axis],
                  TAG_OF_BORDERS + 3 + axis, MPI_COMM_WORLD, &all[2 * axis + 1]);
    }
    for (axis = 0; axis < 3; axis++) {
        int count = copy_layers(c, axis, 1, c->m - c->border, packed[2 * axis], 1);
        MPI_Isend(packed[2 * axis], count, MPI_DOUBLE, c->after[axis], TAG_OF_BORDERS + axis,
                  MPI_COMM_WORLD, &all[6 + 2 * axis]);
        count = copy_layers(c, axis, -1, 0, packed[2 * axis + 1], 1);
        MPI_Isend(packed[2 * axis + 1], count, MPI_DOUBLE, c->before[axis],
                  TAG_OF_BORDERS + 3 + axis, MPI_COMM_WORLD, &all[7 + 2 * axis]);
    }
    MPI_Waitall(12, all, MPI_STATUSES_IGNORE);
    for (axis = 0; axis < 3; axis++) {
        copy_layers(c, axis, -1, -c->border, unpacked[2 * axis], 0);
        copy_layers(c, axis, 1, c->m, unpacked[2 * axis + 1], 0);
    }
}

int cell_in(const struct cube *c, int axis, int layer)
{
    int k;
    for (k = 0; k < c->q; k++)
        if (c->cell[k].at[axis] == layer)
            return k;
    return 0;
}

void pass_on(const struct cube *c, int axis, int direction, double *out, double *in, int doubles)
{
    MPI_Request both[2];
    const int to = direction > 0 ? c->after[axis] : c->before[axis];
    const int from = direction > 0 ? c->before[axis] : c->after[axis];
    MPI_Irecv(in, doubles, MPI_DOUBLE, from, TAG_OF_SWEEPS, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, doubles, MPI_DOUBLE, to, TAG_OF_SWEEPS, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

double wanted(const struct cube *c, int component, const struct cell *in, int i, int j, int k)
{
    const double h = 1.0 / (c->n + 1);
    const double x = (in->at[0] * c->m + i + 1) * h, y = (in->at[1] * c->m + j + 1) * h,
                 z = (in->at[2] * c->m + k + 1) * h;
    return 1 + 0.1 * component + x * (0.3 + 0.2 * y * y) +
           (1 + component) * 0.05 * z * z * (1 + y) + 0.2 * x * y * z * z;
}

void begin_with_wanted(struct cube *c)
{
    int q, i, j, k, l;
    for (q = 0; q < c->q; q++)
        for (k = -c->border; k < c->m + c->border; k++)
            for (j = -c->border; j < c->m + c->border; j++)
                for (i = -c->border; i < c->m + c->border; i++)
                    for (l = 0; l < COMPONENTS; l++)
                        c->cell[q].u[place_in_u(c, i, j, k) * COMPONENTS + (size_t)l] =
                            wanted(c, l, &c->cell[q], i, j, k);
}

void begin_with_guess(struct cube *c)
{
    int q, i, j, k, l;
    for (q = 0; q < c->q; q++)
        for (k = 0; k < c->m; k++)
            for (j = 0; j < c->m; j++)
                for (i = 0; i < c->m; i++)
                    for (l = 0; l < COMPONENTS; l++)
                        c->cell[q].u[place_in_u(c, i, j, k) * COMPONENTS + (size_t)l] = 1 + 0.1 * l;
}

double error_of(const struct cube *c)
{
    int q, i, j, k, l;
    double mine = 0, most;
    for (q = 0; q < c->q; q++)
        for (k = 0; k < c->m; k++)
            for (j = 0; j < c->m; j++)
                for (i = 0; i < c->m; i++)
                    for (l = 0; l < COMPONENTS; l++) {
                        const double off =
                            fabs(c->cell[q].u[place_in_u(c, i, j, k) * COMPONENTS + (size_t)l] -
                                 wanted(c, l, &c->cell[q], i, j, k));
                        /* Not a number is the greatest. */
                        mine = off <= mine ? mine : off;
                    }
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

unsigned long long digest_of_cube(const struct cube *c)
{
    int q, i, j, k, l;
    unsigned long long sum = 0;
    for (q = 0; q < c->q; q++)
        for (k = 0; k < c->m; k++)
            for (j = 0; j < c->m; j++)
                for (i = 0; i < c->m; i++)
                    for (l = 0; l < COMPONENTS; l++) {
                        const unsigned long long n = (unsigned long long)c->n,
                                                 x = (unsigned long long)(c->cell[q].at[0] * c->m +
                                                                          i),
                                                 y = (unsigned long long)(c->cell[q].at[1] * c->m +
                                                                          j),
                                                 z = (unsigned long long)(c->cell[q].at[2] * c->m +
                                                                          k);
                        sum ^= digest_of(
                            ((z * n + y) * n + x) * COMPONENTS + (unsigned long long)l,
                            bits_of(c->cell[q].u[place_in_u(c, i, j, k) * COMPONENTS + (size_t)l]));
                    }
    return sum;
}

void set_goal(struct cube *c)
{
    int q, i, j, k;
    for (q = 0; q < c->q; q++)
        for (k = 0; k < c->m; k++)
            for (j = 0; j < c->m; j++)
                for (i = 0; i < c->m; i++)
                    evaluate(&c->cell[q], i, j, k,
                             c->cell[q].goal + place(c, i, j, k) * COMPONENTS);
}

static void right_hand_side(struct cube *c, double dt, double **rhs)
{
    int q, i, j, k, l;
    for (q = 0; q < c->q; q++)
        for (k = 0; k < c->m; k++)
            for (j = 0; j < c->m; j++)
                for (i = 0; i < c->m; i++) {
                    const size_t at = place(c, i, j, k) * COMPONENTS;
                    double is[COMPONENTS];
                    evaluate(&c->cell[q], i, j, k, is);
                    for (l = 0; l < COMPONENTS; l++)
                        rhs[q][at + (size_t)l] = dt * (c->cell[q].goal[at + (size_t)l] - is[l]);
                }
}

static void add(struct cube *c, double **rhs)
{
    int q, i, j, k, l;
    for (q = 0; q < c->q; q++)
        for (k = 0; k < c->m; k++)
            for (j = 0; j < c->m; j++)
                for (i = 0; i < c->m; i++)
                    for (l = 0; l < COMPONENTS; l++)
                        c->cell[q].u[place_in_u(c, i, j, k) * COMPONENTS + (size_t)l] +=
                            rhs[q][place(c, i, j, k) * COMPONENTS + (size_t)l];
}

void make_step(struct cube *c, double dt)
{
    double *rhs[MOST_CELLS];
    int q, axis;
    for (q = 0; q < c->q; q++)
        rhs[q] = allocate(points_of_cell(c) * COMPONENTS);
    exchange_borders(c);
    right_hand_side(c, dt, rhs);
    for (axis = 0; axis < 3; axis++)
        sweep(axis, rhs);
    add(c, rhs);
    for (q = 0; q < c->q; q++)
        free(rhs[q]);
}

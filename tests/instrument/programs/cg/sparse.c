/* SPDX-License-Identifier: BSD-3-Clause */
#include "sparse.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double *whole; /* a vector of all processes */
static int whole_length;

void *allocate(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (p == NULL) {
        fprintf(stderr, "cg: %zu bytes cannot be had\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

double uniform_number(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / 16777216.0;
}

/* Entry (i, j) is drawn from a generator that depends on both, so the matrix is symmetric. */
static double entry(int i, int j, unsigned seed)
{
    unsigned own = seed ^ (unsigned)((i < j ? i : j) * 7919 + (i < j ? j : i) * 104729);
    double v = uniform_number(&own);
    v = uniform_number(&own);
    return v - 0.5;
}

static int is_present(int i, int j, int n, int nonzeros, unsigned seed)
{
    unsigned own = (seed + 17u) ^ (unsigned)((i < j ? i : j) * 31337 + (i < j ? j : i) * 6151);
    double drawn = uniform_number(&own);
    drawn = uniform_number(&own);
    return i == j || drawn < (double)nonzeros / n;
}

void make_matrix(struct matrix *a, int n, int nonzeros, double shift, unsigned seed)
{
    int i, j, used = 0, room = 64;
    a->n = n;
    a->rows = n / processes;
    a->first = me * a->rows;
    a->begin = allocate(((size_t)a->rows + 1) * sizeof *a->begin);
    a->column = allocate((size_t)room * sizeof *a->column);
    a->value = allocate((size_t)room * sizeof *a->value);
    for (i = 0; i < a->rows; i++) {
        double sum = 0;
        int diagonal = -1;
        a->begin[i] = used;
        for (j = 0; j < n; j++) {
            if (!is_present(a->first + i, j, n, nonzeros, seed))
                continue;
            if (used == room) {
                room *= 2;
                a->column = realloc(a->column, (size_t)room * sizeof *a->column);
                a->value = realloc(a->value, (size_t)room * sizeof *a->value);
                if (!a->column || !a->value)
                    MPI_Abort(MPI_COMM_WORLD, 1);
            }
            a->column[used] = j;
            if (j == a->first + i) {
                diagonal = used;
                a->value[used] = 0;
            } else {
                a->value[used] = entry(a->first + i, j, seed);
                sum += fabs(a->value[used]);
            }
            used++;
        }
        a->value[diagonal] = sum + shift;
    }
    a->begin[a->rows] = used;
    whole_length = n;
    whole = allocate((size_t)n * sizeof *whole);
}

void free_matrix(struct matrix *a)
{
    free(a->begin);
    free(a->column);
    free(a->value);
    free(whole);
    whole = NULL;
}

void multiply(const struct matrix *a, const double *x, double *y)
{
    int i, k;
    MPI_Allgather(x, a->rows, MPI_DOUBLE, whole, a->rows, MPI_DOUBLE, MPI_COMM_WORLD);
    for (i = 0; i < a->rows; i++) {
        double sum = 0;
        for (k = a->begin[i]; k < a->begin[i + 1]; k++)
            sum += a->value[k] * whole[a->column[k]];
        y[i] = sum;
    }
}

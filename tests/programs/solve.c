/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solve [N [NB]]: a dense system solved by ScaLAPACK's pdgesv on a 1 x P grid, then
 * checked: |A x - b| / (|A| |x| n eps) must be small, in the infinity norm.
 *
 * The panels that pdgesv broadcasts have up to 8 * N * NB bytes.
 */
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* ScaLAPACK has no C header. */
void Cblacs_pinfo(int *rank, int *ranks);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);
void Cblacs_exit(int more);
int numroc_(const int *n, const int *nb, const int *at, const int *source, const int *procs);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *row,
               const int *column, const int *context, const int *ld, int *info);
void pdgesv_(const int *n, const int *nrhs, double *a, const int *ia, const int *ja,
             const int *desca, int *pivots, double *b, const int *ib, const int *jb,
             const int *descb, int *info);

/* Both sides of the equation are functions of the place, so that no rank has to be asked. */
static double a_at(int row, int column)
{
    unsigned x = (unsigned)row * 2654435761u ^ (unsigned)column * 2246822519u;
    x ^= x >> 15;
    x *= 2654435761u;
    x ^= x >> 13;
    return (double)x / 4294967296.0 - 0.5;
}

static double b_at(int row)
{
    return a_at(row, -1);
}

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p) {
        fprintf(stderr, "solve: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

static int number(const char *text, int low, int high)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < low || value > high) {
        fprintf(stderr, "solve: not a number from %d to %d: %s\n", low, high, text);
        exit(2);
    }
    return (int)value;
}

/* The scaled residual: rows are dealt out to the ranks, everyone knows x. */
static double residual(const double *x, int n, int rank, int ranks)
{
    double mine[2] = {0, 0}, all[2], x_norm = 0;
    for (int row = rank; row < n; row += ranks) {
        double sum = -b_at(row), norm = 0;
        for (int column = 0; column < n; column++) {
            sum += a_at(row, column) * x[column];
            norm += fabs(a_at(row, column));
        }
        mine[0] = fmax(mine[0], fabs(sum));
        mine[1] = fmax(mine[1], norm);
    }
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        x_norm = fmax(x_norm, fabs(x[i]));
    return all[0] / (all[1] * x_norm * n * DBL_EPSILON);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? number(argv[1], 1, 20000) : 1536;
    const int nb = argc > 2 ? number(argv[2], 1, n) : 128;
    const int zero = 0, one = 1;
    int rank, ranks, context, rows, columns, my_row, my_column, info;

    MPI_Init(&argc, &argv);
    Cblacs_pinfo(&rank, &ranks);
    Cblacs_get(0, 0, &context);
    Cblacs_gridinit(&context, "Row", 1, ranks);
    Cblacs_gridinfo(context, &rows, &columns, &my_row, &my_column);

    const int my_columns = numroc_(&n, &nb, &my_column, &zero, &columns);
    const int my_rhs = numroc_(&one, &nb, &my_column, &zero, &columns);
    int desc_a[9], desc_b[9];
    descinit_(desc_a, &n, &n, &nb, &nb, &zero, &zero, &context, &n, &info);
    if (info == 0)
        descinit_(desc_b, &n, &one, &nb, &nb, &zero, &zero, &context, &n, &info);
    if (info != 0) {
        fprintf(stderr, "solve: descinit: %d\n", info);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    double *a = allocate((size_t)n * (size_t)my_columns, sizeof *a);
    double *x = allocate((size_t)n, sizeof *x);
    int *pivots = allocate((size_t)n + (size_t)nb, sizeof *pivots);
    for (int local = 0; local < my_columns; local++) {
        int column = (local / nb * columns + my_column) * nb + local % nb;
        for (int row = 0; row < n; row++)
            a[(size_t)local * (size_t)n + (size_t)row] = a_at(row, column);
    }
    for (int row = 0; my_rhs > 0 && row < n; row++)
        x[row] = b_at(row);

    double begin = MPI_Wtime();
    pdgesv_(&n, &one, a, &one, &one, desc_a, pivots, x, &one, &one, desc_b, &info);
    double seconds = MPI_Wtime() - begin;

    /* The right-hand side lives in the first column of processes. */
    MPI_Bcast(x, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double scaled = residual(x, n, rank, ranks);
    int ok = info == 0 && isfinite(scaled) && scaled < 10;
    if (rank == 0)
        printf("solve: n %d, nb %d, ranks %d, %.2f s, info %d, scaled residual %.3e: %s\n", n, nb,
               ranks, seconds, info, scaled, ok ? "passed" : "FAILED");
    free(pivots);
    free(x);
    free(a);
    Cblacs_gridexit(context);
    Cblacs_exit(1);
    MPI_Finalize();
    return ok ? 0 : 1;
}

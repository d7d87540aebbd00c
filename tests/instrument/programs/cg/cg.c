/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest eigenvalue of a sparse symmetric matrix by inverse power iteration; each system is
 * solved by a given number of steps of conjugate gradients. In the manner of NPB's CG.
 *
 *     mpiexec -n 4 cg [N [OUTER [NONZEROS]]]
 */
#include "sparse.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INNER 25
#define MAX_OUTER 10000
#define MAX_PROCESSES 64

int me, processes;

static struct matrix a;
static double *x, *z, *p, *q, *r;
static double history[MAX_OUTER];
static double shift = 12.0;

struct problem {
    int n, outer, nonzeros;
    double tolerance;
};

/* The parts are added in order, so that the sum does not depend on where the processes are. */
static double dot(const double *u, const double *v, int n)
{
    double mine = 0, sum = 0, part[MAX_PROCESSES];
    int i;
    for (i = 0; i < n; i++)
        mine += u[i] * v[i];
    MPI_Allgather(&mine, 1, MPI_DOUBLE, part, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (i = 0; i < processes; i++)
        sum += part[i];
    return sum;
}

static void axpy(double alpha, const double *u, double *v, int n)
{
    int i;
    for (i = 0; i < n; i++)
        v[i] += alpha * u[i];
}

/* z = A^-1 x, nearly; returns the norm of what is missing. */
static double conjugate_gradients(void)
{
    double rho, before, alpha, beta, pq, norm;
    int i, it;
    const int n = a.rows;

    for (i = 0; i < n; i++) {
        z[i] = 0;
        r[i] = x[i];
        p[i] = r[i];
    }
    rho = dot(r, r, n);
    for (it = 1; it <= INNER; it++) {
        multiply(&a, p, q);
        pq = dot(p, q, n);
        alpha = rho / pq;
        axpy(alpha, p, z, n);
        axpy(-alpha, q, r, n);
        before = rho;
        rho = dot(r, r, n);
        beta = rho / before;
        for (i = 0; i < n; i++)
            p[i] = r[i] + beta * p[i];
    }
    multiply(&a, z, r);
    for (i = 0; i < n; i++)
        q[i] = x[i] - r[i];
    norm = dot(q, q, n);
    return sqrt(norm);
}

static void read_problem(struct problem *to, int argc, char **argv)
{
    to->n = 240;
    to->outer = 12;
    to->nonzeros = 9;
    to->tolerance = 0.0;
    if (me == 0) {
        if (argc > 1)
            to->n = atoi(argv[1]);
        if (argc > 2)
            to->outer = atoi(argv[2]);
        if (argc > 3)
            to->nonzeros = atoi(argv[3]);
    }
    MPI_Bcast(to, (int)sizeof *to, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (to->n % processes != 0 || processes > MAX_PROCESSES || to->outer > MAX_OUTER) {
        if (me == 0)
            fprintf(stderr, "cg: N must be a multiple of %d, OUTER at most %d\n", processes,
                    MAX_OUTER);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static void begin(const struct problem *what)
{
    int i;
    make_matrix(&a, what->n, what->nonzeros, 1.5, 4711u);
    x = allocate((size_t)a.rows * sizeof(double));
    z = allocate((size_t)a.rows * sizeof(double));
    p = allocate((size_t)a.rows * sizeof(double));
    q = allocate((size_t)a.rows * sizeof(double));
    r = allocate((size_t)a.rows * sizeof(double));
    for (i = 0; i < a.rows; i++)
        x[i] = 1.0 + 0.01 * ((a.first + i) % 7);
}

static unsigned long long digest(const double *v, int n, unsigned long long sum)
{
    int i;
    for (i = 0; i < n; i++) {
        unsigned long long bits;
        memcpy(&bits, &v[i], sizeof bits);
        sum = (sum ^ bits) * 0x9e3779b97f4a7c15ULL;
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct problem what;
    double zeta = 0, missing = 0, xz, norm;
    int it, i;
    unsigned long long mine, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    read_problem(&what, argc, argv);
    begin(&what);

    for (it = 0; it < what.outer; it++) {
        missing = conjugate_gradients();
        xz = dot(x, z, a.rows);
        norm = 1.0 / sqrt(dot(z, z, a.rows));
        zeta = shift + 1.0 / xz;
        history[it] = zeta;
        for (i = 0; i < a.rows; i++)
            x[i] = norm * z[i];
    }

    mine = digest(x, a.rows, 0);
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (me == 0) {
        all = digest(history, what.outer, all);
        printf("cg: %d iterations, zeta %.15g, missing %.3e, checksum %016llx\n", it, zeta, missing,
               all);
    }
    free_matrix(&a);
    free(x);
    free(z);
    free(p);
    free(q);
    free(r);
    MPI_Finalize();
    return 0;
}

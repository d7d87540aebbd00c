/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat equation in a periodic cube, solved in Fourier space: each step multiplies the
 * transform, transforms it back and sums some of its elements. Planes are dealt to the processes,
 * and transposed by MPI_Alltoall. In the manner of NPB's FT, with static arrays as there.
 *
 *     mpiexec -n 4 fourier [N [STEPS]]
 */
#include "fft.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_POINTS (MAX_N * MAX_N * (MAX_N / LEAST_PROCESSES))
#define MAX_STEPS 10000

static dcomplex u0[MAX_POINTS], u1[MAX_POINTS], u2[MAX_POINTS], buffer[MAX_POINTS];
static double twiddle[MAX_POINTS];
static dcomplex sums[MAX_STEPS];

static int rank, size, n, planes, steps;
static MPI_Datatype point_type;

static struct timers {
    double evolve, transform, check;
    int calls;
} timers;

#define POINT(i, j, k) (((i)*n + (j)) * n + (k))

static int power_of_two(int k)
{
    return k > 1 && (k & (k - 1)) == 0;
}

static void setup(int argc, char **argv)
{
    int numbers[2] = {16, 100};
    if (rank == 0) {
        if (argc > 1)
            numbers[0] = atoi(argv[1]);
        if (argc > 2)
            numbers[1] = atoi(argv[2]);
        if (!power_of_two(numbers[0]) || numbers[0] > MAX_N || numbers[0] % size ||
            size < LEAST_PROCESSES || numbers[1] > MAX_STEPS) {
            fprintf(stderr, "fourier: N is a power of two up to %d, and a multiple of %d\n", MAX_N,
                    size);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    MPI_Bcast(numbers, 2, MPI_INT, 0, MPI_COMM_WORLD);
    n = numbers[0];
    steps = numbers[1];
    planes = n / size;
    MPI_Type_contiguous(2, MPI_DOUBLE, &point_type);
    MPI_Type_commit(&point_type);
    fft_init(n);
}

static void initial_values(void)
{
    int i, j, k;
    unsigned long seed = 314159265UL + (unsigned long)rank * 7919UL;
    for (i = 0; i < planes; i++)
        for (j = 0; j < n; j++)
            for (k = 0; k < n; k++) {
                double drawn[2];
                int d;
                for (d = 0; d < 2; d++) {
                    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
                    drawn[d] = (double)(seed >> 11) / 9007199254740992.0;
                }
                u0[POINT(i, j, k)] = drawn[0] + drawn[1] * I;
            }
}

static int folded(int i)
{
    return i > n / 2 ? i - n : i;
}

static void factors(double alpha)
{
    int i, j, k;
    for (i = 0; i < planes; i++)
        for (j = 0; j < n; j++)
            for (k = 0; k < n; k++) {
                const int x = folded(rank * planes + i), y = folded(j), z = folded(k);
                twiddle[POINT(i, j, k)] = exp(-alpha * (x * x + y * y + z * z));
            }
}

/* Of the first and the last index: (i, j, k) becomes (k, j, i). */
static void transpose(dcomplex *from, dcomplex *to)
{
    int i, j, k, p;
    dcomplex *out = buffer;
    for (p = 0; p < size; p++)
        for (k = 0; k < planes; k++)
            for (j = 0; j < n; j++)
                for (i = 0; i < planes; i++)
                    *out++ = from[POINT(i, j, p * planes + k)];
    MPI_Alltoall(buffer, planes * planes * n, point_type, to, planes * planes * n, point_type,
                 MPI_COMM_WORLD);
    memcpy(buffer, to, (size_t)(planes * n * n) * sizeof *to);
    out = buffer;
    for (p = 0; p < size; p++)
        for (k = 0; k < planes; k++)
            for (j = 0; j < n; j++)
                for (i = 0; i < planes; i++)
                    to[POINT(k, j, p * planes + i)] = *out++;
}

static void transform_rows(int sign, dcomplex *x)
{
    dcomplex scratch[MAX_N];
    int i, j;
    for (i = 0; i < planes; i++)
        for (j = 0; j < n; j++)
            fft_row(sign, n, x + POINT(i, j, 0), scratch);
}

static void transform_columns(int sign, dcomplex *x)
{
    dcomplex column[MAX_N], scratch[MAX_N];
    int i, j, k;
    for (i = 0; i < planes; i++)
        for (k = 0; k < n; k++) {
            for (j = 0; j < n; j++)
                column[j] = x[POINT(i, j, k)];
            fft_row(sign, n, column, scratch);
            for (j = 0; j < n; j++)
                x[POINT(i, j, k)] = column[j];
        }
}

static void fft(int sign, dcomplex *from, dcomplex *to)
{
    double begun = MPI_Wtime();
    transform_rows(sign, from);
    transform_columns(sign, from);
    transpose(from, to);
    transform_rows(sign, to);
    timers.transform += MPI_Wtime() - begun;
    timers.calls++;
}

static void evolve(dcomplex *from, dcomplex *to)
{
    int i;
    for (i = 0; i < planes * n * n; i++) {
        from[i] *= twiddle[i];
        to[i] = from[i];
    }
}

/* A sum over scattered points, each on one process, in an order that does not depend on them. */
static void checksum(int step, const dcomplex *x)
{
    dcomplex mine = 0, all[64];
    int q, p;
    for (q = 1; q <= 256; q++) {
        const int i = q % n, j = (3 * q) % n, k = (5 * q) % n;
        if (i / planes == rank)
            mine += x[POINT(i % planes, j, k)];
    }
    MPI_Allgather(&mine, 1, point_type, all, 1, point_type, MPI_COMM_WORLD);
    sums[step] = 0;
    for (p = 0; p < size; p++)
        sums[step] += all[p];
    sums[step] /= (double)n * n * n;
}

static unsigned long long digest(const void *at, size_t bytes, unsigned long long sum)
{
    unsigned long long word;
    size_t i;
    for (i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, (const char *)at + i, sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
    }
    return sum;
}

int main(int argc, char **argv)
{
    int iter;
    unsigned long long mine, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setup(argc, argv);
    initial_values();
    factors(1e-4);
    fft(1, u0, u1);
    memcpy(u0, u1, (size_t)(planes * n * n) * sizeof *u0);

    for (iter = 1; iter < steps; iter++) {
        evolve(u0, u1);
        fft(-1, u1, u2);
        checksum(iter, u2);
    }

    mine = digest(u0, (size_t)(planes * n * n) * sizeof *u0, 0);
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(stderr, "fourier: %d transforms, %.3f s\n", timers.calls, timers.transform);
        printf("fourier: last sum %.15g %.15g, checksum %016llx\n", creal(sums[steps - 1]),
               cimag(sums[steps - 1]), digest(sums, (size_t)steps * sizeof *sums, all));
    }
    MPI_Type_free(&point_type);
    MPI_Finalize();
    return 0;
}

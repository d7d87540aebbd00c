/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fft [TRANSFORMS]: the FFT of Singh & Graham's section 4.2, by binary exchange. Each
 * rank holds a block of the data. In the first log2(P) stages it exchanges the block
 * with the rank whose number differs in one bit, from the highest to the lowest; the
 * others are local. A power of two of ranks. Transforms pure tones, and fails if the
 * result is not one.
 */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlock = 2048 }; /* values of a rank; a power of two */

static double complex turn(size_t part, size_t whole)
{
    return cexp(-2 * acos(-1.0) * I * (double)part / (double)whole);
}

/** Decimation in frequency; the result is in bit-reversed order. */
static void transform(double complex *x, double complex *other, int rank, int size)
{
    for (int distance = size / 2; distance >= 1; distance /= 2) {
        const int partner = rank ^ distance;
        MPI_Sendrecv(x, kBlock, MPI_C_DOUBLE_COMPLEX, partner, 0, other, kBlock,
                     MPI_C_DOUBLE_COMPLEX, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const size_t half = (size_t)distance * kBlock;
        for (size_t i = 0; i < kBlock; i++) {
            const size_t place = ((size_t)rank * kBlock + i) % half;
            x[i] = rank & distance ? (other[i] - x[i]) * turn(place, 2 * half) : x[i] + other[i];
        }
    }
    for (size_t half = kBlock / 2; half >= 1; half /= 2) {
        for (size_t i = 0; i < kBlock; i++) {
            if (i & half)
                continue;
            const double complex a = x[i];
            const double complex b = x[i + half];
            x[i] = a + b;
            x[i + half] = (a - b) * turn(i % half, 2 * half);
        }
    }
}

static size_t reversed(size_t i, size_t n)
{
    size_t out = 0;
    for (; n > 1; n /= 2, i /= 2)
        out = 2 * out + i % 2;
    return out;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int transforms = argc > 1 ? atoi(argv[1]) : 60;
    if ((size & (size - 1)) != 0 || transforms < 1) {
        fprintf(stderr, "usage: fft [TRANSFORMS], on a power of two of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    static double complex x[kBlock];
    static double complex other[kBlock];
    const size_t n = (size_t)size * kBlock;
    const size_t first = (size_t)rank * kBlock;
    for (int t = 0; t < transforms; t++) {
        const size_t tone = (size_t)(t * 37 + 1) % n;
        for (size_t i = 0; i < kBlock; i++)
            x[i] = conj(turn((first + i) * tone % n, n));
        transform(x, other, rank, size);
        for (size_t i = 0; i < kBlock; i++) {
            const double expected = reversed(first + i, n) == tone ? (double)n : 0;
            if (cabs(x[i] - expected) > 1e-6 * (double)n) {
                fprintf(stderr, "fft: transform %d is wrong at %zu\n", t, first + i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    if (rank == 0)
        printf("fft: %d transforms of %zu values\n", transforms, n);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of normally distributed numbers, by the polar method, counted by the square ring that they
 * fall into. The ranks share nothing until the end. In the manner of NPB's EP, with a static array.
 *
 *     mpiexec -n 4 ep [BATCHES]
 */
#include "npb.h"
#include <math.h>

#define PAIRS 65536 /* of a batch */
#define RINGS 10
#define MULTIPLIER 1220703125ULL
#define MODULUS_MASK ((1ULL << 46) - 1)

static double drawn[2 * PAIRS];
static unsigned long long counts[RINGS];

/* MULTIPLIER to the power of N: what N steps of the generator multiply by. */
static unsigned long long power(unsigned long long n)
{
    unsigned long long result = 1, square = MULTIPLIER;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            result = result * square & MODULUS_MASK;
        square = square * square & MODULUS_MASK;
    }
    return result;
}

static void draw(int batch)
{
    int i;
    unsigned long long seed = 271828183ULL * power(2ULL * PAIRS * (unsigned long long)batch);
    for (i = 0; i < 2 * PAIRS; i++) {
        seed = seed * MULTIPLIER & MODULUS_MASK;
        drawn[i] = (double)seed / (double)(MODULUS_MASK + 1);
    }
}

/* Digest of the batch's sums. */
static unsigned long long count(int batch)
{
    int i;
    double sum_x = 0, sum_y = 0;
    for (i = 0; i < PAIRS; i++) {
        const double x = 2 * drawn[2 * i] - 1, y = 2 * drawn[2 * i + 1] - 1, t = x * x + y * y;
        if (t <= 1 && t > 0) {
            const double scale = sqrt(-2 * log(t) / t);
            const double a = fabs(x * scale), b = fabs(y * scale);
            const int ring = (int)(a > b ? a : b);
            counts[ring < RINGS ? ring : RINGS - 1]++;
            sum_x += x * scale;
            sum_y += y * scale;
        }
    }
    return digest_of(2ULL * (unsigned long long)batch, bits_of(sum_x)) ^
           digest_of(2ULL * (unsigned long long)batch + 1, bits_of(sum_y));
}

int main(int argc, char **argv)
{
    int rank, size, round, rounds, i, numbers[1] = {240};
    unsigned long long sums = 0, all[RINGS], accepted = 0;
    double share;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    read_numbers(argc, argv, numbers, 1);
    demand(numbers[0] % size == 0, "ep: BATCHES must be a multiple of the number of processes");
    rounds = numbers[0] / size;

    for (round = 0; round < rounds; round++) {
        draw(round * size + rank);
        sums ^= count(round * size + rank);
    }

    MPI_Allreduce(counts, all, RINGS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < RINGS; i++) {
        accepted += all[i];
        if (rank == 0)
            sums ^= digest_of(~(unsigned long long)i, all[i]);
    }
    /* Of a square the circle in it covers pi / 4. */
    share = (double)accepted / ((double)PAIRS * numbers[0]);
    conclude("ep", rounds, fabs(share - atan(1.0)) < 4e-3, share, sums);
    MPI_Finalize();
    return 0;
}

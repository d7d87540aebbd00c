/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs in the manner of the NAS Parallel Benchmarks share: their start, and the line
 * at their end. None of them contains a line of NPB.
 */
#ifndef NPB_H
#define NPB_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rank 0's arguments, for all; those that are not given keep their values. */
static inline void read_numbers(int argc, char **argv, int *numbers, int count)
{
    int i;
    for (i = 0; i < count && i + 1 < argc; i++)
        numbers[i] = atoi(argv[i + 1]);
    MPI_Bcast(numbers, count, MPI_INT, 0, MPI_COMM_WORLD);
}

static inline void demand(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Of a value that has a place in the whole problem. The exclusive or of all does not depend on how
 * many processes there are, and which of them has what. */
static inline unsigned long long digest_of(unsigned long long place, unsigned long long bits)
{
    unsigned long long sum = (place + 1) * 0x9e3779b97f4a7c15ULL ^ bits;
    sum = (sum ^ (sum >> 30)) * 0xbf58476d1ce4e5b9ULL;
    sum = (sum ^ (sum >> 27)) * 0x94d049bb133111ebULL;
    return sum ^ (sum >> 31);
}

static inline unsigned long long bits_of(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Collective: the last line, by rank 0. FIGURE: what the program has verified itself by. */
static inline void conclude(const char *name, int steps, int verified, double figure,
                            unsigned long long mine)
{
    int rank, all_verified;
    unsigned long long all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    MPI_Reduce(&verified, &all_verified, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d steps, %.6e, %s, checksum %016llx\n", name, steps, figure,
               all_verified ? "verified" : "NOT VERIFIED", all);
}
#endif

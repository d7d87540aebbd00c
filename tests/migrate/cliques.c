/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cliques SIZE MIB FILE
 *
 * Ranks in cliques of SIZE, each of which exchanges messages within itself only. The last rank has
 * MIB MiB of state, the others one. It ends once FILE exists, and each rank checks all its state.
 * Cliques are independent of each other: how far each has come, and how long its longest step took,
 * shows what it had to wait for.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

#include "check.h"

enum { kWords = 40000 }; /* of a message: 320 kB */

static int rank;

static uint64_t mixed(uint64_t a, uint64_t b)
{
    a ^= b * 0x9e3779b97f4a7c15u;
    a ^= a >> 29;
    a *= 0xbf58476d1ce4e5b9u;
    return a ^ a >> 32;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* What a rank has in its hash after a step, from its own before and its neighbour's. */
static uint64_t step_of(uint64_t own, uint64_t left, uint64_t sum, long step)
{
    return mixed(mixed(mixed(own, left), sum), (uint64_t)step);
}

/* ---- what it should be ---- */

static uint64_t expected(int me, int size, int first, long steps)
{
    uint64_t *all = calloc((size_t)size, sizeof *all), *next = calloc((size_t)size, sizeof *next);
    for (int i = 0; i < size; i++)
        all[i] = mixed(17, (uint64_t)(first + i));
    for (long step = 0; step < steps; step++) {
        uint64_t sum = 0;
        for (int i = 0; i < size; i++)
            sum += all[i];
        for (int i = 0; i < size; i++)
            next[i] = step_of(all[i], all[(i + size - 1) % size], sum, step);
        uint64_t *swap = all;
        all = next;
        next = swap;
    }
    const uint64_t found = all[me];
    free(all);
    free(next);
    return found;
}

static uint64_t ballast_at(size_t i)
{
    return mixed((uint64_t)rank, i);
}

/* ---- one step ---- */

static uint64_t exchange(MPI_Comm clique, int me, int size, uint64_t own, long step, uint64_t *out,
                         uint64_t *in)
{
    uint64_t sum = 0;
    MPI_Request both[2];
    const int left = (me + size - 1) % size, right = (me + 1) % size;
    for (int i = 0; i < kWords; i++)
        out[i] = own + (uint64_t)i;
    MPI_Irecv(in, kWords, MPI_UINT64_T, left, 5, clique, &both[0]);
    MPI_Isend(out, kWords, MPI_UINT64_T, right, 5, clique, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, clique);
    for (int i = 0; i < kWords; i++)
        CHECK(in[i] == in[0] + (uint64_t)i, "word %d in step %ld is wrong", i, step);
    return step_of(own, in[0], sum, step);
}

int main(int argc, char **argv)
{
    const struct timespec little = {.tv_nsec = 2000000};
    static uint64_t out[kWords], in[kWords];
    int ranks, me, size, stop = 0;
    long step = 0;
    double longest = 0;
    MPI_Comm clique;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 4, "cliques SIZE MIB FILE");
    const int width = atoi(argv[1]);
    const size_t words = (rank == ranks - 1 ? (size_t)atol(argv[2]) : 1) << 17;
    CHECK(width > 0 && words > 0, "no size, or no state");
    MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &clique);
    MPI_Comm_rank(clique, &me);
    MPI_Comm_size(clique, &size);
    uint64_t hash = mixed(17, (uint64_t)rank), *ballast = malloc(words * sizeof *ballast);
    CHECK(ballast, "out of memory");
    for (size_t i = 0; i < words; i++)
        ballast[i] = ballast_at(i);

    CHECK(zcm_init(&argc, &argv) == 0, "zcm_init");
    CHECK(zcm_register("step", &step, 1, MPI_LONG) == 0, "step");
    CHECK(zcm_register("hash", &hash, 1, MPI_UINT64_T) == 0, "hash");
    CHECK(zcm_register("ballast", ballast, words, MPI_UINT64_T) == 0, "ballast");
    MPI_Barrier(MPI_COMM_WORLD); /* the large state has taken its time */
    double last = 0;             /* a process that has taken over has had no step yet */
    while (!stop) {
        CHECK(zcm_safe_point() == 0, "safe point");
        const double here = now_ms();
        if (last > 0 && step > 20 && here - last > longest)
            longest = here - last;
        last = here;
        hash = exchange(clique, me, size, hash, step, out, in);
        step++;
        stop = me == 0 && access(argv[3], F_OK) == 0;
        MPI_Bcast(&stop, 1, MPI_INT, 0, clique);
        nanosleep(&little, NULL);
    }
    CHECK(hash == expected(me, size, rank - me, step), "hash after %ld steps is wrong", step);
    for (size_t i = 0; i < words; i++)
        CHECK(ballast[i] == ballast_at(i), "word %zu of the state is wrong", i);
    printf("rank %d: longest step %.1f ms of %ld\n", rank, longest, step);
    MPI_Comm_free(&clique);
    zcm_finalize();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("all right");
    MPI_Finalize();
    return 0;
}

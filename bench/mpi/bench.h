/* SPDX-License-Identifier: BSD-3-Clause */
/* What the MPI benchmarks share: arguments, a clock, abort on wrong data. */
#ifndef ZC_BENCH_H
#define ZC_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pattern.h"
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_MAX_SIZES = 64 };

struct bench_options {
    int repetitions, warmup;
    double compute_ms;
    size_t sizes[BENCH_MAX_SIZES];
    int nr_sizes;
};

static inline double bench_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* 64k, 1m, 4096 */
static inline size_t bench_parse_size(const char *text)
{
    char *end;
    size_t bytes = strtoull(text, &end, 10);
    if (*end == 'k' || *end == 'K')
        bytes <<= 10, end++;
    else if (*end == 'm' || *end == 'M')
        bytes <<= 20, end++;
    if (end == text || *end) {
        fprintf(stderr, "not a size: %s\n", text);
        exit(2);
    }
    return bytes;
}

/** bench_parse - read -r, -w, -c and sizes over what @options holds; exits on bad usage */
static inline void bench_parse(int argc, char **argv, const char *what,
                               struct bench_options *options)
{
    int letter;
    while ((letter = getopt(argc, argv, "r:w:c:h")) != -1) {
        switch (letter) {
        case 'r':
            options->repetitions = atoi(optarg);
            break;
        case 'w':
            options->warmup = atoi(optarg);
            break;
        case 'c':
            options->compute_ms = atof(optarg);
            break;
        default:
            printf("usage: %s [-r REPETITIONS] [-w WARM-UP] [-c COMPUTE_MS] [SIZE...]\n%s\n",
                   argv[0], what);
            exit(letter == 'h' ? 0 : 2);
        }
    }
    if (optind < argc)
        options->nr_sizes = 0;
    for (int i = optind; i < argc && options->nr_sizes < BENCH_MAX_SIZES; i++)
        options->sizes[options->nr_sizes++] = bench_parse_size(argv[i]);
    if (options->repetitions < 1 || options->warmup < 0) {
        fprintf(stderr, "%s: repetitions must be positive\n", argv[0]);
        exit(2);
    }
}

/** bench_ranks - this rank; ends the program unless exactly two take part */
static inline int bench_ranks(void)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        if (rank == 0)
            fprintf(stderr, "needs 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return rank;
}

static inline void bench_verify(const void *buf, size_t bytes, uint64_t seed)
{
    size_t wrong = pattern_find_error(buf, bytes, seed);
    if (wrong != bytes) {
        fprintf(stderr, "wrong data at byte %zu of %zu\n", wrong, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        _exit(1);
    }
}

static inline void *bench_malloc(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        _exit(1);
    }
    return p;
}

/** bench_finish - say that only MPI_Finalize is left, and do it */
static inline int bench_finish(int rank)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("# finalizing\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

#endif

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

enum { BENCH_MAX_SIZES = 64, BENCH_LEAST = 2 };

struct bench_options {
    int repetitions, warmup;
    double compute_ms;
    const char *kind;
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

/**
 * bench_parse - read -r, -w, -c, -k and sizes over what @options holds; exits on bad usage
 * What an option means to a program, and whether anything, stands in the program's heading.
 */
static inline void bench_parse(int argc, char **argv, const char *what,
                               struct bench_options *options)
{
    int letter;
    while ((letter = getopt(argc, argv, "r:w:c:k:h")) != -1) {
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
        case 'k':
            options->kind = optarg;
            break;
        default:
            printf("usage: %s [-r REPETITIONS] [-w WARM-UP] [-c COMPUTE_MS] [-k KIND] "
                   "[SIZE...]\n%s\n",
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

/** bench_want_warmup - exits unless there is a warm-up, by which the program sets @what */
static inline void bench_want_warmup(const struct bench_options *options, const char *program,
                                     const char *what)
{
    if (options->warmup < 1) {
        fprintf(stderr, "%s: at least one warm-up: it sets %s\n", program, what);
        exit(2);
    }
}

/** bench_kind - place of what -k named in @known, which NULL ends; 0 without -k; exits if unknown
 */
static inline int bench_kind(const struct bench_options *options, const char *const *known)
{
    for (int i = 0; known[i]; i++)
        if (!options->kind || strcmp(options->kind, known[i]) == 0)
            return i;
    fprintf(stderr, "no such kind: %s; there are:", options->kind);
    for (int i = 0; known[i]; i++)
        fprintf(stderr, " %s", known[i]);
    fputc('\n', stderr);
    exit(2);
}

/** bench_ranks - this rank; ends the program unless exactly @wanted take part */
static inline int bench_ranks(int wanted)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != wanted) {
        if (rank == 0)
            fprintf(stderr, "needs %d ranks\n", wanted);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return rank;
}

/* One sink for all of a program's work: the compiler must not see through it. */
static volatile double bench_sink;

/** bench_work - the unit of work: arithmetic only, so that memory traffic does not blur it */
static inline void bench_work(uint64_t rounds)
{
    double x = 1.0;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 1.0000001 + 1e-9;
    bench_sink = x;
}

/** bench_work_us - how long that much work takes */
static inline double bench_work_us(uint64_t rounds)
{
    const double begin = bench_now_us();
    bench_work(rounds);
    return bench_now_us() - begin;
}

/** bench_rounds_per_us - speed of bench_work when nothing disturbs: the best of several tries */
static inline double bench_rounds_per_us(void)
{
    const uint64_t probe = 2000000;
    double best_us = 1e30;
    for (int i = 0; i < 10; i++) {
        double begin = bench_now_us();
        bench_work(probe);
        double took = bench_now_us() - begin;
        best_us = took < best_us ? took : best_us;
    }
    return (double)probe / best_us;
}

static inline int bench_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** bench_median - the upper of the middle values; sorts @values */
static inline double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, bench_compare_doubles);
    return values[count / 2];
}

/** bench_status_kib - a figure of /proc/self/status, such as "VmRSS:"; 0 if it is not there */
static inline long bench_status_kib(const char *field)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtol(line + strlen(field), NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

/**
 * bench_again - whether repetition @rep shall take place: as many as asked for, but once
 * BENCH_LEAST are measured, none after BENCH_PATIENCE_US. All ranks must ask; rank 0 decides.
 * @begin_us: bench_now_us() before the first
 */
#define BENCH_PATIENCE_US 3e6
static inline int bench_again(const struct bench_options *o, int rep, double begin_us)
{
    int again = rep < o->warmup + o->repetitions &&
                (rep < o->warmup + BENCH_LEAST || bench_now_us() - begin_us < BENCH_PATIENCE_US);
    MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return again;
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

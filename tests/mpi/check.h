/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every MPI test needs: start and end, checks that name the place and the
 * seed, buffers with guards, time to be late in.
 *
 *     check_init(&argc, &argv, MPI_THREAD_SINGLE);
 *     ... CHECK(condition, "what was wrong: %d", value) ...
 *     return check_finish();
 */
#ifndef ZC_CHECK_H
#define ZC_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pattern.h"
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int check_rank, check_ranks;
static uint64_t check_seed;

/** CHECK - end the whole run, naming rank, place and seed, unless @condition holds */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                               \
    } while (0)

__attribute__((noreturn, format(printf, 4, 5))) static inline void
check_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *name = strrchr(file, '/');
    fprintf(stderr, "rank %d: %s:%d: %s: %s (ZC_SEED=%llu)\n", check_rank, name ? name + 1 : file,
            line, what, condition, (unsigned long long)check_seed);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/** check_skip - ends the program on all ranks, of which each calls it with the same reason */
__attribute__((noreturn, format(printf, 1, 2))) static inline void check_skip(const char *format,
                                                                              ...)
{
    if (check_rank == 0) {
        va_list args;
        va_start(args, format);
        printf("SKIP: ");
        vprintf(format, args);
        printf("\n");
        va_end(args);
    }
    MPI_Finalize();
    exit(4);
}

/** check_init - start MPI; ranks agree on the seed: $ZC_SEED, else the time */
static inline void check_init(int *argc, char ***argv, int level)
{
    int provided = 0;
    MPI_Init_thread(argc, argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_ranks);
    const char *text = getenv("ZC_SEED");
    check_seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) * 1000003 + getpid();
    MPI_Bcast(&check_seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (provided < level)
        check_skip("thread level %d not provided (got %d)", level, provided);
}

/** check_announce_end - all ranks are through; only MPI_Finalize is left */
static inline void check_announce_end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        printf("# finalizing\n");
        fflush(stdout);
    }
}

static inline int check_finish(void)
{
    check_announce_end();
    MPI_Finalize();
    return 0;
}

/** check_random - the next number below @limit of the stream *@state (same on every rank) */
static inline uint64_t check_random(uint64_t *state, uint64_t limit)
{
    *state += 0x9e3779b97f4a7c15u;
    return pattern_mix(*state) % limit;
}

/** check_nothing_comes - probe for @tag, with which nothing is sent, for so long */
static inline void check_nothing_comes(MPI_Comm comm, int tag, int ms)
{
    const double end = MPI_Wtime() + ms * 1e-3;
    int there;
    do {
        MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, MPI_STATUS_IGNORE);
        CHECK(!there, "a message that was not sent");
    } while (MPI_Wtime() < end);
}

/** check_sleep_ms - be late, without entering MPI */
static inline void check_sleep_ms(int ms)
{
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&span, NULL);
}

static inline void *check_malloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    CHECK(p, "no memory for %zu bytes", bytes);
    return p;
}

static inline void check_content(const void *buf, size_t bytes, uint64_t seed, const char *what)
{
    size_t wrong = pattern_find_error(buf, bytes, seed);
    CHECK(wrong == bytes, "%s: wrong data at byte %zu of %zu", what, wrong, bytes);
}

/*
 * A buffer between two guards, so that writes outside it show:
 *
 *     base        at                at + bytes
 *     | guard ... | the buffer ... | guard ... |
 */
enum { CHECK_GUARD = 8192 };

struct guarded {
    unsigned char *base, *at;
    size_t bytes;
};

/** guarded_make - @bytes at page offset @offset; the buffer itself is filled with 0xa5 */
static inline struct guarded guarded_make(size_t bytes, size_t offset)
{
    struct guarded g = {.bytes = bytes};
    void *base = NULL;
    CHECK(posix_memalign(&base, 4096, CHECK_GUARD + offset + bytes + CHECK_GUARD) == 0,
          "no memory for %zu bytes", bytes);
    g.base = base;
    g.at = g.base + CHECK_GUARD + offset;
    memset(g.base, 0x5a, (size_t)(g.at - g.base));
    memset(g.at, 0xa5, bytes);
    memset(g.at + bytes, 0x5a, CHECK_GUARD);
    return g;
}

static inline void guarded_check(const struct guarded *g, const char *what)
{
    for (const unsigned char *p = g->base; p < g->at; p++)
        CHECK(*p == 0x5a, "%s: %zu bytes before the buffer overwritten", what, (size_t)(g->at - p));
    for (const unsigned char *p = g->at + g->bytes; p < g->at + g->bytes + CHECK_GUARD; p++)
        CHECK(*p == 0x5a, "%s: overwritten %zu bytes past the buffer", what,
              (size_t)(p - g->at - g->bytes));
}

static inline void guarded_free(struct guarded *g)
{
    free(g->base);
    g->base = g->at = NULL;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of bench/run proof share: rests in place of work, steps drawn from their
 * number, and the result that each prints. */
#ifndef ZC_PROOF_H
#define ZC_PROOF_H

#include "bench.h"
#include <errno.h>

/* The options of bench_parse(): -r steps, -c work of a step in ms, -k variant, and one size. */
struct proof {
    struct bench_options options;
    const char *name;
    int rank, ranks;
    double useful_ms; /* rests of this rank so far: what its work would take alone */
    double begin_us;
};

/** proof_rest - sleep in place of work: two processors are enough for any number of ranks */
static inline void proof_rest(struct proof *p, double ms)
{
    struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    p->useful_ms += ms;
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

/** proof_draw - in [0, 1), the same in every run: of a rank and a step */
static inline double proof_draw(int rank, int step)
{
    return (double)(pattern_mix((uint64_t)rank << 32 | (uint64_t)step) >> 11) * 0x1p-53;
}

/** proof_seed - of the content of a message from @rank in @step */
static inline uint64_t proof_seed(int rank, int step)
{
    return (uint64_t)step << 20 | (uint64_t)rank;
}

/** proof_buffer - memory that is there already */
static inline unsigned char *proof_buffer(size_t bytes)
{
    unsigned char *buffer = bench_malloc(bytes);
    memset(buffer, 0, bytes);
    return buffer;
}

/** proof_begin - MPI_Init; @defaults are overridden by the arguments; the clock runs from here */
static inline struct proof proof_begin(int *argc, char ***argv, const char *name, int least_ranks,
                                       struct bench_options defaults)
{
    struct proof p = {.options = defaults, .name = name};
    bench_parse(*argc, *argv, "-r STEPS -c MS of work in a step; one size", &p.options);
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    if (p.ranks < least_ranks) {
        fprintf(stderr, "%s: needs %d ranks\n", name, least_ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    p.begin_us = bench_now_us();
    return p;
}

/** proof_end - print the time to solution and the parallel efficiency, which is work by
 * ranks and time; MPI_Finalize */
static inline int proof_end(struct proof *p)
{
    double seconds = (bench_now_us() - p->begin_us) / 1e6, longest, useful_ms;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&p->useful_ms, &useful_ms, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (p->rank == 0)
        printf("{\"bench\":\"proof\",\"program\":\"%s\",\"bytes\":%zu,\"time_to_solution\":%.6f,"
               "\"efficiency\":%.4f}\n",
               p->name, p->options.sizes[0], longest, useful_ms / 1e3 / (p->ranks * longest));
    return bench_finish(p->rank);
}

#endif

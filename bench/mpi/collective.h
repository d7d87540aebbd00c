/* SPDX-License-Identifier: BSD-3-Clause */
/* What collectives carry, and whether it has arrived; for blocking and nonblocking ones. */
#ifndef ZC_BENCH_COLLECTIVE_H
#define ZC_BENCH_COLLECTIVE_H

#include "bench.h"

enum collective { ALLTOALL, ALLGATHER, BCAST, ALLREDUCE };

struct collective_job {
    enum collective kind;
    int rank, ranks;
    size_t bytes;   /* to one rank (alltoall), contributed (allgather), held (bcast, allreduce) */
    char *in, *out; /* received, sent */
};

static inline size_t collective_room(const struct collective_job *j)
{
    return j->bytes * (size_t)j->ranks;
}

static inline void collective_allocate(struct collective_job *j)
{
    j->out = bench_malloc(collective_room(j));
    j->in = bench_malloc(collective_room(j));
}

static inline void collective_free(struct collective_job *j)
{
    free(j->in);
    free(j->out);
}

/* Content of the block that @from sends @to. */
static inline uint64_t collective_seed(const struct collective_job *j, int rep, int from, int to)
{
    return j->bytes * 1000003u + (uint64_t)((rep * j->ranks + from) * j->ranks + to);
}

/* Element @i of @rank's summand. */
static inline uint64_t collective_summand(uint64_t seed, int rank, size_t i)
{
    return seed + i * (uint64_t)(rank + 1);
}

static inline void collective_prepare(const struct collective_job *j, int rep)
{
    uint64_t *out = (uint64_t *)j->out;
    switch (j->kind) {
    case ALLTOALL:
        for (int to = 0; to < j->ranks; to++)
            pattern_fill(j->out + (size_t)to * j->bytes, j->bytes,
                         collective_seed(j, rep, j->rank, to));
        break;
    case ALLGATHER:
        pattern_fill(j->out, j->bytes, collective_seed(j, rep, j->rank, 0));
        break;
    case BCAST:
        if (j->rank == 0)
            pattern_fill(j->in, j->bytes, collective_seed(j, rep, 0, 0));
        break;
    case ALLREDUCE:
        for (size_t i = 0; i < j->bytes / 8; i++)
            out[i] = collective_summand(collective_seed(j, rep, 0, 0), j->rank, i);
        break;
    }
}

static inline void collective_verify_sum(const struct collective_job *j, int rep)
{
    const uint64_t *in = (const uint64_t *)j->in;
    for (size_t i = 0; i < j->bytes / 8; i++) {
        uint64_t sum = 0;
        for (int rank = 0; rank < j->ranks; rank++)
            sum += collective_summand(collective_seed(j, rep, 0, 0), rank, i);
        if (in[i] != sum) {
            fprintf(stderr, "wrong sum in element %zu of %zu\n", i, j->bytes / 8);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static inline void collective_verify(const struct collective_job *j, int rep)
{
    switch (j->kind) {
    case ALLTOALL:
    case ALLGATHER:
        for (int from = 0; from < j->ranks; from++)
            bench_verify(j->in + (size_t)from * j->bytes, j->bytes,
                         collective_seed(j, rep, from, j->kind == ALLTOALL ? j->rank : 0));
        break;
    case BCAST:
        bench_verify(j->in, j->bytes, collective_seed(j, rep, 0, 0));
        break;
    case ALLREDUCE:
        collective_verify_sum(j, rep);
        break;
    }
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handling, checked allocation, a digest and the pool of work arrays.
 * This is part of the program "shallow"; run it with "mpiexec -n 4 ./shallow". */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
    double *data;
    size_t capacity;
    int borrowed;
};

struct pool {
    struct block *blocks;
    size_t n_blocks;
};

void sw_fail(const char *file, int line, const char *fmt, ...)
{
    int rank = -1;
    va_list args;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "shallow: rank %d: %s:%d: ", rank, file, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

/* At least one element is allocated, so that no caller has to treat empty arrays specially. */
void *sw_calloc(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size);
    SW_REQUIRE(p, "cannot allocate %zu elements of %zu bytes", n, size);
    return p;
}

void *sw_grow(void *old, size_t n, size_t size)
{
    void *p = realloc(old, n * size);
    SW_REQUIRE(p, "cannot grow an array to %zu elements", n);
    return p;
}

uint64_t fnv1a(uint64_t hash, const void *data, size_t n_bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3ULL;
    return hash;
}

struct pool *pool_create(void)
{
    return SW_NEW(struct pool, 1);
}

double *pool_borrow(struct pool *pool, size_t n)
{
    struct block *best = NULL;
    for (size_t i = 0; i < pool->n_blocks && !best; i++) {
        if (!pool->blocks[i].borrowed && pool->blocks[i].capacity >= n)
            best = &pool->blocks[i];
    }
    if (!best) {
        pool->blocks = sw_grow(pool->blocks, pool->n_blocks + 1, sizeof *pool->blocks);
        best = &pool->blocks[pool->n_blocks++];
        best->data = SW_NEW(double, n);
        best->capacity = n;
    }
    best->borrowed = 1;
    return best->data;
}

void pool_return(struct pool *pool, double *array)
{
    size_t i = 0;
    while (i < pool->n_blocks && pool->blocks[i].data != array)
        i++;
    SW_REQUIRE(i < pool->n_blocks && pool->blocks[i].borrowed, "a work array was not on loan");
    pool->blocks[i].borrowed = 0;
}

void pool_destroy(struct pool *pool)
{
    log_write(LOG_DEBUG, "the pool held %zu work arrays", pool->n_blocks);
    for (size_t i = 0; i < pool->n_blocks; i++) {
        SW_REQUIRE(!pool->blocks[i].borrowed, "work array %zu was never returned", i);
        free(pool->blocks[i].data);
    }
    free(pool->blocks);
    free(pool);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors, checked allocation, logging and work arrays of the shallow-water solver.
 * Build with "mpicc -std=c11 -O2 *.c -lm -o shallow" and run with "mpiexec -n 4 ./shallow". */
#ifndef SHALLOW_SUPPORT_H
#define SHALLOW_SUPPORT_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define SW_FAIL(...) sw_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SW_REQUIRE(cond, ...)                                                                      \
    do {                                                                                           \
        if (!(cond))                                                                               \
            sw_fail(__FILE__, __LINE__, __VA_ARGS__);                                              \
    } while (0)
#define SW_MPI(call)                                                                               \
    do {                                                                                           \
        int sw_status_ = (call);                                                                   \
        SW_REQUIRE(sw_status_ == MPI_SUCCESS, "%s: %d", #call, sw_status_);                        \
    } while (0)
#define SW_NEW(type, n) ((type *)sw_calloc((size_t)(n), sizeof(type)))

_Noreturn void sw_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void *sw_calloc(size_t n, size_t size);
void *sw_grow(void *old, size_t n, size_t size);

#define FNV_SEED 0xcbf29ce484222325ULL
uint64_t fnv1a(uint64_t hash, const void *data, size_t n_bytes);

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

/* Messages up to LOG_INFO are written by rank 0 only, debug messages by every rank. */
void log_open(int rank, const char *level_name);
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Work arrays are borrowed and returned within a time step; their contents are undefined. */
struct pool;
struct pool *pool_create(void);
double *pool_borrow(struct pool *pool, size_t n);
void pool_return(struct pool *pool, double *array);
void pool_destroy(struct pool *pool);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_TRACER_H_INCLUDED
#define ZCT_TRACER_H_INCLUDED

/*
 * What the wrappers share. One lock guards all of it; it is taken only if the
 * program may call MPI from several threads at once, never across a call into
 * MPI that may wait.
 *
 * A wrapper reads the clock before and after the library's function and leaves
 * a record. It calls the function exactly once, with the caller's arguments but
 * for statuses the caller does not want: what the program sees does not change.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "fast_clock.h"
#include "handle_table.h"
#include "real.h"
#include "writer.h"

#define ZCT_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct zct_tracer {
    bool active;   /* between MPI_Init and MPI_Finalize, with a file */
    bool threaded; /* MPI_THREAD_MULTIPLE */
    bool calls;    /* record the calls that may wait, and call sites (ZC_TRACE_CALLS) */
    pthread_mutex_t mutex;
    int64_t zero_ns; /* CLOCK_MONOTONIC when the run began */
    struct zct_writer writer;
    struct zct_table requests; /* struct zct_request */
    struct zct_table messages; /* struct zct_message */
    struct zct_table comms;    /* struct zct_comm */
    struct zct_table types;    /* struct zct_type */
    struct zct_table sites;    /* uint32_t: numbers of call sites, by return address */
};

extern struct zct_tracer zct __attribute__((visibility("hidden")));

/* Of something that begins: a message that is sent, or a receive that is posted. */
static inline int64_t zct_now(void)
{
    return (int64_t)zc_fast_clock_ns() - zct.zero_ns;
}

/* Of something that has ended: not before another rank's clock when that sent what has come. */
static inline int64_t zct_now_after(void)
{
    return (int64_t)zc_fast_clock_after_ns() - zct.zero_ns;
}

static inline void zct_lock(void)
{
    if (zct.threaded)
        pthread_mutex_lock(&zct.mutex);
}

static inline void zct_unlock(void)
{
    if (zct.threaded)
        pthread_mutex_unlock(&zct.mutex);
}

/* Handles as keys. */
#define ZCT_KEY(handle) ((uintptr_t)(handle))

/* Where the program called the wrapper that this is used in. */
#define ZCT_CALLER (zct_fortran_caller ? zct_fortran_caller : __builtin_return_address(0))

/** What called the Fortran function that this thread is in, if it is in one. */
extern __thread void *zct_fortran_caller __attribute__((tls_model("initial-exec")));

/** Makes a call site known. */
uint32_t zct_site_announce_locked(void *caller);

/** The number of a call site; 0 if calls are not recorded. */
static inline uint32_t zct_site_locked(void *caller)
{
    if (!zct.calls)
        return 0;
    const uint32_t *known = zct_table_find(&zct.sites, (uintptr_t)caller);
    return known ? *known : zct_site_announce_locked(caller);
}

/** Records a call that ends at @end_ns; to be called if zct.calls. */
void zct_call_ended(enum zct_function function, void *caller, int64_t begin_ns, int64_t end_ns);

/** The same, under the lock, of a call that completed @sends and was made at @site. */
static inline void zct_call_ended_locked(enum zct_function function, uint32_t site,
                                         int64_t begin_ns, int64_t end_ns, const uint64_t *sends,
                                         size_t nr_sends)
{
    const struct zct_call call = {
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .function = function,
        .site = site,
        .sends = sends,
        .nr_sends = nr_sends,
    };
    zct_write_call(&zct.writer, &call);
}

/** Has a call that returns @code taken part in what it is for? One whose receive has no room has,
 * and says nothing of the rest; other errors are found before anything is sent. */
bool zct_moved(int code);

/** Something will not be recorded: the trace is incomplete, and says so at its end. Not under the
 * lock.
 */
void zct_out_of_memory(void);

/** Ends the trace: @finished as of MPI_Finalize. */
void zct_stop(bool finished);

#endif

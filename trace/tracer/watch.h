/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_WATCH_H_INCLUDED
#define ZCT_WATCH_H_INCLUDED

#include "traced_request.h"

/**
 * What is known of some requests before a call that may complete them and
 * overwrite their handles. Where no other thread can be given the handles
 * meanwhile, keeping them is enough and the rest is looked up afterwards.
 */
struct zct_watch {
    uintptr_t *keys;
    struct zct_request *known; /* with MPI_THREAD_MULTIPLE */
    /* If calls are recorded: */
    void *caller;
    int64_t begin_ns;
    uint64_t *sends; /* that were completed */
    size_t nr_sends;
    /* What these point to, of a single request. */
    struct {
        uintptr_t key;
        struct zct_request known;
        uint64_t send;
        MPI_Status status;
    } one;
};

/**
 * zct_watch_begin - keep what is known of the requests
 * @statuses: in: the caller's; out: never MPI_STATUSES_IGNORE
 *
 * The memory is @w's, or the calling thread's and reused by its next call. False
 * if there is nothing to trace: then @statuses is as it was.
 */
bool zct_watch_begin(struct zct_watch *w, int count, const MPI_Request *requests,
                     MPI_Status **statuses, void *caller);

/** Is request @idx one that is recorded? One that the program had completed before, or has not
 * started, counts as complete, too. Until it is settled; not under the lock. */
bool zct_watch_knows(const struct zct_watch *w, int idx);

/** Request @idx is complete, or failed with @code. */
void zct_watch_settle_locked(struct zct_watch *w, int idx, const MPI_Status *status, int code,
                             int64_t time_ns);

/** The call ends, after all that it completed was settled. */
void zct_watch_end_locked(const struct zct_watch *w, enum zct_function function, int64_t time_ns);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_SHARED_HANDLES_H_INCLUDED
#define ZCT_SHARED_HANDLES_H_INCLUDED

#include "traced_request.h"

/*
 * An operation that is complete when it begins needs no request of its own: MPICH and Open MPI
 * return the same handle for all of those, once for each, and a program may hold it any number of
 * times. The table of requests has the latest one. Those before it are here, and come back one
 * after the other as the handle is completed; which comes first is all the same, since all are
 * complete. All functions are called under the lock.
 */

/** Keeps @request, whose handle has just been returned again. */
void zct_shared_keep_locked(uintptr_t key, const struct zct_request *request);

/** Takes back the one that was kept last. False: there is none. */
bool zct_shared_take_locked(uintptr_t key, struct zct_request *request);

/** Is any kept? */
bool zct_shared_is_locked(uintptr_t key);

/** The one that was kept as the @nth before the last, or NULL. Valid until the next is kept. */
const struct zct_request *zct_shared_peek_locked(uintptr_t key, size_t nth);

/** Takes out exactly @request. False: it is not kept. */
bool zct_shared_drop_locked(uintptr_t key, const struct zct_request *request);

/** Do they stand for the same operation? */
static inline bool zct_request_is(const struct zct_request *a, const struct zct_request *b)
{
    return a && a->kind == b->kind && a->order == b->order;
}

#endif

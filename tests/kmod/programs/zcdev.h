/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_ZCDEV_H
#define ZC_TESTS_ZCDEV_H

/* /dev/zc, and its promises that hold for every call. */

#include "zc_ioctl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How a call reaches the module. */
enum zcdev_way {
    ZCDEV_IOCTL,
    ZCDEV_URING,
    ZCDEV_URING_ASYNC,  /* IOSQE_ASYNC: in a worker thread of the kernel */
    ZCDEV_URING_SQPOLL, /* in the thread that polls the submission queue */
    ZCDEV_WAYS
};

struct zcdev_outcome {
    int error; /* 0, or errno */
    uint64_t done;
    uint32_t stopped, cause;
};

/** Opens the device, or skips the test. The same one in the whole process. */
int zcdev_open(void);

/** Which way the calls below go; ZCDEV_IOCTL at first. May skip the test. */
void zcdev_go(enum zcdev_way way);
const char *zcdev_way_name(enum zcdev_way way);

/** An exchange of @count ranges; the outputs are checked. */
struct zcdev_outcome zcdev_vector(struct zc_range *ranges, unsigned int count);
struct zcdev_outcome zcdev_pair(const void *a, const void *b, size_t len);

/**
 * zcdev_vector_by - an exchange by a ring of the caller's, for programs with threads
 * @ring:  NULL: by the ioctl
 * @flags: IOSQE_*
 */
struct uring;
struct zcdev_outcome zcdev_vector_by(struct uring *ring, unsigned int flags,
                                     struct zc_range *ranges, unsigned int count);

/** The bare call: 0 or errno. */
int zcdev_call_by(struct uring *ring, unsigned int flags, struct zc_exchange *exchange);

/**
 * zcdev_check - fail the test where the outputs contradict the interface
 *
 * The errno is the cause's, @done the sum of the ranges', all of them whole
 * pages, ranges before @stopped done, those after it as they were.
 */
void zcdev_check(const struct zcdev_outcome *outcome, const struct zc_range *before,
                 const struct zc_range *after, unsigned int count);

const char *zcdev_cause(uint32_t cause);
int zcdev_errno(uint32_t cause);

#endif

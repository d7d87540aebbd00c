/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_FAST_CLOCK_H_INCLUDED
#define ZC_BASE_FAST_CLOCK_H_INCLUDED

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * CLOCK_MONOTONIC for those that read it with every message. The kernel computes it from the
 * processor's time-stamp counter, behind a barrier, and with several loads; this clock reads the
 * counter alone, and asks the kernel once in a millisecond:
 *
 *     ns = anchor_ns + (counter - anchor) * scale          until the counter is at anchor + limit
 *
 * so it is a tenth of a microsecond from CLOCK_MONOTONIC at most where that is not being slewed,
 * and the processes of a host agree as well as they do by that. It goes back within a thread only
 * where the kernel's does, or the counter. Where the kernel itself does not keep time by the
 * counter, and before a thread has used the clock for ten milliseconds, every reading is the
 * kernel's.
 *
 * The processor may read its counter before the loads that come first in the program are done: by
 * a few hundred nanoseconds, where they miss the cache. That is right for the time at which
 * something is begun, which is not told to another before it is known. Of what another processor
 * has told this one, it would be a time before that; zc_fast_clock_after_ns() waits for the loads,
 * which costs as much again.
 */

/** Of a thread. */
struct zc_fast_clock {
    uint64_t anchor; /* of the counter */
    uint64_t limit;  /* ticks; 0: there is no anchor */
    uint64_t scale;  /* nanoseconds of a tick, times 2^32 */
    uint64_t anchor_ns;
};

extern __thread struct zc_fast_clock zc_fast_clock_here
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/** zc_fast_clock_anchor - the time by the kernel's clock, from which the counter goes on */
uint64_t zc_fast_clock_anchor(void) __attribute__((visibility("hidden")));

/** zc_fast_clock_ns - CLOCK_MONOTONIC, in nanoseconds, of something that begins; from any thread,
 * not from a signal handler */
static inline uint64_t zc_fast_clock_ns(void)
{
#if defined(__x86_64__)
    const struct zc_fast_clock *here = &zc_fast_clock_here;
    const uint64_t passed = __rdtsc() - here->anchor;
    if (__builtin_expect(passed < here->limit, 1))
        return here->anchor_ns + (passed * here->scale >> 32);
#endif
    return zc_fast_clock_anchor();
}

/** zc_fast_clock_after_ns - the same, of something that has ended: after all that has been read */
static inline uint64_t zc_fast_clock_after_ns(void)
{
#if defined(__x86_64__)
    _mm_lfence();
#endif
    return zc_fast_clock_ns();
}

#ifdef __cplusplus
}
#endif

#endif

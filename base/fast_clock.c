/* SPDX-License-Identifier: BSD-3-Clause */
#include "fast_clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

__thread struct zc_fast_clock zc_fast_clock_here;

static uint64_t read_kernel_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)

#define ANCHOR_NS 1000000u  /* between readings of the kernel's clock */
#define FIRST_NS 10000000u  /* over which the scale is measured first */
#define SCALE_NS 100000000u /* and then, always anew: the kernel's clock may be slewed */
#define AHEAD_NS 5000u      /* scale and readings do not differ by more in ANCHOR_NS */
#define NEAR_TICKS 300u     /* the two clocks are read as one: nothing has come between */
#define ATTEMPTS 4          /* to read them so */
#define MISSES 1000u        /* in a row: they are never read so, on this machine */
#define SCALE_CHANGES 1024u /* by less than a 1024th, or the counter is another one */

/** What a thread's clock comes from. */
static __thread struct {
    uint64_t counter, ns; /* since when the scale is being measured; 0: it is not yet */
    uint64_t scale;       /* the last one; 0: none */
    uint64_t told_ns;     /* the latest time that the thread has been told by the kernel's clock */
    unsigned misses;
} past __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

/* The kernel has found it constant, and the same on all processors, if it uses it itself. */
static void find_counter(void)
{
    char name[8] = "";
    int mode = PR_TSC_SIGSEGV;
    const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t length = read(fd, name, sizeof name);
    close(fd);
    usable = length == 4 && memcmp(name, "tsc\n", 4) == 0 && prctl(PR_GET_TSC, &mode) == 0 &&
             mode == PR_TSC_ENABLE;
}

static uint64_t read_counter(void)
{
    _mm_lfence(); /* not before what comes first */
    return __rdtsc();
}

/* The kernel's time, and the counter at that time. False: something has come between. */
static bool read_both(uint64_t *ns, uint64_t *counter)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        const uint64_t before = read_counter();
        *ns = read_kernel_ns();
        const uint64_t took = read_counter() - before;
        *counter = before + took / 2;
        if (took < NEAR_TICKS)
            return true;
    }
    return false;
}

static uint64_t difference(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

static uint64_t in_ns(uint64_t ticks, uint64_t scale)
{
    return (uint64_t)((unsigned __int128)ticks * scale >> 32);
}

/* A process that was restored on another host has another counter, and perhaps another clock. */
static bool is_another(uint64_t ns, uint64_t counter)
{
    const struct zc_fast_clock *here = &zc_fast_clock_here;
    const uint64_t expected_ns = here->anchor_ns + in_ns(counter - here->anchor, here->scale);
    const uint64_t passed_ns = difference(ns, here->anchor_ns);
    return difference(expected_ns, ns) > AHEAD_NS + passed_ns / SCALE_CHANGES;
}

static void measure_scale(uint64_t ns, uint64_t counter)
{
    const bool begins = past.ns == 0 || (past.scale != 0 && is_another(ns, counter));
    const uint64_t span_ns = ns - past.ns, ticks = counter - past.counter;

    if (!begins && span_ns < (past.scale != 0 ? SCALE_NS : FIRST_NS))
        return;
    past.scale = begins || ticks == 0 ? 0 : (uint64_t)(((unsigned __int128)span_ns << 32) / ticks);
    past.ns = ns;
    past.counter = counter;
}

/* By how much this clock is ahead. If by much, it is another clock or counter. */
static uint64_t ahead_of(uint64_t ns, uint64_t told_ns)
{
    return told_ns > ns && told_ns - ns < AHEAD_NS ? told_ns - ns : 0;
}

/* Sets the anchor at @ns, or at what has been told if this clock is ahead; then it goes more
 * slowly, so that it is right again at the next anchor. */
static void set_anchor(uint64_t ns, uint64_t counter, uint64_t ahead_ns)
{
    struct zc_fast_clock *here = &zc_fast_clock_here;

    here->limit = 0;
    here->anchor = counter;
    here->anchor_ns = ns + ahead_ns;
    here->scale = (uint64_t)((unsigned __int128)past.scale * (ANCHOR_NS - ahead_ns) / ANCHOR_NS);
    here->limit = ((uint64_t)ANCHOR_NS << 32) / past.scale;
}

/* The latest time that this thread may have been told. */
static uint64_t find_latest_told(void)
{
    const struct zc_fast_clock *here = &zc_fast_clock_here;
    const uint64_t limit_ns = here->anchor_ns + in_ns(here->limit, here->scale);
    return here->limit != 0 ? limit_ns : past.told_ns;
}

uint64_t zc_fast_clock_anchor(void)
{
    const uint64_t told_ns = find_latest_told();
    uint64_t ns, counter;

    pthread_once(&once, find_counter);
    if (!usable || past.misses == MISSES)
        return read_kernel_ns();
    const bool near = read_both(&ns, &counter);
    past.misses = near ? 0 : past.misses + 1;
    if (near)
        measure_scale(ns, counter);
    const uint64_t ahead_ns = ahead_of(ns, told_ns);
    past.told_ns = ns + ahead_ns;
    zc_fast_clock_here.limit = 0;
    if (near && past.scale != 0)
        set_anchor(ns, counter, ahead_ns);
    return past.told_ns;
}

#else

uint64_t zc_fast_clock_anchor(void)
{
    return read_kernel_ns();
}

#endif

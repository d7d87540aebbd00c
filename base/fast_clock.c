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
#define AHEAD_NS 5000u      /* scale and readings do not differ by more in that time */
#define NEAR_TICKS 2000u    /* the two clocks are read as one: nothing has come between */
#define ATTEMPTS 4          /* to read them so */
#define SCALE_CHANGES 1024u /* by less than a 1024th, or the counter is another one */

/** Where the scale is measured from. */
static __thread struct {
    uint64_t counter, ns; /* 0: nowhere yet */
    uint64_t scale;       /* the last one; 0: none */
} origin __attribute__((tls_model("initial-exec")));

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

/* The kernel's time, and the counter at that time. False: something has come between. */
static bool read_both(uint64_t *ns, uint64_t *counter)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        const uint64_t before = __rdtsc();
        *ns = read_kernel_ns();
        const uint64_t took = __rdtsc() - before;
        *counter = before + took / 2;
        if (took < NEAR_TICKS)
            return true;
    }
    return false;
}

/* Measured since the origin, the longer the better. 0: not long enough. */
static uint64_t measure_scale(uint64_t ns, uint64_t counter)
{
    const uint64_t span_ns = ns - origin.ns, ticks = counter - origin.counter;
    const bool begins = origin.ns == 0;
    uint64_t scale = 0;

    if (!begins && span_ns < ANCHOR_NS)
        return 0;
    if (!begins && ticks != 0)
        scale = (uint64_t)(((unsigned __int128)span_ns << 32) / ticks);
    /* A process that was restored on another host has another counter. */
    const uint64_t change = scale > origin.scale ? scale - origin.scale : origin.scale - scale;
    if (begins || scale == 0 || (origin.scale != 0 && change > origin.scale / SCALE_CHANGES)) {
        origin.ns = ns;
        origin.counter = counter;
        scale = 0;
    }
    origin.scale = scale;
    return scale;
}

/* By how much this clock is ahead. If by much, it is another clock or counter: the process was
 * restored on another host. */
static uint64_t ahead_of(uint64_t ns, uint64_t told_ns)
{
    return told_ns > ns && told_ns - ns < AHEAD_NS ? told_ns - ns : 0;
}

/* Sets the anchor at @ns, or at @told_ns if this clock is ahead; then it goes more slowly, so that
 * it is right again at the next anchor. */
static uint64_t set_anchor(uint64_t ns, uint64_t counter, uint64_t told_ns)
{
    struct zc_fast_clock *here = &zc_fast_clock_here;
    const uint64_t ahead_ns = ahead_of(ns, told_ns);
    const uint64_t scale = measure_scale(ns, counter);

    here->limit = 0;
    here->anchor_ns = ns + ahead_ns;
    if (scale != 0) {
        here->anchor = counter;
        here->scale = (uint64_t)((unsigned __int128)scale * (ANCHOR_NS - ahead_ns) / ANCHOR_NS);
        here->limit = ((uint64_t)ANCHOR_NS << 32) / scale;
    }
    return here->anchor_ns;
}

uint64_t zc_fast_clock_anchor(void)
{
    const struct zc_fast_clock *here = &zc_fast_clock_here;
    /* The latest time that this thread may have been told. */
    const uint64_t told_ns = here->anchor_ns + (here->limit * here->scale >> 32);
    uint64_t ns, counter;

    pthread_once(&once, find_counter);
    if (!usable)
        return read_kernel_ns();
    if (read_both(&ns, &counter))
        return set_anchor(ns, counter, told_ns);
    zc_fast_clock_here.limit = 0;
    zc_fast_clock_here.anchor_ns = ns + ahead_of(ns, told_ns);
    return zc_fast_clock_here.anchor_ns;
}

#else

uint64_t zc_fast_clock_anchor(void)
{
    return read_kernel_ns();
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "polling.h"

#include "tracer.h"

/* Longer than what a program does between two looks of a loop that does nothing else. */
#define WORK_NS 100000

/** What this thread has looked for in vain since it last did anything that is recorded. */
struct polling {
    int64_t begin_ns; /* work since then counts as done before */
    int64_t end_ns;   /* of its last call */
    int64_t in_ns;    /* in its calls */
    int64_t between_ns;
    /* The writer's, then: */
    uint64_t began;
    uint64_t nr_sends;
    int64_t time_ns;
};

static __thread struct polling polling __attribute__((tls_model("initial-exec")));

/* Does a call that begins at @begin_ns go on with it? Nothing was recorded since, and what the
 * program does between its calls takes no more than half. What took long between two of them was
 * work: the waiting is shorter by that, and still one, since a processor that was given to another
 * process looks the same. */
static bool goes_on_locked(int64_t begin_ns)
{
    const int64_t since_ns = begin_ns - polling.end_ns;
    if (polling.began != zct.writer.began || polling.nr_sends != zct.writer.nr_sends ||
        polling.time_ns != zct.writer.time_ns || polling.in_ns < 0)
        return false;
    if (since_ns > WORK_NS)
        polling.begin_ns += since_ns;
    else
        polling.between_ns += since_ns;
    return polling.between_ns <= polling.in_ns;
}

void zct_polling_failed(int64_t begin_ns)
{
    const int64_t now = zct_now_after();
    zct_lock();
    if (!goes_on_locked(begin_ns))
        polling = (struct polling){.begin_ns = begin_ns,
                                   .began = zct.writer.began,
                                   .nr_sends = zct.writer.nr_sends,
                                   .time_ns = zct.writer.time_ns};
    zct_unlock();
    polling.in_ns += now - begin_ns;
    polling.end_ns = now;
}

int64_t zct_polling_began(int64_t begin_ns)
{
    zct_lock();
    const int64_t began_ns = goes_on_locked(begin_ns) ? polling.begin_ns : begin_ns;
    zct_unlock();
    polling.in_ns = -1; /* nothing of it goes on */
    return began_ns;
}

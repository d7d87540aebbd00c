/* SPDX-License-Identifier: BSD-3-Clause */
#include "polling.h"

#include "tracer.h"

/** What this thread has looked for in vain since it last did anything that is recorded. */
struct polling {
    int64_t begin_ns;
    int64_t end_ns; /* of its last call */
    int64_t in_ns;  /* in its calls */
    int64_t between_ns;
    /* The writer's, then: */
    uint64_t began;
    uint64_t nr_sends;
    int64_t time_ns;
};

static __thread struct polling polling __attribute__((tls_model("initial-exec")));

/* Nothing was recorded since, and what the program did meanwhile takes no more than half. */
static bool goes_on_locked(int64_t begin_ns)
{
    return polling.began == zct.writer.began && polling.nr_sends == zct.writer.nr_sends &&
           polling.time_ns == zct.writer.time_ns &&
           polling.between_ns + begin_ns - polling.end_ns <= polling.in_ns;
}

void zct_polling_failed(int64_t begin_ns)
{
    const int64_t now = zct_now_after();
    zct_lock();
    if (goes_on_locked(begin_ns))
        polling.between_ns += begin_ns - polling.end_ns;
    else
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

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <limits.h>
#include <sched.h>
#include <sys/resource.h>
#include "zc_idle.h"

/* Polls take 50 ns over shared memory, 0.5 µs over TCP; looking takes 0.3 µs. */
enum { QUIET_POLLS = 256, CROWDED_POLLS = 32, OFFERS_PER_LOOK = 16 };

/* Has this thread lost the processor while it could have gone on? */
static bool lost_processor(void)
{
    static _Thread_local long seen;
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) != 0) {
        return false;
    }
    const bool lost = usage.ru_nivcsw != seen;
    seen = usage.ru_nivcsw;
    return lost;
}

void MPIDI_ZC_idle_set(MPIDI_ZC_idle_t * idle, bool shared)
{
    idle->crowded = false;
    idle->polls = 0;
    idle->limit = shared ? QUIET_POLLS : UINT_MAX;
}

void MPIDI_ZC_idle_long(MPIDI_ZC_idle_t * idle)
{
    /* Done where it waits, outside the lock that we are in: mpidu_waiting.h. */
    if (MPIR_ThreadInfo.isThreaded) {
        idle->polls = 0;
        return;
    }
    if (idle->crowded) {
        /* If another process takes it, that counts as a loss, too. */
        sched_yield();
    }
    if (idle->limit == UINT_MAX) {
        idle->polls = 0;
    } else if (!idle->crowded || idle->polls >= CROWDED_POLLS + OFFERS_PER_LOOK) {
        idle->crowded = lost_processor();
        idle->limit = idle->crowded ? CROWDED_POLLS : QUIET_POLLS;
        idle->polls = idle->crowded ? CROWDED_POLLS : 0;
    }
}

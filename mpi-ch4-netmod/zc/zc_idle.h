/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_IDLE_H_INCLUDED
#define ZC_IDLE_H_INCLUDED

/* A rank gives way while it waits if ranks outnumber the processors for them (zc_processors.h).
 *
 * A rank that waits for a message polls. The sender may be waiting for this very processor, and
 * gets it only when the kernel takes it away from the polling rank, milliseconds later. So a rank
 * that has polled in vain for a while checks whether that has happened since its last check. If
 * so, it offers the processor (sched_yield(2)) soon and often, until no process takes it any more.
 *
 * A rank offers nothing where each rank can have a processor: other processes would keep it for
 * milliseconds, and the message arrives within microseconds. */

#include <stdbool.h>

typedef struct {
    bool crowded;               /* another process has taken the processor */
    unsigned polls;             /* in vain, one after the other */
    unsigned limit;             /* of polls, before MPIDI_ZC_idle_long() */
} MPIDI_ZC_idle_t;

/* Begins anew. @shared: not all ranks that may run on this one's processors can have one. */
void MPIDI_ZC_idle_set(MPIDI_ZC_idle_t * idle, bool shared);

/* Checks or offers the processor, when the limit is reached. */
void MPIDI_ZC_idle_long(MPIDI_ZC_idle_t * idle);

/* Counts a poll that has found @events. It is called after each poll. */
static inline void MPIDI_ZC_idle_polled(MPIDI_ZC_idle_t * idle, unsigned events)
{
    if (events > 0) {
        idle->polls = 0;
    } else if (__builtin_expect(++idle->polls >= idle->limit, 0)) {
        MPIDI_ZC_idle_long(idle);
    }
}

#endif /* ZC_IDLE_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_IDLE_H_INCLUDED
#define ZC_IDLE_H_INCLUDED

/* Waiting with more ranks than processors for them (zc_processors.h).
 *
 * Who waits for a message polls. The sender may be waiting for this very processor,
 * and gets it only when the kernel takes it away from the poller, milliseconds later.
 * So who has polled in vain for a while looks whether that has happened since it last
 * looked; if so, it offers the processor soon and often, until nobody takes it any more.
 *
 * Nothing is offered where each rank can have a processor: what else runs there
 * would keep it for milliseconds, and the message comes in microseconds. */

#include <stdbool.h>

typedef struct {
    bool crowded;               /* somebody else has wanted it */
    unsigned polls;             /* in vain, one after the other */
    unsigned limit;             /* of them, before something is done */
} MPIDI_ZC_idle_t;

/* @shared: not all ranks that may run on this one's processors can have one. */
void MPIDI_ZC_idle_set(MPIDI_ZC_idle_t * idle, bool shared);

/* The limit is reached. */
void MPIDI_ZC_idle_long(MPIDI_ZC_idle_t * idle);

/* After each poll, which found @events. */
static inline void MPIDI_ZC_idle_polled(MPIDI_ZC_idle_t * idle, unsigned events)
{
    if (events > 0) {
        idle->polls = 0;
    } else if (__builtin_expect(++idle->polls >= idle->limit, 0)) {
        MPIDI_ZC_idle_long(idle);
    }
}

#endif /* ZC_IDLE_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BURST_H_INCLUDED
#define ZC_BURST_H_INCLUDED

/* This file decides whether short messages may wait for those that follow them.
 *
 * A burst is a row of short sends to one process without any progress in between. It ends when the
 * application calls for progress, as it does in MPI_Waitall right after a row of MPI_Isend. If its
 * messages leave together, a burst costs one packet (zc_bundle.h). But an application that computes
 * first would hold messages back that another process may wait for. So bursts are only observed at
 * first. Their messages leave together after several bursts in a row have ended promptly. As soon
 * as one does not, or has no more than two messages (a blocking send is complete at once, and calls
 * for progress if it is not), bursts are only observed again, for longer each time. */

#include <stdbool.h>
#include <stdint.h>

/* A burst that ends within this time ends promptly: a message loses no more than a round trip
 * takes. */
#define MPIDI_ZC_BURST_PROMPT_NS 50000
/* The numbers of bursts that are observed, at least and at most, before messages wait. */
#define MPIDI_ZC_BURST_WATCH_MIN 8
#define MPIDI_ZC_BURST_WATCH_MAX 65536
/* After so many prompt bursts in a row, earlier ones that were not prompt are forgotten. */
#define MPIDI_ZC_BURST_FORGET 256

typedef struct {
    unsigned to_watch;          /* bursts still to be observed; 0: messages wait */
    unsigned watch;             /* how many are observed after the next burst that does not pay */
    unsigned kept;              /* bursts that have paid since the last one that did not */
} MPIDI_ZC_burst_t;

/* @always: messages wait whether earlier bursts have paid or not. */
static inline void MPIDI_ZC_burst_init(MPIDI_ZC_burst_t * burst, bool always)
{
    burst->to_watch = burst->watch = always ? 0 : MPIDI_ZC_BURST_WATCH_MIN;
    burst->kept = 0;
}

static inline bool MPIDI_ZC_burst_may_wait(const MPIDI_ZC_burst_t * burst)
{
    return burst->to_watch == 0;
}

/* Takes note of the end of a burst with @followers messages after its first one. @ns: how long the
 * oldest message has waited. Where none has waited: how long the last one would have, or the
 * average time between two of them if that is longer. */
static inline void MPIDI_ZC_burst_over(MPIDI_ZC_burst_t * burst, unsigned followers, uint64_t ns)
{
    const bool waited = MPIDI_ZC_burst_may_wait(burst);
    const bool pays = followers > 1 && ns <= MPIDI_ZC_BURST_PROMPT_NS;

    if (waited && pays) {
        if (++burst->kept >= MPIDI_ZC_BURST_FORGET && burst->watch > MPIDI_ZC_BURST_WATCH_MIN) {
            burst->watch = MPIDI_ZC_BURST_WATCH_MIN;
        }
    } else if (waited) {
        burst->to_watch = burst->watch;
        burst->watch = burst->watch < MPIDI_ZC_BURST_WATCH_MAX ?
            2 * burst->watch : MPIDI_ZC_BURST_WATCH_MAX;
        burst->kept = 0;
    } else if (pays) {
        burst->to_watch--;
    } else if (burst->to_watch < MPIDI_ZC_BURST_WATCH_MIN) {
        burst->to_watch = MPIDI_ZC_BURST_WATCH_MIN;
    }
}

#endif /* ZC_BURST_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BURST_H_INCLUDED
#define ZC_BURST_H_INCLUDED

/* May short messages wait for those that follow them?
 *
 * A burst is a row of short sends to one process without any progress in between; it is over
 * when the application looks for progress, as it does in MPI_Waitall right after a window of
 * MPI_Isend. Sent together, a burst costs one packet (zc_bundle.h). But an application that
 * computes first would hold back what its neighbour may be waiting for. So bursts are only
 * watched at first, and sent together after some in a row that were over promptly; as
 * soon as one is not, or was none (a blocking send is complete at once, and looks for
 * progress if it is not), they are watched again, longer each time. */

#include <stdbool.h>
#include <stdint.h>

/* What a message may lose: no more than one more round trip would take. */
#define MPIDI_ZC_BURST_PROMPT_NS 50000
/* Bursts to watch, at least and at most. */
#define MPIDI_ZC_BURST_WATCH_MIN 8
#define MPIDI_ZC_BURST_WATCH_MAX 65536
/* So many as hoped for, and the next disappointment is the first one. */
#define MPIDI_ZC_BURST_FORGET 256

typedef struct {
    unsigned to_watch;          /* before the next one is sent together; 0: they are */
    unsigned watch;             /* how many, after the next disappointment */
    unsigned kept;              /* sent together as hoped for since the last one */
} MPIDI_ZC_burst_t;

/* @always: whatever the past tells. */
static inline void MPIDI_ZC_burst_init(MPIDI_ZC_burst_t * burst, bool always)
{
    burst->to_watch = burst->watch = always ? 0 : MPIDI_ZC_BURST_WATCH_MIN;
    burst->kept = 0;
}

static inline bool MPIDI_ZC_burst_may_wait(const MPIDI_ZC_burst_t * burst)
{
    return burst->to_watch == 0;
}

/* A burst is over: @followers messages after its first one. @ns: how long the oldest of those
 * that waited has waited; or, where none did, the last of them would have, and each on average
 * for the next. */
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

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WATCH_H_INCLUDED
#define ZC_WATCH_H_INCLUDED

/* When does the landing thread look next whether the application is away, in a part of the
 * program without MPI? MPI has no event for that, and each look costs the processor that it is
 * made on some 5 µs.
 *
 *             a look finds the application ...
 *   INSIDE    in MPI
 *   PASSED    outside, but it has been inside since the last look: gone, or between two calls?
 *   AWAY      outside, as at the last look: the thread takes over until it is back
 *
 * With a processor to spare, looks come 50 µs apart, and less often while the application is
 * found inside. Where the application has to give its processor up for a look, looks are
 * milliseconds apart, and
 *
 *   PASSED is made sure of once, 100 µs later
 *   the application that has long been INSIDE is asked to ring when it leaves (a timer: 50 µs
 *   later the thread looks), and so it does by itself while something large is on its way
 *   a ring that was for nothing, because it was back already, is held against it: up to
 *   HOLD_MAX looks without
 *
 * which makes about two looks every 2 ms, whatever the application does. */

#include <stdbool.h>

typedef enum {
    MPIDI_ZC_LOOK_INSIDE,
    MPIDI_ZC_LOOK_PASSED,
    MPIDI_ZC_LOOK_AWAY,
} MPIDI_ZC_look_t;

#define MPIDI_ZC_WATCH_MIN_NS 50000L
#define MPIDI_ZC_WATCH_FAR_NS 400000L   /* with a processor to spare: a ring is worth its cost */
#define MPIDI_ZC_WATCH_MAX_NS 4000000L
#define MPIDI_ZC_WATCH_LONG_NS 8000000L
#define MPIDI_ZC_WATCH_SURE_NS 100000L
#define MPIDI_ZC_WATCH_SHARED_NS 4000000L

enum { MPIDI_ZC_WATCH_HOLD_MAX = 4 };

/* What to do until the next look. All zero and MPIDI_ZC_watch_begin() at first. */
typedef struct {
    long sleep_ns;
    bool may_ring;              /* the application, when something large is on its way */
    bool wants_ring;            /* whenever it leaves */

    bool making_sure;
    int vain;                   /* rings for nothing, one after the other */
    int hold;                   /* looks until the next ring is welcome */
} MPIDI_ZC_watch_t;

static inline void MPIDI_ZC_watch_begin(MPIDI_ZC_watch_t * watch)
{
    *watch = (MPIDI_ZC_watch_t) {.sleep_ns = MPIDI_ZC_WATCH_MIN_NS };
}

static inline void MPIDI_ZC_watch_spare(MPIDI_ZC_watch_t * watch, MPIDI_ZC_look_t look, bool rung)
{
    if (look != MPIDI_ZC_LOOK_INSIDE) {
        watch->sleep_ns = MPIDI_ZC_WATCH_MIN_NS;
    } else if (rung || watch->sleep_ns > MPIDI_ZC_WATCH_MAX_NS / 2) {
        watch->sleep_ns = MPIDI_ZC_WATCH_MAX_NS;
    } else {
        watch->sleep_ns *= 2;
    }
    watch->may_ring = watch->sleep_ns >= MPIDI_ZC_WATCH_FAR_NS;
    watch->wants_ring = false;
}

static inline void MPIDI_ZC_watch_shared(MPIDI_ZC_watch_t * watch, MPIDI_ZC_look_t look, bool rung)
{
    const bool sure = watch->making_sure;

    watch->making_sure = false;
    if (look == MPIDI_ZC_LOOK_AWAY) {
        watch->vain = watch->hold = 0;
    } else if (rung) {
        watch->vain += watch->vain < MPIDI_ZC_WATCH_HOLD_MAX;
        watch->hold = watch->vain;
    } else if (watch->hold > 0) {
        watch->hold--;
    }
    watch->sleep_ns = MPIDI_ZC_WATCH_SHARED_NS;
    watch->may_ring = watch->hold == 0;
    watch->wants_ring = false;
    if (look == MPIDI_ZC_LOOK_INSIDE) {
        watch->sleep_ns = MPIDI_ZC_WATCH_LONG_NS;
        watch->wants_ring = watch->hold == 0;
    } else if (look == MPIDI_ZC_LOOK_PASSED && !sure && !rung) {
        watch->sleep_ns = MPIDI_ZC_WATCH_SURE_NS;
        watch->making_sure = true;
        watch->may_ring = false;
    }
}

/* A look has found @look; @rung: the application has asked for it. @shared: it gives its
 * processor up for each look. */
static inline void MPIDI_ZC_watch_saw(MPIDI_ZC_watch_t * watch, MPIDI_ZC_look_t look, bool rung,
                                      bool shared)
{
    if (shared) {
        MPIDI_ZC_watch_shared(watch, look, rung);
    } else {
        MPIDI_ZC_watch_spare(watch, look, rung);
    }
}

#endif /* ZC_WATCH_H_INCLUDED */

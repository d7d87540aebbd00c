/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WATCH_H_INCLUDED
#define ZC_WATCH_H_INCLUDED

/* This file decides when the landing thread looks next whether the application is away, in a part
 * of the program without MPI. MPI has no event for that, and each look costs the processor that it
 * is made on some 5 µs.
 *
 *             a look finds the application ...
 *   INSIDE    in MPI
 *   PASSED    outside, but it has been inside since the last look: it may compute, or be between
 *             two calls
 *   AWAY      outside, as at the last look: the thread takes over until the application is back
 *
 * With a processor to spare, looks come 50 µs apart, and less often while the application is
 * found inside. Where the application has to give its processor up for a look, looks are
 * milliseconds apart, and
 *
 *   - after PASSED there is one more look, 100 µs later;
 *   - an application that has long been INSIDE sets the wake-up timer when it leaves, and 50 µs
 *     later the thread looks; while a large transfer is under way, it sets the timer in any case;
 *   - if the application was back already when the timer expired, the thread accepts no timer for
 *     up to HOLD_MAX looks.
 *
 * That makes fewer than two looks every 4 ms, whatever the application does. */

#include <stdbool.h>

typedef enum {
    MPIDI_ZC_LOOK_INSIDE,
    MPIDI_ZC_LOOK_PASSED,
    MPIDI_ZC_LOOK_AWAY,
} MPIDI_ZC_look_t;

#define MPIDI_ZC_WATCH_MIN_NS 50000L
#define MPIDI_ZC_WATCH_FAR_NS 400000L   /* with a processor to spare: the timer is worth its cost */
#define MPIDI_ZC_WATCH_MAX_NS 4000000L
#define MPIDI_ZC_WATCH_LONG_NS 8000000L
#define MPIDI_ZC_WATCH_SURE_NS 100000L
#define MPIDI_ZC_WATCH_SHARED_NS 4000000L

enum { MPIDI_ZC_WATCH_HOLD_MAX = 4 };

/* What to do until the next look. MPIDI_ZC_watch_begin() sets it at first. */
typedef struct {
    long sleep_ns;
    bool timer_accepted;        /* the application may set the timer when it leaves MPI */
    bool timer_wanted;          /* it shall, whether a large transfer is under way or not */

    bool making_sure;           /* the next look is the second one after PASSED */
    int vain;                   /* timers that have expired in vain, one after the other */
    int hold;                   /* looks until the next timer is accepted */
} MPIDI_ZC_watch_t;

static inline void MPIDI_ZC_watch_begin(MPIDI_ZC_watch_t * watch)
{
    *watch = (MPIDI_ZC_watch_t) {.sleep_ns = MPIDI_ZC_WATCH_MIN_NS };
}

static inline void MPIDI_ZC_watch_spare(MPIDI_ZC_watch_t * watch, MPIDI_ZC_look_t look, bool timer)
{
    if (look != MPIDI_ZC_LOOK_INSIDE) {
        watch->sleep_ns = MPIDI_ZC_WATCH_MIN_NS;
    } else if (timer || watch->sleep_ns > MPIDI_ZC_WATCH_MAX_NS / 2) {
        watch->sleep_ns = MPIDI_ZC_WATCH_MAX_NS;
    } else {
        watch->sleep_ns *= 2;
    }
    watch->timer_accepted = watch->sleep_ns >= MPIDI_ZC_WATCH_FAR_NS;
    watch->timer_wanted = false;
}

static inline void MPIDI_ZC_watch_shared(MPIDI_ZC_watch_t * watch, MPIDI_ZC_look_t look, bool timer)
{
    const bool sure = watch->making_sure;

    watch->making_sure = false;
    if (look == MPIDI_ZC_LOOK_AWAY) {
        watch->vain = watch->hold = 0;
    } else if (timer) {
        watch->vain += watch->vain < MPIDI_ZC_WATCH_HOLD_MAX;
        watch->hold = watch->vain;
    } else if (watch->hold > 0) {
        watch->hold--;
    }
    watch->sleep_ns = MPIDI_ZC_WATCH_SHARED_NS;
    watch->timer_accepted = watch->hold == 0;
    watch->timer_wanted = false;
    if (look == MPIDI_ZC_LOOK_INSIDE) {
        watch->sleep_ns = MPIDI_ZC_WATCH_LONG_NS;
        watch->timer_wanted = watch->hold == 0;
    } else if (look == MPIDI_ZC_LOOK_PASSED && !sure && !timer) {
        watch->sleep_ns = MPIDI_ZC_WATCH_SURE_NS;
        watch->making_sure = true;
        watch->timer_accepted = false;
    }
}

/* Takes note of what a look has found. @timer: the application had set the timer for it. @shared:
 * the application gives its processor up for each look. */
static inline void MPIDI_ZC_watch_saw(MPIDI_ZC_watch_t * watch, MPIDI_ZC_look_t look, bool timer,
                                      bool shared)
{
    if (shared) {
        MPIDI_ZC_watch_shared(watch, look, timer);
    } else {
        MPIDI_ZC_watch_spare(watch, look, timer);
    }
}

#endif /* ZC_WATCH_H_INCLUDED */

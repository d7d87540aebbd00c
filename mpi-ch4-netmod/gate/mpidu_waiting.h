/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDU_WAITING_H_INCLUDED
#define MPIDU_WAITING_H_INCLUDED

/* Threads of one process that wait in MPI at once.
 *
 * Each polls, inside the lock of its VCI, and takes the lock again as soon as it has left
 * it. With more of them than processors, most sleep for that lock or wait for a
 * processor, until the kernel takes it from the one that polls, milliseconds later; and
 * what it has received meanwhile may be theirs. So who has polled in vain for a while is
 * counted, and offers the processor after each round while too many are. Nobody does
 * where there is one for each: the system call takes longer than a poll of shared memory. */

#include <sched.h>

/* Rounds in vain before a thread counts: an answer that comes at once costs nothing. */
#define MPIDU_WAITING_QUIET 4

typedef struct {
    int threads;                /* that wait; atomic */
    int places;                 /* that many have a processor each; atomic, the device's to set */
} __attribute__ ((aligned(64))) MPIDU_waiting_t;

extern MPIDU_waiting_t MPIDU_waiting;

static inline void MPIDU_waiting_places(int places)
{
    __atomic_store_n(&MPIDU_waiting.places, places, __ATOMIC_RELAXED);
}

/* How many of those that wait find no processor. At most 0: each has one, and the others
 * so many more. */
static inline int MPIDU_waiting_surplus(void)
{
    return __atomic_load_n(&MPIDU_waiting.threads, __ATOMIC_RELAXED) -
        __atomic_load_n(&MPIDU_waiting.places, __ATOMIC_RELAXED);
}

/* Outside all locks, after each round of polling in vain. *@rounds: 0 at first, the
 * caller's own. */
static inline void MPIDU_waiting_in_vain(unsigned *rounds)
{
    if (*rounds < MPIDU_WAITING_QUIET) {
        if (++*rounds < MPIDU_WAITING_QUIET) {
            return;
        }
        __atomic_fetch_add(&MPIDU_waiting.threads, 1, __ATOMIC_RELAXED);
    }
    if (MPIDU_waiting_surplus() > 0) {
        sched_yield();
    }
}

/* Afterwards, in any case. */
static inline void MPIDU_waiting_over(unsigned rounds)
{
    if (rounds == MPIDU_WAITING_QUIET) {
        __atomic_fetch_sub(&MPIDU_waiting.threads, 1, __ATOMIC_RELAXED);
    }
}

/* For one who waits in a loop of its own, and is not counted. */
static inline void MPIDU_waiting_offer(void)
{
    if (MPIDU_waiting_surplus() >= 0) {
        sched_yield();
    }
}

#endif /* MPIDU_WAITING_H_INCLUDED */

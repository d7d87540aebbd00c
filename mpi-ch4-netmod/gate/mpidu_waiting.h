/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDU_WAITING_H_INCLUDED
#define MPIDU_WAITING_H_INCLUDED

/* Threads of one process that wait in MPI at once give way to each other.
 *
 * Each polls, inside the lock of its VCI, and takes the lock again as soon as it has released it.
 * If they outnumber the processors, most of them sleep for that lock or wait for a processor,
 * until the kernel takes it from the polling thread, milliseconds later; and that thread may have
 * received messages of theirs meanwhile. So a thread that has polled in vain for a while is
 * counted, and offers the processor after each round while too many are. None does where each has
 * a processor: the system call takes longer than a poll of shared memory. */

#include <sched.h>

/* Rounds in vain before a thread counts: an answer that comes at once costs nothing. */
#define MPIDU_WAITING_QUIET 4

typedef struct {
    int threads;                /* threads that wait; atomic */
    int places;                 /* threads that have a processor each; atomic, set by the device */
} __attribute__ ((aligned(64))) MPIDU_waiting_t;

extern MPIDU_waiting_t MPIDU_waiting;

static inline void MPIDU_waiting_places(int places)
{
    __atomic_store_n(&MPIDU_waiting.places, places, __ATOMIC_RELAXED);
}

/* Returns the number of waiting threads that have no processor. 0 or less: each has one, and there
 * are so many processors more. */
static inline int MPIDU_waiting_surplus(void)
{
    return __atomic_load_n(&MPIDU_waiting.threads, __ATOMIC_RELAXED) -
        __atomic_load_n(&MPIDU_waiting.places, __ATOMIC_RELAXED);
}

/* Is called outside all locks, after each round of polling in vain. *@rounds is the caller's, and 0
 * at first. */
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

/* Is called in any case, when the wait is over. */
static inline void MPIDU_waiting_over(unsigned rounds)
{
    if (rounds == MPIDU_WAITING_QUIET) {
        __atomic_fetch_sub(&MPIDU_waiting.threads, 1, __ATOMIC_RELAXED);
    }
}

/* Is called by a thread that waits in a loop of its own, and is not counted. */
static inline void MPIDU_waiting_offer(void)
{
    if (MPIDU_waiting_surplus() >= 0) {
        sched_yield();
    }
}

#endif /* MPIDU_WAITING_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SPARE_H_INCLUDED
#define ZC_SPARE_H_INCLUDED

/* Is the processor idle that this rank has to spare? Shares (zc_share.h) are those of ranks. They tell
 * nothing of the threads of a rank, such as those of OpenMP, nor of other processes. So the landing thread
 * asks the kernel how long the processors that this process may run on have been idle (/proc/stat):
 *
 *             of these processors each rank has been left
 *           ───── less than 1/16 of the time ─────▶
 *     IDLE                                           BUSY    the thread works as if there were none to
 *           ◀──── at least 1/4 of the time ────────          spare
 *
 * A thread that looks often takes some 1/8 of a processor. So what it leaves does not change the state.
 * Without an answer of the kernel's the state is IDLE. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "zc_share.h"

#define MPIDI_ZC_SPARE_NS 50000000      /* between two questions */
#define MPIDI_ZC_SPARE_FIRST_NS 20000000        /* between the first two: two of the kernel's ticks */
#define MPIDI_ZC_SPARE_COST 1000        /* these are so many times as long as a question takes */

typedef enum {
    MPIDI_ZC_SPARE_IDLE,
    MPIDI_ZC_SPARE_BUSY,
} MPIDI_ZC_spare_state_t;

typedef struct {
    MPIDI_ZC_spare_state_t state;
    uint64_t idle_ns;           /* of all these processors together, at the last answer */
    uint64_t answered_ns;       /* when that was; 0: there was none */
    uint64_t next_ns;           /* when the kernel is asked next */
} MPIDI_ZC_spare_t;

/* Reads one @line of /proc/stat, and adds to *@ticks how long that processor has been idle, if it is of
 * @mask, which has @words words. False: it is none of a processor's, nor of their sum. */
static inline bool MPIDI_ZC_spare_read(const char *line, const uint64_t * mask, int words,
                                       uint64_t * ticks)
{
    unsigned processor;
    unsigned long long idle, iowait;

    if (strncmp(line, "cpu ", 4) == 0) {
        return true;
    }
    if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &processor, &idle, &iowait) != 3) {
        return false;
    }
    if (processor < (unsigned) words * MPIDI_ZC_SHARE_WORD &&
        mask[processor / MPIDI_ZC_SHARE_WORD] >> processor % MPIDI_ZC_SHARE_WORD & 1) {
        *ticks += idle + iowait;
    }
    return true;
}

/* Takes note of an answer at @now_ns, which took the thread @cost_ns of a processor: the processors have been idle for @idle_ns
 * since the start of the system. @processors of them are shared by @ranks ranks. */
static inline void MPIDI_ZC_spare_answered(MPIDI_ZC_spare_t * spare, uint64_t now_ns,
                                           uint64_t cost_ns, uint64_t idle_ns, int processors,
                                           int ranks)
{
    const uint64_t passed = now_ns - spare->answered_ns;
    const uint64_t idle = idle_ns - spare->idle_ns;
    const uint64_t least = spare->answered_ns == 0 ? MPIDI_ZC_SPARE_FIRST_NS : MPIDI_ZC_SPARE_NS;
    const uint64_t pause = cost_ns * MPIDI_ZC_SPARE_COST;

    /* A rank that has moved to another host has another one's account. */
    if (spare->answered_ns != 0 && idle_ns >= spare->idle_ns &&
        idle <= 2 * passed * (uint64_t) processors) {
        if (spare->state == MPIDI_ZC_SPARE_IDLE && 16 * idle < passed * (uint64_t) ranks) {
            spare->state = MPIDI_ZC_SPARE_BUSY;
        } else if (spare->state == MPIDI_ZC_SPARE_BUSY && 4 * idle >= passed * (uint64_t) ranks) {
            spare->state = MPIDI_ZC_SPARE_IDLE;
        }
    }
    spare->idle_ns = idle_ns;
    spare->answered_ns = now_ns;
    spare->next_ns = now_ns + (pause > least ? pause : least);
}

/* Asks the kernel, if it is time to. @ranks: those that share this process's processors, this one among
 * them. The landing thread calls it. */
void MPIDI_ZC_spare_look(int ranks);

/* Returns whether the processor is busy, as it was last found. The landing thread calls it. */
bool MPIDI_ZC_spare_is_busy(void);

/* Forgets what was found, in MPI_Init. */
void MPIDI_ZC_spare_init(void);

#endif /* ZC_SPARE_H_INCLUDED */

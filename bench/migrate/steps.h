/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the instructions that a call executes outside of MPI, by executing it step by step
 * (ptrace): x86-64 only.
 *
 *     steps_open()     once: a child of this process becomes its tracer
 *     STEPS(call)      the call, in steps, from its first instruction to its return
 *     steps_last()     what that has found
 *
 * What counts is libzcm with what it calls of the C library. Apart from it, what reading clocks
 * takes in the kernel's vdso, which varies: with the time since the last tick, for one. A function
 * of MPI runs at full speed until it returns, so that it does not wait for the slow steps of
 * another rank. The program's own instructions do not count.
 */
#ifndef ZC_BENCH_STEPS_H
#define ZC_BENCH_STEPS_H

enum { STEPS_NOTED = 4096 };

/** Of one call. */
struct steps {
    long count;
    long clock;                    /* in the vdso */
    unsigned long at[STEPS_NOTED]; /* of the first that count: their addresses */
};

/** Before MPI_Init(). Ends the process if there can be no tracer: said on stderr. */
void steps_open(void);

/** Of the last call; until the next. */
const struct steps *steps_last(void);

void steps_begin(void);
void steps_end(void);

#define STEPS(call)                                                                                \
    do {                                                                                           \
        steps_begin();                                                                             \
        call;                                                                                      \
        steps_end();                                                                               \
    } while (0)

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a program counts instructions in a guest of `tests/run kmod --icount`.
 *
 * With -icount shift=0 QEMU's virtual clock is the number of instructions
 * executed, in ns, and the time stamp counter is that clock: one tick for one
 * instruction, the kernel's and interrupts' included. So:
 *
 *     unsigned long long begin = __rdtsc();
 *     work();
 *     unsigned long long instructions = __rdtsc() - begin - cost;
 *
 * where cost is the difference of two __rdtsc() with nothing between them. The
 * kernel's clocks are not exact: it takes the counter's frequency from a
 * measurement. TAP: what is said here holds.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { TIMES = 1000 };

typedef unsigned long long count_t;

/* Two instructions a turn. */
static void loop(count_t turns)
{
    __asm__ volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

static count_t least(void (*work)(count_t), count_t argument)
{
    count_t best = ~0ull;
    for (int i = 0; i < TIMES; i++) {
        const count_t begin = __rdtsc();
        if (work)
            work(argument);
        const count_t took = __rdtsc() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static void call(count_t number)
{
    syscall((long)number);
}

static int failed;

static void check(int holds, const char *name)
{
    static int number;
    printf("%sok %d - %s\n", holds ? "" : "not ", ++number, name);
    failed |= !holds;
}

int main(void)
{
    printf("TAP version 14\n1..4\n");
    const count_t cost = least(NULL, 0);
    printf("# nothing: %llu\n", cost);
    check(cost > 0 && cost < 20, "two readings are a few instructions apart");

    const count_t few = least(loop, 1000), many = least(loop, 11000);
    printf("# 1,000 turns: %llu, 11,000 turns: %llu\n", few, many);
    check(many - few == 20000, "10,000 turns more are exactly 20,000 instructions more");

    const count_t system_call = least(call, SYS_getppid);
    printf("# getppid(): %llu\n", system_call);
    check(system_call - cost > 50 && system_call == least(call, SYS_getppid),
          "a system call is counted, the same each time");

    /* Long enough to hold some timer interrupts. */
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC_RAW, &a);
    const count_t begin = __rdtsc();
    loop(50000000);
    const count_t took = __rdtsc() - begin;
    clock_gettime(CLOCK_MONOTONIC_RAW, &b);
    const double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    printf("# 100,000,000 instructions: %llu ticks, %.0f ns\n", took, ns);
    check(took >= 100000000 && took < 102000000, "interrupts add less than 2 %");
    return failed;
}

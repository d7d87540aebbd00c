/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank without messages, whose memory is random and changes: what zc-hold moves in
 * `bench/run hold`.
 *
 *     changing MIB PERCENT    of the memory, in pages at random places, each second
 *
 * It obeys zc-hold's orders (holder/holder.h) at once, as a rank that has nothing to give up, and
 * changes its memory until it is frozen. After each move it prints "stood still MS": the longest
 * time between two turns since it was told to leave. At SIGUSR1 it checks every byte, prints "all
 * right" and ends.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "userfault.h"

enum { PAGE = 4096, TURN_MS = 1 };

static volatile sig_atomic_t over;

static void end(int number)
{
    over = number;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* it does not change when CRIU restores the rank */
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* splitmix64: no two words are likely to be equal. */
static uint64_t drawn(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* The content of a page that was changed @times. */
static void fill(uint64_t *words, uint64_t page, uint32_t times)
{
    uint64_t state = page << 24 | times;
    for (size_t i = 0; i < PAGE / sizeof *words; i++)
        words[i] = drawn(&state);
}

static void check(const unsigned char *memory, const uint32_t *times, uint64_t pages)
{
    uint64_t words[PAGE / sizeof(uint64_t)];
    for (uint64_t page = 0; page < pages; page++) {
        fill(words, page, times[page]);
        if (memcmp(words, memory + page * PAGE, PAGE) != 0) {
            fprintf(stderr, "changing: page %llu has another content\n", (unsigned long long)page);
            exit(1);
        }
    }
    printf("all right\n");
}

/* A line, with its end: two orders may come at once. Returns whether there is one. */
static int read_order(int orders, char *line, size_t size)
{
    struct pollfd ready = {.fd = orders, .events = POLLIN};
    size_t got = 0;
    if (poll(&ready, 1, TURN_MS) <= 0)
        return 0;
    do {
        if (recv(orders, line + got, 1, 0) != 1)
            return 0;
    } while (line[got++] != '\n' && got < size - 1);
    line[got] = '\0';
    return 1;
}

/* One order, if there is one. Returns whether the rank has been bound. */
static int obey(int orders, double *longest)
{
    char line[64], answer[64];
    unsigned incarnation;
    if (!read_order(orders, line, sizeof line))
        return 0;
    if (strcmp(line, "TRACK\n") == 0) {
        if (userfault_pass(orders) != 0)
            exit(1);
        return 0;
    }
    if (strncmp(line, "LEAVE", 5) == 0) {
        *longest = 0;
        snprintf(answer, sizeof answer, "DETACHED\n");
    } else if (sscanf(line, "BIND %u", &incarnation) == 1) {
        snprintf(answer, sizeof answer, "BOUND %u\n", incarnation);
    } else {
        return 0;
    }
    if (send(orders, answer, strlen(answer), MSG_NOSIGNAL) < 0)
        exit(1);
    return answer[0] == 'B';
}

int main(int argc, char **argv)
{
    const char *orders = getenv("MPIR_CVAR_CH4_ZC_DETACH_FD");
    if (argc != 3 || !orders) {
        fprintf(stderr, "usage: zc-hold changing MIB PERCENT\n");
        return 2;
    }
    const uint64_t pages = (uint64_t)atol(argv[1]) * ((1 << 20) / PAGE);
    const double rate = (double)pages * atof(argv[2]) / 100 / 1e3; /* pages in a ms */
    unsigned char *memory = aligned_alloc(PAGE, pages * PAGE);
    uint32_t *times = calloc(pages, sizeof *times);
    uint64_t state = 1;
    double longest = 0, due = 0;
    if (!memory || !times)
        return 1;
    for (uint64_t page = 0; page < pages; page++)
        fill((uint64_t *)(memory + page * PAGE), page, 0);
    signal(SIGUSR1, end);
    printf("ready\n");
    fflush(stdout);
    for (double before = now_ms(); !over;) {
        const int bound = obey(atoi(orders), &longest);
        const double now = now_ms(), gap = now - before;
        before = now;
        longest = gap > longest ? gap : longest;
        if (bound) {
            printf("stood still %.1f\n", longest);
            fflush(stdout);
        }
        /* What it could not do while it stood still is not made up for. */
        for (due += rate * (gap < 100 ? gap : 0); due >= 1; due--) {
            const uint64_t page = drawn(&state) % pages;
            fill((uint64_t *)(memory + page * PAGE), page, ++times[page]);
        }
    }
    check(memory, times, pages);
    return 0;
}

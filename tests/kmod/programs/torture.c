/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * torture - exchanges at random, while everything else happens to the same memory
 *
 *   torture [--seconds N] [--seed S]    20 s, and a seed by the clock
 *
 * Threads exchange overlapping ranges by all ways there are; others write,
 * and do to the memory what torture_disturb.c can think of; a second process
 * reads it. Every five seconds all stop, and every page and every write must be
 * found (ledger.h). Best as root in a machine of its own.
 */
#include "crew.h"
#include "ktap.h"
#include "pagemap.h"
#include "procfs.h"
#include "torture_disturb.h"
#include "torture_pool.h"
#include "uring.h"
#include "zcdev.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    kExchangers = 2,
    kWriters = 2,
    kDisturbers = 2,
    kCrew = kExchangers + kWriters + kDisturbers
};
enum { kRound_ms = 5000, kMostRanges = 8 };

static unsigned int seconds = 20;
static uint64_t seed;

static struct {
    uint64_t calls, pages, causes[ZC_CAUSE_COUNT], huge;
} counts;

static struct uring rings[kExchangers][2];

/* By the ioctl, by io_uring at once, by a worker, by the polling thread. */
static struct zcdev_outcome exchange_somehow(struct crew_member *self, struct zc_range *ranges,
                                             unsigned int count)
{
    struct uring *ring = rings[self->number];

    switch (crew_random(self, 6)) {
    case 0:
        return zcdev_vector_by(ring[0].sqes ? &ring[0] : NULL, 0, ranges, count);
    case 1:
        return zcdev_vector_by(ring[0].sqes ? &ring[0] : NULL, IOSQE_ASYNC, ranges, count);
    case 2:
        return zcdev_vector_by(ring[1].sqes ? &ring[1] : NULL, 0, ranges, count);
    default:
        return zcdev_vector_by(NULL, 0, ranges, count);
    }
}

static void exchange_at_random(struct crew_member *self)
{
    bool in_pool = crew_random(self, 4);
    size_t most = crew_random(self, 3) ? 16 : 700;
    unsigned int count = 1 + crew_random(self, kMostRanges);
    struct zc_range ranges[kMostRanges];
    struct zcdev_outcome outcome;

    for (unsigned int i = 0; i < count; i++) {
        struct pick a, b;

        pick_pair(self, in_pool, most, &a, &b);
        ranges[i] =
            (struct zc_range){(uintptr_t)a.at, (uintptr_t)b.at, a.pages * PAGE_SIZE, 0, 0, 0};
    }
    outcome = exchange_somehow(self, ranges, count);
    for (unsigned int i = 0; i < count && i <= outcome.stopped; i++)
        if (!((ranges[i].a | ranges[i].b) % HUGE_SIZE) && ranges[i].done >= HUGE_SIZE)
            __atomic_fetch_add(&counts.huge, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.pages, outcome.done / PAGE_SIZE, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.causes[outcome.cause], 1, __ATOMIC_RELAXED);
}

static void write_at_random(struct crew_member *self)
{
    struct region *moving = &pool_regions[POOL_MOVING];
    struct region *scratch = &scratch_regions[crew_random(self, SCRATCH_MAPPED)];
    char *page;

    for (int i = 0; i < 30; i++)
        ledger_add(&pool_ledger, pool_page(self), self->number);
    for (int i = 0; i < 30; i++) {
        unsigned int k = crew_random(self, LEDGER_STAMP);

        page = pool_page(self);
        CHECK(ledger_word_fits(&pool_ledger, page, k), "word %u of %p is none of the pool's", k,
              (void *)page);
    }
    pthread_rwlock_rdlock(&moving_lock);
    for (int i = 0; i < 5; i++)
        ledger_add(&pool_ledger, moving->at + crew_random(self, moving->pages) * PAGE_SIZE,
                   self->number);
    pthread_rwlock_unlock(&moving_lock);
    page = scratch->at + crew_random(self, scratch->pages) * PAGE_SIZE;
    ledger_stamp(page, scratch_ledger.first + crew_random(self, scratch_ledger.pages));
}

/* Reads the parent's memory page by page; each must be one of the pool's, whole. */
static void read_parent(void *opened)
{
    static char copy[4096] __attribute__((aligned(4096)));
    struct crew_member self = {.random = seed + 99};
    int parent = getppid();

    while (getppid() == parent) {
        char *page = pool_page(&self);
        struct iovec to = {copy, PAGE_SIZE}, from = {page, PAGE_SIZE};

        if (!__atomic_load_n((int *)opened, __ATOMIC_ACQUIRE)) {
            usleep(1000);
            continue;
        }
        if (process_vm_readv(parent, &to, 1, &from, 1, 0) != (ssize_t)PAGE_SIZE)
            continue;
        CHECK(ledger_page(&pool_ledger, copy), "read from the parent at %p", (void *)page);
        usleep(1000);
    }
}

static void no_more(int signal)
{
    (void)signal;
}

static void open_rings(void)
{
    for (int i = 0; i < kExchangers; i++)
        for (int k = 0; k < 2; k++)
            if (uring_open(&rings[i][k], 4, k ? IORING_SETUP_SQPOLL : 0))
                rings[i][k].sqes = NULL;
}

static void work(struct crew_member *crew, uint64_t until, uint64_t round)
{
    uint64_t end = now_ms() + kRound_ms;

    crew_start(crew, kCrew, seed + 1000 * round);
    while (now_ms() < end && now_ms() < until) {
        usleep(20 * 1000);
        for (int i = 0; i < kExchangers; i++)
            pthread_kill(crew[i].thread, SIGUSR1);
    }
    crew_stop(crew, kCrew);
}

static void report(uint64_t rounds)
{
    ktap_note("seed %llu, %llu rounds: %llu calls, %llu pages (%llu MiB) exchanged, %llu ranges of "
              "huge pages, %llu and %llu writes",
              (unsigned long long)seed, (unsigned long long)rounds,
              (unsigned long long)counts.calls, (unsigned long long)counts.pages,
              (unsigned long long)counts.pages / 256, (unsigned long long)counts.huge,
              (unsigned long long)pool_ledger.added[kExchangers],
              (unsigned long long)pool_ledger.added[kExchangers + 1]);
    for (int i = 0; i < ZC_CAUSE_COUNT; i++)
        if (counts.causes[i])
            ktap_note("%8llu times %s", (unsigned long long)counts.causes[i], zcdev_cause(i));
    disturb_report();
}

static void torture(void)
{
    struct crew_member crew[kCrew] = {{0}};
    struct sigaction action = {.sa_handler = no_more};
    uint64_t until, rounds = 0;
    int reader, status, *opened;

    zcdev_open();
    /* Nothing may be mapped where memory was unmapped a moment ago. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    pool_map();
    opened = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(opened != MAP_FAILED);
    /* Before the pages are there: a child of later would share them. */
    reader = ktap_child(read_parent, opened);
    pool_open();
    __atomic_store_n(opened, 1, __ATOMIC_RELEASE);
    open_rings();
    disturb_open();
    NEED(!sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < kCrew; i++)
        crew[i].turn = i < kExchangers              ? exchange_at_random
                       : i < kExchangers + kWriters ? write_at_random
                                                    : disturb;
    until = now_ms() + 1000ull * seconds;
    while (now_ms() < until) {
        work(crew, until, rounds++);
        pool_audit("at rest");
        scratch_audit("at rest");
        CHECK(waitpid(reader, &status, WNOHANG) == 0, "the reader has ended: %#x", status);
    }
    report(rounds);
    kill(reader, SIGKILL);
    waitpid(reader, &status, 0);
    CHECK(WIFSIGNALED(status), "the reader has ended: %#x", status);
    pool_page_out();
    pool_audit("swapped out and in");
    CHECK(counts.pages > 100, "hardly anything was exchanged");
}

static int usage(const char *name)
{
    fprintf(stderr, "usage: %s [--seconds N] [--seed S]\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct ktap_test test = {
        "torture", "every page and every write is found, whatever else happened to them", torture,
        KTAP_DEVICE, NULL};

    seed = time(NULL);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 0);
        else
            return usage(argv[0]);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("TAP version 13\n1..1\n# seed %llu, %u s\n", (unsigned long long)seed, seconds);
    return ktap_run(&test, 1, 4 * seconds + 600) == 1;
}

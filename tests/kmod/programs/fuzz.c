/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * fuzz - calls of /dev/zc with arguments that no program would pass
 *
 *   fuzz [SEED [ROUNDS]]    a seed by the clock, 3000 rounds
 *
 * Once as root and once as an unprivileged user with root's descriptor, by the
 * ioctl and by io_uring, over memory of every kind. After each call every page
 * must be where the call said, or, if it could not say, somewhere, once. The
 * same seed makes the same calls; what the machine does meanwhile may differ.
 */
#include "crew.h"
#include "fuzz_arena.h"
#include "ktap.h"
#include "procfs.h"
#include "uring.h"
#include "zcdev.h"

#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kRanges = 8, kRoundsPerArena = 250 };

static uint64_t seed, rounds = 3000;
static struct arena arena;
static struct uring rings[2]; /* plain, and with a polling thread */
static uint64_t random_state;
static uint64_t counts[ZC_CAUSE_COUNT], exchanged, odd_calls;

/*
 * Where structures lie: ordinary memory, that ends at an unmapped page, behind
 * which is a read-only one. Structures may straddle the edges.
 */
static char *desk;
enum { kDeskPages = 4, kDeskEdge = 2 };

static uint64_t any(uint64_t below)
{
    return next_random(&random_state) % below;
}

static void lay_desk(void)
{
    desk = mmap(NULL, (kDeskPages + 2) * PAGE_SIZE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(desk != MAP_FAILED);
    desk += PAGE_SIZE;
    memset(desk, 0, kDeskPages * PAGE_SIZE);
    NEED(!mprotect(desk + 3 * PAGE_SIZE, PAGE_SIZE, PROT_READ));
    NEED(!munmap(desk + kDeskEdge * PAGE_SIZE, PAGE_SIZE));
    NEED(!mprotect(desk - PAGE_SIZE, PAGE_SIZE, PROT_NONE));
    NEED(!mprotect(desk + kDeskPages * PAGE_SIZE, PAGE_SIZE, PROT_NONE));
}

static uint64_t wild_number(void)
{
    static const uint64_t far[] = {0,
                                   1,
                                   0xfff,
                                   0x1000,
                                   0x7fffffffe000,
                                   0x7ffffffff000,
                                   0x7fffffffffff,
                                   0x800000000000,
                                   0xffff7ffffffff000,
                                   0xffff800000000000,
                                   0xffff888000000000,
                                   0xffffea0000000000,
                                   0xffffffff81000000,
                                   0xffffffffff600000,
                                   0xfffffffffffff000,
                                   0xffffffffffffffff};
    uint64_t number = far[any(sizeof(far) / sizeof(*far))];

    switch (any(4)) {
    case 0:
        return number;
    case 1:
        return number + any(3) - 1;
    case 2: /* not where this program itself might be */
        return 1ull << (any(2) ? any(12) : 47 + any(17));
    default:
        return (next_random(&random_state) | 1ull << 63) >> any(2); /* never user memory */
    }
}

/* Mostly pages of the arena; around the edges of its plots; hardly ever nonsense. */
static uint64_t any_address(void)
{
    const struct plot *plot = &arena.plots[any(arena.plot_count)];
    uint64_t base = (uintptr_t)arena.area.at;

    switch (any(16)) {
    case 0:
        return wild_number();
    case 1:
        return base + any(ARENA_PAGES * PAGE_SIZE);
    case 2:
        return base + any(ARENA_PAGES + 1) * PAGE_SIZE;
    case 3:
        return base + (plot->first + plot->pages) * PAGE_SIZE - any(3) * PAGE_SIZE;
    case 4:
        return base + plot->first * PAGE_SIZE + any(3) * PAGE_SIZE - PAGE_SIZE;
    case 5:
    case 6:
        return base + any(ARENA_PAGES / HUGE_PAGES) * HUGE_SIZE;
    case 7:
        return base + plot->first * PAGE_SIZE;
    default:
        return base + (plot->first + any(plot->pages)) * PAGE_SIZE;
    }
}

static uint64_t any_length(void)
{
    switch (any(16)) {
    case 0:
        return wild_number();
    case 1:
        return any(ARENA_PAGES * PAGE_SIZE);
    case 2:
        return any(ARENA_PAGES) * PAGE_SIZE;
    case 3:
    case 4:
        return (1 + any(2)) * HUGE_SIZE;
    default:
        return any(20) * PAGE_SIZE;
    }
}

/* A page of one of the plots that can be exchanged: often both are, and of a kind. */
static uint64_t tame_address(bool huge)
{
    const struct plot *plot;
    int tries = 0;

    do
        plot = &arena.plots[any(arena.plot_count)];
    while ((huge ? plot->kind != FIXTURE_HUGE : plot->kind >= FIXTURE_PLAIN_END) && ++tries < 50);
    return (uintptr_t)area_page(&arena.area, plot->first + (huge ? 0 : any(plot->pages)));
}

static void any_ranges(struct zc_range *ranges, unsigned int count)
{
    bool wild = any(4) == 0;

    for (unsigned int i = 0; i < count; i++) {
        bool huge = any(4) == 0;

        ranges[i] = (struct zc_range){.cause = 91, .done = 92};
        ranges[i].a = wild ? any_address() : tame_address(huge);
        ranges[i].b = wild || !any(16) ? any_address() : tame_address(huge);
        ranges[i].length = wild || !any(16) ? any_length()
                           : huge           ? HUGE_SIZE
                                            : (1 + any(6)) * PAGE_SIZE;
    }
}

/* By one of the ways; io_uring's error is positive here as errno. */
static struct uring *any_way(unsigned int *flags)
{
    *flags = 0;
    switch (any(6)) {
    case 0:
        *flags = IOSQE_ASYNC;
        /* fall through */
    case 1:
        return rings[0].sqes ? &rings[0] : NULL;
    case 2:
        return rings[1].sqes ? &rings[1] : NULL;
    default:
        return NULL;
    }
}

static void valid_structures(void)
{
    struct zc_range ranges[kRanges];
    unsigned int count = 1 + any(kRanges), flags;
    struct uring *ring = any_way(&flags);
    struct zcdev_outcome outcome;

    any_ranges(ranges, count);
    outcome = zcdev_vector_by(ring, flags, ranges, count);
    counts[outcome.cause]++;
    exchanged += outcome.done / PAGE_SIZE;
    for (unsigned int i = 0; i < count && i <= outcome.stopped; i++)
        if (ranges[i].done != 92)
            arena_exchanged(&arena, ranges[i].a, ranges[i].b, ranges[i].done);
}

/* Somewhere on the desk, or nowhere. */
static void *any_place(size_t len)
{
    static const size_t edges[] = {0, PAGE_SIZE, kDeskEdge * PAGE_SIZE, 3 * PAGE_SIZE,
                                   kDeskPages * PAGE_SIZE};

    switch (any(8)) {
    case 0:
        return (void *)wild_number();
    case 1:
        return desk + edges[any(5)] - any(len + 1);
    case 2:
        return desk + edges[any(5)];
    case 3:
        return desk + 3 * PAGE_SIZE + any(PAGE_SIZE - len);
    default:
        return desk + any(2 * PAGE_SIZE - len);
    }
}

/* Only where it can be written to. */
static void put(void *place, const void *bytes, size_t len)
{
    char *at = place;

    for (size_t i = 0; i < len; i++)
        if ((at + i >= desk && at + i < desk + kDeskEdge * PAGE_SIZE))
            at[i] = ((const char *)bytes)[i];
}

static uint32_t any_size(uint32_t right)
{
    switch (any(6)) {
    case 0:
        return any(5000);
    case 1:
        return next_random(&random_state);
    case 2:
        return right + any(64);
    case 3:
        return right - any(right + 1);
    default:
        return right;
    }
}

static void odd_structures(void)
{
    const size_t len = sizeof(struct zc_exchange), range_len = kRanges * sizeof(struct zc_range);
    void *place = any_place(len), *ranges_place = any_place(range_len);
    struct zc_range ranges[kRanges];
    struct zc_exchange exchange = {
        .size = any_size(len),
        .range_size = any_size(sizeof(struct zc_range)),
        .count = any(3)   ? any(kRanges + 1)
                 : any(2) ? any(100000)
                          : ~0u,
        .flags = any(4) ? 0 : 1u << any(32),
        .ranges = (uintptr_t)ranges_place,
    };
    struct uring *ring;
    unsigned int flags;

    any_ranges(ranges, kRanges);
    if (!any(4))
        ranges[any(kRanges)].flags = 1u << any(32);
    if (!any(3))
        memset(desk, any(2) ? 0 : 0xff, 2 * PAGE_SIZE);
    put(ranges_place, ranges, sizeof(ranges));
    put(place, &exchange, len);
    ring = any_way(&flags);
    zcdev_call_by(ring, flags, place);
}

static void odd_features(void)
{
    struct zc_features features = {.size = any_size(sizeof(features))};
    void *place = any_place(sizeof(features));

    put(place, &features, sizeof(features));
    ioctl(zcdev_open(), ZC_IOC_FEATURES, place);
}

static void odd_command(void)
{
    unsigned int number =
        any(2) ? next_random(&random_state) : _IOC(any(4), ZC_IOC_MAGIC, any(4), any(1 << 14));
    void *place = any_place(sizeof(struct zc_exchange));
    struct zc_uring_cmd command = {.exchange = (uintptr_t)place,
                                   .reserved = any(2) ? 0 : 1ull << any(64)};

    /* Those of every file (FIOCLEX and the like) change the descriptor, not the device. */
    if (_IOC_TYPE(number) == 'f' || _IOC_TYPE(number) == 'T' || number < 0x10000)
        return;
    if (any(2) || !rings[0].sqes) {
        ioctl(zcdev_open(), number, place);
        return;
    }
    struct io_uring_sqe *sqe = uring_sqe(&rings[0]);

    uring_command(sqe, zcdev_open(), any(3) ? ZC_URING_EXCHANGE : number, &command);
    if (!any(3))
        sqe->flags |= IOSQE_ASYNC;
    if (!any(4))
        sqe->uring_cmd_flags = 1u << any(32);
    uring_wait(&rings[0]);
}

static void one_round(uint64_t round)
{
    char when[64];

    snprintf(when, sizeof(when), "seed %llu, round %llu", (unsigned long long)seed,
             (unsigned long long)round);
    switch (any(16)) {
    case 0:
    case 1:
    case 2:
        odd_structures();
        break;
    case 3:
        odd_command();
        break;
    case 4:
        odd_features();
        break;
    case 5:
        arena_disturb(&arena, &random_state);
        break;
    default:
        valid_structures();
        arena_check(&arena, round % 32, when);
        return;
    }
    odd_calls++;
    arena_follow(&arena, when);
}

static void fuzz(void)
{
    zcdev_open();
    mallopt(M_MMAP_MAX, 0);
    for (int i = 0; i < 2; i++)
        if (uring_open(&rings[i], 4, i ? IORING_SETUP_SQPOLL : 0))
            rings[i].sqes = NULL;
    lay_desk();
    random_state = seed;
    arena_probe();
    for (uint64_t round = 0; round < rounds; round++) {
        if (round % kRoundsPerArena == 0) {
            if (round)
                arena_release(&arena);
            arena_make(&arena, &random_state);
        }
        one_round(round);
    }
    arena_check(&arena, false, "at the end");
    ktap_note("%llu pages exchanged, %llu odd calls", (unsigned long long)exchanged,
              (unsigned long long)odd_calls);
    for (int i = 0; i < ZC_CAUSE_COUNT; i++)
        if (counts[i])
            ktap_note("%8llu times %s", (unsigned long long)counts[i], zcdev_cause(i));
    CHECK(exchanged || rounds < 100, "nothing was exchanged");
}

static void fuzz_as_root(void)
{
    if (!is_root())
        ktap_skip("not root");
    fuzz();
}

static void fuzz_as_user(void)
{
    zcdev_open();
    if (is_root() && (setgroups(0, NULL) || setresgid(1000, 1000, 1000) ||
                      setresuid(1000, 1000, 1000) || prctl(PR_SET_DUMPABLE, 1)))
        FAIL("set-up: errno %d", errno);
    fuzz();
}

int main(int argc, char **argv)
{
    static const struct ktap_test tests[] = {
        {"root", "as root: whatever is asked for, every page is found", fuzz_as_root, KTAP_DEVICE,
         NULL},
        {"user", "as an unprivileged user: whatever is asked for, every page is found",
         fuzz_as_user, KTAP_DEVICE, NULL}};
    int failed = 0;

    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
    if (argc > 2)
        rounds = strtoull(argv[2], NULL, 0);
    if (argc > 3) {
        fprintf(stderr, "usage: %s [SEED [ROUNDS]]\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    file_write("/sys/kernel/mm/ksm/run", "1");
    printf("TAP version 13\n1..2\n# seed %llu, %llu rounds\n", (unsigned long long)seed,
           (unsigned long long)rounds);
    for (int i = 0; i < 2; i++)
        failed |= ktap_run(&tests[i], i + 1, 600 + rounds / 5) == 1;
    return failed;
}

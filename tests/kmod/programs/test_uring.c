/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* The same through io_uring: at once, by a worker, by the polling thread. */
#include "crew.h"
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IORING_SETUP_SQE128
#define IORING_SETUP_SQE128 (1U << 10)
#endif

enum { kPages = 64 };

static struct area a, b;

static void small_areas(size_t pages)
{
    fixture_pair(FIXTURE_SMALL, &a, &b, pages, 3, 300);
}

/* What the ioctl does, each of its ways must do. */
static void all_of_it(enum zcdev_way way)
{
    static const enum fixture refused[] = {FIXTURE_MLOCKED, FIXTURE_SHARED, FIXTURE_READ_ONLY,
                                           FIXTURE_PINNED, FIXTURE_COW_ENDED};
    struct zc_range ranges[50];
    struct zcdev_outcome outcome;

    zcdev_open();
    zcdev_go(way);
    small_areas(1500);
    exchange_all(whole(&a), whole(&b), 1500);
    exchange_all(part(&a, 3), part(&b, 9), 1);

    for (enum fixture kind = FIXTURE_SMALL; kind < FIXTURE_COW_BROKEN; kind++) {
        if (kind == FIXTURE_SWAP_CACHE ||
            (kind == FIXTURE_SWAPPED &&
             (!is_root() || file_number("/proc/meminfo", "SwapTotal") <= 0)))
            continue;
        area_release(&a);
        area_release(&b);
        fixture_area(kind, &a, fixture_name(kind), kPages, 3);
        fixture_area(FIXTURE_MIXED, &b, "mixed pages", kPages, 500);
        exchange_all(whole(&a), whole(&b), kPages);
    }
    for (int i = 0; i < 5; i++) {
        area_reserve(&a, "a", kPages, 9);
        fixture_make(refused[i], &a, 40, 10);
        fixture_make(FIXTURE_SMALL, &a, 0, 40);
        fixture_make(FIXTURE_SMALL, &a, 50, kPages - 50);
        fixture_area(FIXTURE_SMALL, &b, "b", kPages, 0);
        exchange_stops(whole(&a), whole(&b), kPages, fixture_cause(refused[i]), 40);
        exchange_stops(whole(&b), whole(&a), kPages, fixture_cause(refused[i]), 40);
    }
    small_areas(kPages);
    for (unsigned int i = 0; i < 50; i++) {
        ranges[i] = (struct zc_range){.a = (uintptr_t)area_page(&a, i),
                                      .b = (uintptr_t)area_page(&b, 55 - i),
                                      .length = i % 9 * PAGE_SIZE};
        area_exchanged(&a, i, &b, 55 - i, i % 9);
    }
    outcome = zcdev_vector(ranges, 50);
    CHECK(outcome.cause == ZC_CAUSE_NONE, "stopped at %u: %s", outcome.stopped,
          zcdev_cause(outcome.cause));
    area_check_both(&a, &b, "vector");

    struct area huge[2];

    fixture_area(FIXTURE_HUGE, &huge[0], "a", 2 * HUGE_PAGES, 0);
    fixture_area(FIXTURE_HUGE, &huge[1], "b", 2 * HUGE_PAGES, 0);
    exchange_all(whole(&huge[0]), whole(&huge[1]), 2 * HUGE_PAGES);
    exchange_stops(part(&huge[0], 1), part(&huge[1], 1), 9, ZC_CAUSE_PAGE_SIZE, 0);
}

TEST(uring_inline, "io_uring: exchanged, refused and stopped as by the ioctl")
{
    all_of_it(ZCDEV_URING);
}

TEST(uring_async, "io_uring: the same by a worker thread (IOSQE_ASYNC)")
{
    all_of_it(ZCDEV_URING_ASYNC);
}

TEST(uring_sqpoll, "io_uring: the same by the polling thread (SQPOLL)")
{
    all_of_it(ZCDEV_URING_SQPOLL);
}

/* ---- payloads ---- */

static struct uring ring;

static struct zc_exchange exchange_of(struct zc_range *ranges, unsigned int count)
{
    return (struct zc_exchange){.size = sizeof(struct zc_exchange),
                                .range_size = sizeof(*ranges),
                                .count = count,
                                .ranges = (uintptr_t)ranges};
}

static int submit(struct zc_uring_cmd command, unsigned int op, unsigned int sqe_flags)
{
    struct io_uring_sqe *sqe = uring_sqe(&ring);

    uring_command(sqe, zcdev_open(), op, &command);
    sqe->flags |= sqe_flags;
    return uring_wait(&ring);
}

TEST(uring_payload, "io_uring: wrong commands and payloads are refused, nothing is moved")
{
    struct zc_exchange exchange;
    struct zc_range range;

    zcdev_open();
    uring_need(&ring, 4, 0);
    small_areas(kPages);
    range = (struct zc_range){(uintptr_t)a.at, (uintptr_t)b.at, kPages * PAGE_SIZE, 0, 0, 0};
    exchange = exchange_of(&range, 1);
    for (unsigned int flags = 0; flags <= IOSQE_ASYNC; flags += IOSQE_ASYNC) {
        struct zc_uring_cmd good = {.exchange = (uintptr_t)&exchange}, bad;

        for (int bit = 0; bit < 64; bit += 7) {
            bad = good;
            bad.reserved = 1ull << bit;
            CHECK(submit(bad, ZC_URING_EXCHANGE, flags) == -EINVAL, "reserved bit %d", bit);
        }
        for (unsigned int op = 0; op < 300; op = op * 2 + 2) {
            int result = submit(good, op, flags);

            CHECK(result == -ENOTTY || result == -EINVAL || result == -EOPNOTSUPP, "op %u: %d", op,
                  result);
        }
        CHECK(submit(good, ZC_IOC_EXCHANGE, flags) < 0, "the ioctl's number");
        bad = (struct zc_uring_cmd){0};
        CHECK(submit(bad, ZC_URING_EXCHANGE, flags) == -EFAULT, "NULL");
        bad.exchange = 0xffff888000000000;
        CHECK(submit(bad, ZC_URING_EXCHANGE, flags) == -EFAULT, "kernel address");
        exchange.flags = 1;
        CHECK(submit(good, ZC_URING_EXCHANGE, flags) == -EINVAL, "flags");
        exchange.flags = 0;
        exchange.size = 8;
        CHECK(submit(good, ZC_URING_EXCHANGE, flags) == -EINVAL, "size");
        exchange.size = sizeof(exchange);
        exchange.ranges = 64;
        CHECK(submit(good, ZC_URING_EXCHANGE, flags) == -EFAULT, "ranges");
        exchange.ranges = (uintptr_t)&range;
        area_check_both(&a, &b, "refused");
        CHECK(range.done == 0, "range written to");

        CHECK(submit(good, ZC_URING_EXCHANGE, flags) == 0, "a good one");
        CHECK(exchange.done == kPages * PAGE_SIZE && exchange.stopped == 1, "outputs");
        area_exchanged(&a, 0, &b, 0, kPages);
        area_check_both(&a, &b, "exchanged");
        range.done = 0;
    }
}

/* Exchanges all of both areas by one command. */
static void submit_whole(const char *when)
{
    struct zc_range range = {(uintptr_t)a.at, (uintptr_t)b.at, kPages * PAGE_SIZE, 0, 0, 0};
    struct zc_exchange exchange = exchange_of(&range, 1);

    CHECK(submit((struct zc_uring_cmd){.exchange = (uintptr_t)&exchange}, ZC_URING_EXCHANGE, 0) ==
              0,
          "refused");
    area_exchanged(&a, 0, &b, 0, kPages);
    area_check_both(&a, &b, when);
}

TEST(uring_wide, "io_uring: entries of 128 bytes serve as well")
{
    zcdev_open();
    uring_need(&ring, 4, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
    small_areas(kPages);
    submit_whole("exchanged");
}

TEST(uring_iopoll, "io_uring: a ring for polled I/O refuses the device, or serves it")
{
    struct zc_exchange exchange;
    struct zc_range range;
    struct io_uring_sqe *sqe;
    struct zc_uring_cmd command = {.exchange = (uintptr_t)&exchange};
    int result;

    zcdev_open();
    uring_need(&ring, 4, IORING_SETUP_IOPOLL);
    small_areas(kPages);
    range = (struct zc_range){(uintptr_t)a.at, (uintptr_t)b.at, kPages * PAGE_SIZE, 0, 0, 0};
    exchange = exchange_of(&range, 1);
    sqe = uring_sqe(&ring);
    uring_command(sqe, zcdev_open(), ZC_URING_EXCHANGE, &command);
    result = uring_wait(&ring);
    CHECK(result == 0 || result == -EOPNOTSUPP || result == -EINVAL, "%d", result);
    if (!result)
        area_exchanged(&a, 0, &b, 0, kPages);
    area_check_both(&a, &b, "polled");
}

TEST(uring_batch, "io_uring: many commands in one submission, each with its own result")
{
    enum { kCommands = 32 };
    static struct zc_exchange exchanges[kCommands];
    static struct zc_range ranges[kCommands];

    zcdev_open();
    uring_need(&ring, kCommands, 0);
    for (int how = 0; how < 3; how++) {
        unsigned int flags = how == 1 ? IOSQE_ASYNC : 0;
        unsigned int seen = 0;

        small_areas(kPages);
        NEED(!mlock(area_page(&b, 20), PAGE_SIZE));
        for (unsigned int i = 0; i < kCommands; i++) {
            struct zc_uring_cmd command = {.exchange = (uintptr_t)&exchanges[i]};
            struct io_uring_sqe *sqe = uring_sqe(&ring);

            /* Disjoint, for asynchronous ones run in any order. */
            ranges[i] = (struct zc_range){.a = (uintptr_t)area_page(&a, 2 * i),
                                          .b = (uintptr_t)area_page(&b, 2 * i),
                                          .length = 2 * PAGE_SIZE};
            exchanges[i] = exchange_of(&ranges[i], 1);
            uring_command(sqe, zcdev_open(), ZC_URING_EXCHANGE, &command);
            sqe->user_data = i;
            sqe->flags |= flags | (how == 2 && i < kCommands - 1 ? IOSQE_IO_LINK : 0);
        }
        NEED(!uring_submit(&ring));
        for (unsigned int i = 0; i < kCommands; i++) {
            struct io_uring_cqe cqe;
            unsigned int k;
            int want;

            NEED(!uring_next(&ring, &cqe));
            k = cqe.user_data;
            /* In a chain, what comes after one that failed is not begun. */
            want = k == 10 ? -EPERM : how == 2 && k > 10 ? -ECANCELED : 0;
            CHECK(cqe.res == want, "way %d, command %u: %d, not %d", how, k, cqe.res, want);
            seen |= 1u << k;
            area_exchanged(&a, 2 * k, &b, 2 * k, want ? 0 : 2);
        }
        CHECK(seen == ~0u, "not one completion each");
        area_check_both(&a, &b, "batch");
    }
}

static void submit_own(void *arg)
{
    (void)arg;
    area_stamp(&a, 0, kPages);
    area_stamp(&b, 0, kPages);
    submit_whole("in the child");
}

TEST(uring_child, "io_uring: a child that submits to its parent's ring exchanges its own memory")
{
    zcdev_open();
    uring_need(&ring, 4, 0);
    /* The ring itself is not inherited by default. */
    small_areas(kPages);
    ktap_wait(ktap_child(submit_own, NULL));
    area_check_both(&a, &b, "the child's exchange");
}

/*
 * io_uring begins a command again that answers EAGAIN. Ranges exchanged by the
 * first attempt would be exchanged back by the second. So a command that was
 * begun must end, and say truly what it has done: also where it meets pages that
 * are just being written to swap.
 */
static void under_reclaim(enum zcdev_way way)
{
    size_t causes[ZC_CAUSE_COUNT] = {0};
    uint64_t random = 5, begin;

    need_swap();
    zcdev_open();
    zcdev_go(way);
    small_areas(kPages);
    begin = now_ms();
    /* Swap spaces take turns; one in memory (zram) leaves nothing to be waited for. */
    for (int i = 0; i < 40 || (causes[ZC_CAUSE_RACED] < 5 && i < 400); i++) {
        struct zc_range ranges[12];
        struct zcdev_outcome outcome;
        size_t at[12][3];

        for (int r = 0; r < 12; r++) {
            at[r][2] = 1 + next_random(&random) % 8;
            at[r][0] = next_random(&random) % (kPages - 8);
            at[r][1] = next_random(&random) % (kPages - 8);
            ranges[r] = (struct zc_range){.a = (uintptr_t)area_page(&a, at[r][0]),
                                          .b = (uintptr_t)area_page(&b, at[r][1]),
                                          .length = at[r][2] * PAGE_SIZE};
        }
        /* Not each time: a submission that may not wait is stopped by all of them. */
        if (i % 4)
            madvise(area_page(i % 2 ? &a : &b, at[3 + i % 5][i % 2 ? 0 : 1]), 2 * PAGE_SIZE,
                    21 /* MADV_PAGEOUT */);
        outcome = zcdev_vector(ranges, 12);
        causes[outcome.cause]++;
        CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_RACED, "%s",
              zcdev_cause(outcome.cause));
        for (unsigned int r = 0; r < 12 && r <= outcome.stopped; r++)
            area_exchanged(&a, at[r][0], &b, at[r][1], ranges[r].done / PAGE_SIZE);
        area_check_both(&a, &b, zcdev_way_name(way));
        if (now_ms() - begin > 20 * 1000)
            break;
    }
    ktap_note("%zu exchanged, %zu raced", causes[ZC_CAUSE_NONE], causes[ZC_CAUSE_RACED]);
    CHECK(causes[ZC_CAUSE_NONE], "none was exchanged");
}

TEST(reclaimed_ioctl,
     "reclaimed: a vector says truly what it has done when it meets pages being swapped out")
{
    under_reclaim(ZCDEV_IOCTL);
}

TEST(reclaimed_uring, "reclaimed: io_uring does not exchange twice what it begins again")
{
    under_reclaim(ZCDEV_URING);
}

TEST(reclaimed_async, "reclaimed: nor does a worker thread")
{
    under_reclaim(ZCDEV_URING_ASYNC);
}

TEST(reclaimed_sqpoll, "reclaimed: nor does the polling thread")
{
    under_reclaim(ZCDEV_URING_SQPOLL);
}

static void leave_pending(void *arg)
{
    enum { kCommands = 16 };
    static struct zc_exchange exchanges[kCommands];
    static struct zc_range ranges[kCommands];

    (void)arg;
    uring_need(&ring, kCommands, 0);
    small_areas(4000);
    for (unsigned int i = 0; i < kCommands; i++) {
        struct zc_uring_cmd command = {.exchange = (uintptr_t)&exchanges[i]};
        struct io_uring_sqe *sqe = uring_sqe(&ring);

        ranges[i] = (struct zc_range){
            .a = (uintptr_t)a.at, .b = (uintptr_t)b.at, .length = 4000 * PAGE_SIZE};
        exchanges[i] = exchange_of(&ranges[i], 1);
        uring_command(sqe, zcdev_open(), ZC_URING_EXCHANGE, &command);
        sqe->flags |= IOSQE_ASYNC;
    }
    NEED(!uring_submit(&ring));
    _exit(0);
}

TEST(uring_exit, "io_uring: a process that ends with commands under way ends")
{
    zcdev_open();
    for (int i = 0; i < 5; i++)
        ktap_wait(ktap_child(leave_pending, NULL));
}

/* A command that takes long: of very many empty ranges, all in memory that others may see, too. */
enum { kRanges = 1500 * 1000, kBegun = 5000, kCommand = 1, kCancel = 2 };

struct long_command {
    struct zc_exchange exchange;
    struct zc_range ranges[kRanges];
};

static struct long_command *new_long_command(void)
{
    struct long_command *is = mmap(NULL, sizeof(*is), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    NEED(is != MAP_FAILED);
    is->exchange = exchange_of(is->ranges, kRanges);
    is->exchange.cause = ~0u;
    is->ranges[kBegun].cause = ~0u;
    return is;
}

/* Submits it, and waits until it is under way. */
static void begin_long_command(struct long_command *is, unsigned int flags)
{
    struct zc_uring_cmd command = {.exchange = (uintptr_t)&is->exchange};
    struct io_uring_sqe *sqe = uring_sqe(&ring);

    uring_command(sqe, zcdev_open(), ZC_URING_EXCHANGE, &command);
    sqe->user_data = kCommand;
    sqe->flags |= flags;
    NEED(!uring_submit(&ring));
    while (__atomic_load_n(&is->ranges[kBegun].cause, __ATOMIC_ACQUIRE))
        usleep(1000);
}

static void check_interrupted(struct long_command *is, const char *how)
{
    ktap_note("%s: ended after %u of %d ranges", how, is->exchange.stopped, kRanges);
    CHECK(is->exchange.stopped < kRanges, "not before all was done");
    CHECK(is->exchange.cause == ZC_CAUSE_INTERRUPTED, "%s", zcdev_cause(is->exchange.cause));
    munmap(is, sizeof(*is));
}

TEST(uring_cancelled, "io_uring: a command under way that has much to do ends when it is cancelled")
{
    zcdev_open();
    uring_need(&ring, 4, 0);
    for (unsigned int flags = 0; flags <= IOSQE_ASYNC; flags += IOSQE_ASYNC) {
        struct long_command *is = new_long_command();
        struct io_uring_sqe *sqe;
        struct io_uring_cqe cqe;
        int result = 0;

        begin_long_command(is, flags);
        sqe = uring_sqe(&ring);
        sqe->opcode = IORING_OP_ASYNC_CANCEL;
        sqe->fd = -1;
        sqe->addr = kCommand;
        sqe->user_data = kCancel;
        NEED(!uring_submit(&ring));
        for (int i = 0; i < 2; i++) {
            NEED(!uring_next(&ring, &cqe));
            if (cqe.user_data == kCommand)
                result = cqe.res;
        }
        CHECK(result == -EINTR, "%d", result);
        check_interrupted(is, flags ? "worker" : "inline");
    }
}

TEST(uring_closed, "io_uring: a command under way that has much to do ends when the ring is closed")
{
    zcdev_open();
    for (unsigned int flags = 0; flags <= IOSQE_ASYNC; flags += IOSQE_ASYNC) {
        struct long_command *is = new_long_command();

        uring_need(&ring, 4, 0);
        begin_long_command(is, flags);
        uring_close(&ring);
        /* No thread waits for it: it ends by and by. */
        while (__atomic_load_n(&is->exchange.cause, __ATOMIC_ACQUIRE) == ~0u)
            usleep(1000);
        check_interrupted(is, flags ? "worker" : "inline");
    }
}

static void begin_and_exec(void *arg)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    uring_need(&ring, 4, 0);
    begin_long_command(arg, 0);
    /* Any program that ends at once; its list is of no interest. */
    NEED(dup2(nowhere, STDOUT_FILENO) >= 0);
    execl("/proc/self/exe", "exchange_test", "--list", NULL);
    NEED(!"execl");
}

TEST(uring_exec, "io_uring: a command under way that has much to do ends at execve()")
{
    struct long_command *is = new_long_command();

    zcdev_open();
    ktap_wait(ktap_child(begin_and_exec, is));
    check_interrupted(is, "execve");
}

/* What it would have to wait for, it leaves to the caller: to submit the rest. */
TEST(uring_no_wait, "io_uring: submitting never waits: neither for the first page nor for a later one")
{
    static const enum zcdev_way ways[] = {ZCDEV_URING, ZCDEV_URING_SQPOLL};
    struct zcdev_outcome outcome;

    need_swap();
    zcdev_open();
    for (int i = 0; i < 2; i++) {
        zcdev_go(ways[i]);
        area_reserve(&a, "a", kPages, 3);
        fixture_make(FIXTURE_SMALL, &a, 0, kPages / 2);
        fixture_make(FIXTURE_SWAPPED, &a, kPages / 2, kPages / 2);
        fixture_area(FIXTURE_SMALL, &b, "b", kPages, 500);
        outcome = zcdev_pair(a.at, b.at, kPages * PAGE_SIZE);
        area_exchanged(&a, 0, &b, 0, outcome.done / PAGE_SIZE);
        CHECK(outcome.cause == ZC_CAUSE_RACED && outcome.done &&
                  outcome.done <= kPages / 2 * PAGE_SIZE,
              "%s: %s after %llu", zcdev_way_name(ways[i]), zcdev_cause(outcome.cause),
              (unsigned long long)outcome.done);
        area_check_both(&a, &b, "as far as without waiting");
        exchange_all(part(&a, kPages / 2), part(&b, kPages / 2), kPages / 2);
    }
}

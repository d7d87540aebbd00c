/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * The anon_vmas of both sides live as long as a thread may still look at one, and no longer.
 * That one is looked at too late is a race that no test wins: what is seen here is the order
 * of the module's steps, and that all references are given back.
 */
#include "crew.h"
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct area a, b;

/* ---- when the wait for walks begins ---- */

#define TRACING "/sys/kernel/debug/tracing/"

static void need_walks_that_trust_rcu(void)
{
    struct utsname is;
    int major = 0, minor = 0;

    NEED(!uname(&is) && sscanf(is.release, "%d.%d", &major, &minor) == 2);
    if (major > 6 || (major == 6 && minor >= 8))
        ktap_skip("walks of the reverse mapping look again since Linux 6.8");
}

static void watch_no_more(void)
{
    file_write(TRACING "events/zc/enable", "0");
    file_write(TRACING "kprobe_events", "-:zc/step");
    file_write(TRACING "kprobe_events", "-:zc/wait");
    file_write(TRACING "trace_clock", "local");
}

/*
 * A step: an attempt at the pages of two page tables. A wait: both anon_vmas are left to one
 * for RCU that begins then, or after another that has begun before.
 */
static void watch_steps(void)
{
    need_root();
    if (file_write(TRACING "kprobe_events", "p:zc/step zc:zc_table_exchange") ||
        file_write(TRACING "kprobe_events", "p:zc/wait zc:zc_rmap_let_go") ||
        file_write(TRACING "events/zc/filter", "common_pid == %d", getpid()) ||
        file_write(TRACING "trace_clock", "counter") || /* one order, whatever the processor */
        file_write(TRACING "events/zc/enable", "1")) {
        watch_no_more();
        ktap_skip("this kernel's functions cannot be watched (CONFIG_KPROBE_EVENTS)");
    }
}

/* What the module did in one call: s for each step, w for each wait. */
static struct zcdev_outcome watched(size_t pages, char *steps, size_t room)
{
    static char text[64 * 1024];
    struct zcdev_outcome outcome;
    size_t count = 0;

    /* A page in somebody's hands: once more, from the beginning. */
    for (int i = 0; i < 100; i++) {
        int fd = open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

        NEED(fd >= 0);
        close(fd);
        outcome = zcdev_pair(a.at, b.at, pages * PAGE_SIZE);
        if (outcome.cause != ZC_CAUSE_RACED && outcome.cause != ZC_CAUSE_INTERRUPTED)
            break;
    }
    NEED(file_read(TRACING "trace", text, sizeof(text)) > 0);
    for (char *line = strtok(text, "\n"); line && count < room - 1; line = strtok(NULL, "\n")) {
        if (strstr(line, " step: ("))
            steps[count++] = 's';
        else if (strstr(line, " wait: ("))
            steps[count++] = 'w';
    }
    steps[count] = 0;
    return outcome;
}

static bool fits(const char *steps, const char *pattern)
{
    regex_t regex;
    bool matched;

    NEED(!regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB));
    matched = !regexec(&regex, steps, 0, NULL, 0);
    regfree(&regex);
    return matched;
}

static void check_steps(enum fixture second_half, enum zc_cause cause, const char *pattern)
{
    const size_t half = 2 * HUGE_PAGES, pages = 2 * half;
    struct zcdev_outcome outcome;
    char steps[256];

    area_reserve(&a, "a", pages, 0);
    fixture_make(FIXTURE_SMALL, &a, 0, half);
    fixture_make(second_half, &a, half, half);
    fixture_area(FIXTURE_SMALL, &b, "b", pages, 0);
    watch_steps();
    outcome = watched(pages, steps, sizeof(steps));
    watch_no_more();
    CHECK(outcome.cause == cause, "%s", zcdev_cause(outcome.cause));
    CHECK(fits(steps, pattern), "%s, not %s", steps, pattern);
    area_release(&a);
    area_release(&b);
}

TEST(rmap_waits_last, "rmap: walks are waited for once the last page of two mappings has gone")
{
    need_walks_that_trust_rcu();
    zcdev_open();
    check_steps(FIXTURE_SMALL, ZC_CAUSE_NONE, "^s{4,}w$");
    check_steps(FIXTURE_READ_ONLY, ZC_CAUSE_ACCESS, "^s{2,}w$");
    check_steps(FIXTURE_DEV_ZERO, ZC_CAUSE_NONE, "^s{2,}ws{2,}w$");
}

static long waits_seen(void)
{
    static char text[4096];
    const char *at;

    if (file_read(TRACING "kprobe_profile", text, sizeof(text)) <= 0)
        return -1;
    at = strstr(text, "wait ");
    return at ? atol(at + strlen("wait ")) : -1;
}

TEST(rmap_waits_together, "rmap: exchanges that follow one another wait for walks together")
{
    enum { kCalls = 4000 };
    long before, waits;

    need_root();
    need_walks_that_trust_rcu();
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 1, 0, 9);
    if (file_write(TRACING "kprobe_events", "p:zc/wait queue_rcu_work") ||
        file_write(TRACING "events/zc/enable", "1")) {
        watch_no_more();
        ktap_skip("this kernel's functions cannot be watched (CONFIG_KPROBE_EVENTS)");
    }
    before = waits_seen();
    for (int i = 0; i < kCalls; i++)
        zcdev_pair(a.at, b.at, PAGE_SIZE);
    waits = waits_seen() - before;
    watch_no_more();
    ktap_note("%ld waits for %d exchanges", waits, kCalls);
    CHECK(waits > 0, "none seen");
    CHECK(waits < kCalls / 4, "%ld waits for %d exchanges", waits, kCalls);
}

/* ---- what is held is given back ---- */

static long anon_vmas(void)
{
    return file_number("/proc/slabinfo", "anon_vma");
}

TEST(rmap_gives_back, "rmap: the anon_vmas of memory exchanged in several steps go with it")
{
    enum { kRounds = 3000, kPages = 8, kSlack = 1000 }; /* free ones at hand count as in use */
    static const enum fixture halves[] = {FIXTURE_SMALL, FIXTURE_READ_ONLY, FIXTURE_DEV_ZERO};
    long before, after = 0;

    need_root();
    zcdev_open();
    /* Of two page tables on either side, so two steps at least. */
    area_reserve(&a, "a", kPages, HUGE_PAGES - kPages / 4);
    area_reserve(&b, "b", kPages, HUGE_PAGES - kPages / 4);
    before = anon_vmas();
    if (before < 0)
        ktap_skip("no count of anon_vmas in /proc/slabinfo");
    for (int i = 0; i < kRounds; i++) {
        struct zcdev_outcome outcome;

        fixture_make(FIXTURE_SMALL, &a, 0, kPages / 2);
        fixture_make(halves[i % 3], &a, kPages / 2, kPages / 2);
        fixture_make(FIXTURE_SMALL, &b, 0, kPages);
        outcome = exchange(whole(&a), whole(&b), kPages);
        CHECK(outcome.done >= kPages / 2 * PAGE_SIZE, "%s", zcdev_cause(outcome.cause));
        NEED(!munmap(a.at, kPages * PAGE_SIZE) && !munmap(b.at, kPages * PAGE_SIZE));
    }
    for (int i = 0; i < 500; i++) {
        after = anon_vmas();
        if (after < before + kSlack)
            break;
        usleep(20 * 1000);
    }
    ktap_note("%ld anon_vmas before, %ld after %d exchanges", before, after, kRounds);
    CHECK(after < before + kSlack, "%ld anon_vmas before, %ld after", before, after);
}

/* ---- two that want the same ---- */

/* Each has a mapping of its own, and its part of one that they share. */
static struct area own[2];
static size_t raced[2];

static void exchange_with_shared(struct crew_member *self)
{
    const unsigned int n = self->number;
    struct zcdev_outcome outcome =
        zcdev_pair(own[n].at, area_page(&b, n * HUGE_PAGES), HUGE_PAGES * PAGE_SIZE);

    area_exchanged(&own[n], 0, &b, n * HUGE_PAGES, outcome.done / PAGE_SIZE);
    raced[n] += outcome.cause == ZC_CAUSE_RACED;
    CHECK(outcome.cause == ZC_CAUSE_RACED || outcome.cause == ZC_CAUSE_NONE, "%s",
          zcdev_cause(outcome.cause));
}

TEST(rmap_shared,
     "rmap: threads that exchange with one mapping wait for one another, and do not give up")
{
    struct crew_member crew[2] = {{.name = "one", .turn = exchange_with_shared},
                                  {.name = "the other", .turn = exchange_with_shared}};
    uint64_t calls;

    zcdev_open();
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        ktap_skip("one processor");
    for (int i = 0; i < 2; i++)
        fixture_area(FIXTURE_SMALL, &own[i], i ? "the other's own" : "one's own", HUGE_PAGES, 0);
    fixture_area(FIXTURE_SMALL, &b, "b", 2 * HUGE_PAGES, 0);
    crew_work(crew, 2, 3000);
    calls = crew[0].turns + crew[1].turns;
    ktap_note("%zu of %llu exchanges gave up", raced[0] + raced[1], (unsigned long long)calls);
    /* A page may be in somebody else's hands, now and then. */
    CHECK(20 * (raced[0] + raced[1]) <= calls, "%zu of %llu gave up", raced[0] + raced[1],
          (unsigned long long)calls);
    for (int i = 0; i < 2; i++)
        area_check(&own[i], "exchanged");
    area_check(&b, "exchanged");
}

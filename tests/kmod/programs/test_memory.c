/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* Memory runs out in the middle of a call. */
#include "crew.h"
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct area a, b;

static void check_both(const char *when)
{
    area_check(&a, when);
    area_check(&b, when);
}

/* ---- allocations that fail on request (CONFIG_FAULT_INJECTION: the debug kernel) ---- */

static int fail_nth = -1;

static void need_failures(void)
{
    static const char *const settings[][2] = {
        {"failslab/ignore-gfp-wait", "0"},
        {"failslab/verbose", "0"},
        {"fail_page_alloc/ignore-gfp-wait", "0"},
        {"fail_page_alloc/verbose", "0"},
        {"fail_page_alloc/ignore-gfp-highmem", "0"},
        {"fail_page_alloc/min-order", "0"},
        {"fail_usercopy/verbose", "0"},
    };
    char path[128];

    need_root();
    fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
    if (fail_nth < 0)
        ktap_skip("this kernel does not make allocations fail: fail-nth: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        snprintf(path, sizeof(path), "/sys/kernel/debug/%s", settings[i][0]);
        if (file_write(path, "%s", settings[i][1]))
            ktap_skip("this kernel does not make allocations fail: no %s", settings[i][0]);
    }
}

/* Lets the @nth thing that can fail in this thread do so. */
static void set_failure(unsigned int nth)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%u", nth), turns = 0;

    /* What was to fail before may be this. */
    while (pwrite(fail_nth, text, len, 0) != len)
        NEED(turns++ < 3);
}

/* Whether it came to that; reading the answer can be what fails. */
static bool has_failed(void)
{
    char text[16] = "";

    return pread(fail_nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
}

static void whichever_fails(enum fixture kind_a, enum fixture kind_b, size_t pages, size_t offset_b)
{
    unsigned int nth, failures = 0, refused = 0, unread = 0;
    bool failed = true;

    for (nth = 1; failed; nth += nth < 40 ? 1 : 1 + nth / 10) {
        struct zc_range range = {.length = pages * PAGE_SIZE};
        struct zc_exchange exchange = {.size = sizeof(exchange),
                                       .range_size = sizeof(range),
                                       .count = 1,
                                       .ranges = (uintptr_t)&range};
        int error;

        fixture_area(kind_a, &a, "a", pages, 0);
        fixture_area(kind_b, &b, "b", pages, offset_b);
        range.a = (uintptr_t)a.at;
        range.b = (uintptr_t)b.at;
        set_failure(nth);
        error = zcdev_call_by(NULL, 0, &exchange);
        failed = has_failed();
        set_failure(0);

        CHECK(exchange.done % PAGE_SIZE == 0 && exchange.done <= range.length, "done %llu",
              (unsigned long long)exchange.done);
        CHECK(error || exchange.done == range.length, "failure %u: success after %llu", nth,
              (unsigned long long)exchange.done);
        area_exchanged(&a, 0, &b, 0, exchange.done / PAGE_SIZE);
        if (error == EFAULT && exchange.cause == ZC_CAUSE_NONE) {
            CHECK(!exchange.done, "failure %u: EFAULT after %llu", nth,
                  (unsigned long long)exchange.done);
            unread++;
        } else if (error) {
            CHECK(exchange.cause == ZC_CAUSE_NO_MEMORY && error == ENOMEM,
                  "failure %u: errno %d, cause %u", nth, error, exchange.cause);
            refused++;
        }
        CHECK(failed || !error, "errno %d, though nothing has failed", error);
        failures += failed;
        check_both("after an allocation has failed");
        /* Nothing is left locked, or half done. */
        if (exchange.done < range.length)
            exchange_all(part(&a, exchange.done / PAGE_SIZE), part(&b, exchange.done / PAGE_SIZE),
                         pages - exchange.done / PAGE_SIZE);
        exchange_all(whole(&a), whole(&b), pages);
        area_release(&a);
        area_release(&b);
        fixture_end();
    }
    ktap_note("%s and %s: %u failures, %u calls ended by one, %u structures not read",
              fixture_name(kind_a), fixture_name(kind_b), failures, refused, unread);
    CHECK(failures, "nothing has failed");
}

TEST(failing_small, "memory: whatever fails in an exchange of small pages, none is lost")
{
    need_failures();
    zcdev_open();
    whichever_fails(FIXTURE_SMALL, FIXTURE_SMALL, 90, 77);
}

TEST(failing_swapped, "memory: whatever fails when swapped pages are brought in, none is lost")
{
    need_failures();
    need_swap();
    zcdev_open();
    whichever_fails(FIXTURE_SWAPPED, FIXTURE_MIXED, 40, 77);
}

TEST(failing_untouched, "memory: whatever fails when page tables are made, no page is lost")
{
    need_failures();
    zcdev_open();
    whichever_fails(FIXTURE_SMALL, FIXTURE_UNTOUCHED, 90, 77);
    whichever_fails(FIXTURE_UNTOUCHED, FIXTURE_ZERO_PAGE, 90, 77);
}

TEST(failing_huge, "memory: whatever fails in an exchange of huge pages, none is lost")
{
    need_failures();
    zcdev_open();
    whichever_fails(FIXTURE_HUGE, FIXTURE_HUGE, 2 * HUGE_PAGES, 0);
}

/* ---- a memory cgroup at its limit ---- */

static const char group[] = "/sys/fs/cgroup/zc-memory";

enum { kSwapped = 2000, kAllowed = 500 };

static const char *in_group(const char *file)
{
    static char path[80];

    snprintf(path, sizeof(path), "%s/%s", group, file);
    return path;
}

static void open_group(void)
{
    need_root();
    need_swap();
    file_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    if (mkdir(group, 0755) && errno != EEXIST)
        ktap_skip("no cgroup2: %s", strerror(errno));
    if (file_number(in_group("memory.current"), NULL) < 0) {
        rmdir(group);
        ktap_skip("no memory cgroup");
    }
    /* A test before may have failed. */
    NEED(!file_write(in_group("memory.max"), "max"));
    NEED(!file_write(in_group("memory.swap.max"), "max"));
}

static void close_group(void)
{
    for (int i = 0; i < 200 && rmdir(group) && errno == EBUSY; i++)
        usleep(20 * 1000);
    CHECK(access(group, F_OK), "the group is still in use: errno %d", errno);
}

/* Two swapped areas, of which the group may have but a part in memory. */
static void swapped_beyond_limit(void)
{
    NEED(!file_write(in_group("cgroup.procs"), "%d", getpid()));
    fixture_area(FIXTURE_SWAPPED, &a, "a", kSwapped, 0);
    fixture_area(FIXTURE_SWAPPED, &b, "b", kSwapped, 77);
    /* What comes in cannot go out again. */
    NEED(!file_write(in_group("memory.swap.max"), "0"));
    NEED(!file_write(in_group("memory.max"), "%ld",
                     file_number(in_group("memory.current"), NULL) + kAllowed * (long)PAGE_SIZE));
}

static void reach_limit(void *arg)
{
    struct zcdev_outcome outcome;
    int limit;

    (void)arg;
    /* Nobody can be killed to make room: the allocation has to fail. */
    NEED(!file_write("/proc/self/oom_score_adj", "-1000"));
    swapped_beyond_limit();
    /* Nor could a file be opened, or a message be written. */
    NEED((limit = open(in_group("memory.max"), O_WRONLY | O_CLOEXEC)) >= 0);
    outcome = exchange(whole(&a), whole(&b), kSwapped);
    NEED(write(limit, "max", 3) == 3);
    ktap_note("after %llu of %d pages: %s", (unsigned long long)outcome.done / PAGE_SIZE, kSwapped,
              zcdev_cause(outcome.cause));
    CHECK(outcome.cause == ZC_CAUSE_NO_MEMORY && outcome.error == ENOMEM, "errno %d, cause %s",
          outcome.error, zcdev_cause(outcome.cause));
    CHECK(outcome.done && outcome.done < kSwapped * PAGE_SIZE, "stopped after %llu bytes",
          (unsigned long long)outcome.done);
    NEED(!file_write(in_group("memory.swap.max"), "max"));
    check_both("out of memory");
    exchange_all(part(&a, outcome.done / PAGE_SIZE), part(&b, outcome.done / PAGE_SIZE),
                 kSwapped - outcome.done / PAGE_SIZE);
}

TEST(group_limit,
     "memory: where a cgroup's limit is reached, NO_MEMORY after a prefix; no page lost")
{
    zcdev_open();
    open_group();
    ktap_wait(ktap_child(reach_limit, NULL));
    close_group();
}

static void exchange_for_ever(struct crew_member *self)
{
    (void)self;
    zcdev_pair(a.at, b.at, kSwapped * PAGE_SIZE);
}

static void be_killed(void *arg)
{
    static struct crew_member crew[] = {{"exchanger", exchange_for_ever, .arg = NULL},
                                        {"exchanger", exchange_for_ever, .arg = NULL}};

    (void)arg;
    swapped_beyond_limit();
    crew_start(crew, 2, 1);
    sleep(100);
}

TEST(group_kill, "memory: a process killed for want of memory in the middle of exchanges ends")
{
    int pid, status;

    zcdev_open();
    open_group();
    pid = ktap_child(be_killed, NULL);
    CHECK(waitpid(pid, &status, 0) == pid, "errno %d", errno);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %#x", status);
    CHECK(file_number(in_group("memory.events"), "oom_kill") > 0, "not for want of memory");
    close_group();
}

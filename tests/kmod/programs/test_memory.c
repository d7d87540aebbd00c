/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* Memory runs out in the middle of a call. */
#include "crew.h"
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct area a, b;

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

/* ---- calls, in which the @nth thing fails ---- */

enum { kMostRanges = 8 };

struct attempt {
    struct zc_exchange exchange;
    int error;
    bool failed;
};

static struct attempt attempt_of(struct zc_range *ranges, unsigned int count)
{
    return (struct attempt){.exchange = {.size = sizeof(struct zc_exchange),
                                         .range_size = sizeof(*ranges),
                                         .count = count,
                                         .ranges = (uintptr_t)ranges}};
}

static struct attempt by_ioctl(struct zc_range *ranges, unsigned int count, unsigned int nth)
{
    struct attempt is = attempt_of(ranges, count);

    set_failure(nth);
    is.error = zcdev_call_by(NULL, 0, &is.exchange);
    is.failed = has_failed();
    set_failure(0);
    return is;
}

static struct uring ring;

/* How often this thread has gone to sleep. */
static long sleeps(void)
{
    struct rusage usage;

    NEED(!getrusage(RUSAGE_THREAD, &usage));
    return usage.ru_nvcsw;
}

static long slept; /* in submissions, up to now */

/*
 * Submission allocates, too. What it has not taken for want of memory is still queued, and
 * submitted again without a failure.
 */
static struct attempt by_uring(struct zc_range *ranges, unsigned int count, unsigned int nth)
{
    struct attempt is = attempt_of(ranges, count);
    struct zc_uring_cmd command = {.exchange = (uintptr_t)&is.exchange};
    struct io_uring_cqe cqe;
    const long before = sleeps();

    uring_command(uring_sqe(&ring), zcdev_open(), ZC_URING_EXCHANGE, &command);
    set_failure(nth);
    uring_submit(&ring);
    is.failed = has_failed();
    set_failure(0);
    slept += sleeps() - before;
    if (__atomic_load_n(ring.sq_head, __ATOMIC_ACQUIRE) != *ring.sq_tail)
        NEED(syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0) == 1);
    NEED(!uring_next(&ring, &cqe));
    is.error = -cqe.res;
    return is;
}

/* What may be answered: that, or done. @huge: without a huge page a fault brings small ones. */
static void check_answer(const struct attempt *is, unsigned int nth, bool huge)
{
    const uint32_t cause = is->exchange.cause;

    CHECK(is->failed || !is->error || huge, "errno %d, though nothing has failed", is->error);
    if (!is->error || (is->error == ENOMEM && cause == ZC_CAUSE_NO_MEMORY) ||
        (is->error == ERANGE && cause == ZC_CAUSE_PAGE_SIZE && huge))
        return;
    /* Structures not read; a command of io_uring that nothing could be allocated for. */
    CHECK((is->error == EFAULT || is->error == ENOMEM || is->error == ECANCELED ||
           is->error == EAGAIN) &&
              cause == ZC_CAUSE_NONE && !is->exchange.done,
          "failure %u: errno %d, cause %u", nth, is->error, cause);
}

/* One attempt at memory of its own. Return: whether anything was made to fail. */
static bool one_fails(struct attempt (*attempt)(struct zc_range *, unsigned int, unsigned int),
                      unsigned int nth, size_t pages, unsigned int count, bool huge,
                      unsigned int *refused)
{
    struct zc_range ranges[kMostRanges];
    const size_t share = pages / count;
    struct attempt is;
    uint64_t sum = 0;

    for (unsigned int i = 0; i < count; i++)
        ranges[i] = (struct zc_range){.a = (uintptr_t)area_page(&a, i * share),
                                      .b = (uintptr_t)area_page(&b, i * share),
                                      .length = share * PAGE_SIZE};
    is = attempt(ranges, count, nth);
    check_answer(&is, nth, huge);
    for (unsigned int i = 0; i < count; i++) {
        area_exchanged(&a, i * share, &b, i * share, ranges[i].done / PAGE_SIZE);
        sum += ranges[i].done;
    }
    CHECK(sum == is.exchange.done && (is.error || sum == pages * PAGE_SIZE),
          "failure %u: errno %d after %llu, its ranges' %llu", nth, is.error,
          (unsigned long long)is.exchange.done, (unsigned long long)sum);
    area_check_both(&a, &b, "after an allocation has failed");
    *refused += is.error != 0;
    /* Nothing is left locked, or half done, and reclaim finds every page. */
    for (unsigned int i = 0; i < count; i++) {
        const size_t done = ranges[i].done / PAGE_SIZE;
        const struct part rest_a = part(&a, i * share + done), rest_b = part(&b, i * share + done);

        if (!huge)
            exchange_all(rest_a, rest_b, share - done);
        else
            exchange(rest_a, rest_b, share - done);
    }
    area_check_both(&a, &b, "the rest");
    if (file_number("/proc/meminfo", "SwapTotal") > 0) {
        CHECK(!page_out(a.at, pages) && !page_out(b.at, pages), "not swapped out");
        area_check_both(&a, &b, "swapped out and in");
    }
    return is.failed;
}

static void whichever_fails_of(struct attempt (*attempt)(struct zc_range *, unsigned int,
                                                         unsigned int),
                               enum fixture kind_a, enum fixture kind_b, size_t pages,
                               size_t offset_b, unsigned int count)
{
    const bool huge = kind_b == FIXTURE_HUGE_UNTOUCHED;
    unsigned int nth, failures = 0, refused = 0;
    bool failed = true;

    for (nth = 1; failed; nth += nth < 40 ? 1 : 1 + nth / 10) {
        fixture_area(kind_a, &a, "a", pages, 0);
        fixture_area(kind_b, &b, "b", pages, offset_b);
        failed = one_fails(attempt, nth, pages, count, huge, &refused);
        failures += failed;
        area_release(&a);
        area_release(&b);
        fixture_end();
    }
    ktap_note("%s and %s: %u failures, %u calls ended by one", fixture_name(kind_a),
              fixture_name(kind_b), failures, refused);
    CHECK(failures, "nothing has failed");
}

static void whichever_fails(enum fixture kind_a, enum fixture kind_b, size_t pages, size_t offset_b)
{
    whichever_fails_of(by_ioctl, kind_a, kind_b, pages, offset_b, 1);
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
    whichever_fails(FIXTURE_HUGE, FIXTURE_HUGE_UNTOUCHED, HUGE_PAGES, 0);
}

TEST(failing_vector, "memory: whatever fails within a vector of ranges, it says what it has done")
{
    need_failures();
    zcdev_open();
    whichever_fails_of(by_ioctl, FIXTURE_SMALL, FIXTURE_SMALL, 160, 77, 4);
    whichever_fails_of(by_ioctl, FIXTURE_SMALL, FIXTURE_UNTOUCHED, 64, 500, 4);
}

TEST(failing_uring, "memory: whatever fails in a command of io_uring, none is lost")
{
    need_failures();
    zcdev_open();
    uring_need(&ring, 4, 0);
    whichever_fails_of(by_uring, FIXTURE_SMALL, FIXTURE_SMALL, 90, 77, 1);
    whichever_fails_of(by_uring, FIXTURE_SMALL, FIXTURE_UNTOUCHED, 64, 500, 4);
}

/* As before the first exchange: what was put off until RCU has waited is done. */
static void wait_for_rcu(void)
{
    for (int i = 0; i < 2; i++) {
        syscall(SYS_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0, 0);
        usleep(20 * 1000);
    }
}

TEST(failing_no_wait, "memory: whatever fails in a command of io_uring, submitting does not sleep")
{
    enum { kRounds = 10, kPages = 90 };
    unsigned int refused = 0, failures = 0;

    need_failures();
    zcdev_open();
    uring_need(&ring, 4, 0);
    for (unsigned int nth = 1; nth <= kRounds; nth++) {
        fixture_pair(FIXTURE_SMALL, &a, &b, kPages, 0, 77);
        wait_for_rcu();
        slept = 0;
        failures += one_fails(by_uring, nth, kPages, 1, false, &refused);
        CHECK(!slept, "%ld times, when number %u has failed", slept, nth);
        area_release(&a);
        area_release(&b);
    }
    ktap_note("%u failures, %u calls ended by one", failures, refused);
    CHECK(failures, "nothing has failed");
}

/* Those that are longer than the module knows are copied by the kernel's own means. */
TEST(failing_structures, "memory: where a structure cannot be copied, EFAULT, and nothing is done")
{
    struct {
        struct zc_exchange exchange;
        uint64_t more;
    } longer = {.exchange = {.size = sizeof(longer), .range_size = sizeof(struct zc_range)}};
    struct zc_features features = {.size = sizeof(features)};
    int error, fd = zcdev_open();
    bool failed;

    need_failures();
    set_failure(1);
    error = ioctl(fd, ZC_IOC_EXCHANGE, &longer) ? errno : 0;
    failed = has_failed();
    set_failure(0);
    CHECK(failed && error == EFAULT, "exchange: errno %d", error);
    set_failure(1);
    error = ioctl(fd, ZC_IOC_FEATURES, &features) ? errno : 0;
    failed = has_failed();
    set_failure(0);
    CHECK(failed && error == EFAULT, "features: errno %d", error);
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
    fixture_pair(FIXTURE_SWAPPED, &a, &b, kSwapped, 0, 77);
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
    /* No process can be killed to make room: the allocation has to fail. */
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
    area_check_both(&a, &b, "out of memory");
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

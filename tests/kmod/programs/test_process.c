/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* Threads, signals, children, and processes that end in the middle of it. */
#include "crew.h"
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "ledger.h"
#include "procfs.h"
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPages = 64 };

static struct area a, b;

/* ---- whose memory ---- */

static void exchange_own(void *arg)
{
    (void)arg;
    area_stamp(&a, 0, kPages);
    area_stamp(&b, 0, kPages);
    exchange_all(part(&a, 3), part(&b, 8), 50);
}

TEST(inherited_device, "processes: a child exchanges its own memory by an inherited descriptor")
{
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, kPages, 0, 9);
    for (int i = 0; i < 3; i++) {
        ktap_wait(ktap_child(exchange_own, NULL));
        area_check_both(&a, &b, "the child's exchange");
        exchange_own(NULL);
    }
}

static void exchange_as_user(void *arg)
{
    (void)arg;
    NEED(!setgroups(0, NULL) && !setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
    /* Its own /proc/self is its own again. */
    NEED(!prctl(PR_SET_DUMPABLE, 1));
    fixture_area(FIXTURE_SMALL, &a, "a", kPages, 0);
    fixture_area(FIXTURE_UNTOUCHED, &b, "b", kPages, 9);
    exchange_all(whole(&a), whole(&b), kPages);
    exchange_all(part(&b, 3), part(&a, 8), 50);
}

TEST(unprivileged,
     "processes: an unprivileged one that was given a descriptor exchanges its memory")
{
    need_root();
    zcdev_open();
    ktap_wait(ktap_child(exchange_as_user, NULL));
}

static void open_as_stranger(void *arg)
{
    (void)arg;
    NEED(!setgroups(0, NULL) && !setresgid(4711, 4711, 4711) && !setresuid(1001, 1001, 1001));
    CHECK(open("/dev/zc", O_RDWR | O_CLOEXEC) < 0 && errno == EACCES, "errno %d", errno);
    CHECK(open("/dev/zc", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES, "errno %d", errno);
}

TEST(strangers, "processes: one that is neither root nor in its group cannot open the device")
{
    need_root();
    zcdev_open();
    ktap_wait(ktap_child(open_as_stranger, NULL));
}

/* ---- signals ---- */

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
    (void)signal;
    signals++;
}

static void signals_every(unsigned int us)
{
    struct sigaction action = {.sa_handler = count_signal};
    struct itimerval timer = {{0, us}, {0, us}};

    NEED(!sigaction(SIGALRM, &action, NULL));
    NEED(!setitimer(ITIMER_REAL, &timer, NULL));
}

/* However often: every call goes on by at least one step, and says how far it came. */
static void interrupted(enum fixture kind, size_t pages, size_t offset_a, size_t offset_b)
{
    size_t done = 0, calls = 0, stops = 0;
    struct zcdev_outcome outcome;
    uint64_t begin;

    zcdev_open();
    fixture_pair(kind, &a, &b, pages, offset_a, offset_b);
    signals_every(200);
    begin = now_ms();
    for (int turn = 0; turn < 4 || (stops < 3 && now_ms() < begin + 5000); turn++) {
        done = 0;
        do {
            outcome =
                zcdev_pair(area_page(&a, done), area_page(&b, done), (pages - done) * PAGE_SIZE);
            area_exchanged(&a, done, &b, done, outcome.done / PAGE_SIZE);
            done += outcome.done / PAGE_SIZE;
            calls++;
            stops += outcome.cause == ZC_CAUSE_INTERRUPTED;
            CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_INTERRUPTED ||
                      outcome.cause == ZC_CAUSE_RACED,
                  "%s", zcdev_cause(outcome.cause));
            CHECK(outcome.cause != ZC_CAUSE_INTERRUPTED || outcome.done, "a call without progress");
        } while (done < pages);
    }
    signals_every(0);
    area_check_both(&a, &b, "interrupted");
    ktap_note("%zu calls, %zu of them interrupted, %d signals", calls, stops, (int)signals);
    /* A few huge pages are exchanged in one step, which no signal divides. */
    CHECK(signals && (stops || kind == FIXTURE_HUGE), "no signal came");
}

TEST(signal_small, "signals: EINTR after a prefix, as told; every call makes progress")
{
    interrupted(FIXTURE_SMALL, 12000, 7, 300);
}

TEST(signal_huge, "signals: a range of huge pages makes progress under a storm of them")
{
    interrupted(FIXTURE_HUGE, 16 * HUGE_PAGES, 0, 0);
}

TEST(signal_untouched,
     "signals: a range of swapped and other pages makes progress under a storm of them")
{
    interrupted(FIXTURE_MIXED, 600, 7, 300);
}

TEST(signal_vector, "signals: a vector stops between ranges or within one, and says where")
{
    enum { kRanges = 4000 };
    struct zc_range *ranges = calloc(kRanges, sizeof(*ranges));
    size_t stops = 0, calls = 0;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, kPages, 0, 9);
    signals_every(200);
    for (int turn = 0; turn < 10; turn++) {
        for (unsigned int i = 0; i < kRanges; i++)
            ranges[i] = (struct zc_range){.a = (uintptr_t)area_page(&a, i % 50),
                                          .b = (uintptr_t)area_page(&b, i % 41),
                                          .length = (1 + i % 13) * PAGE_SIZE};
        for (unsigned int next = 0; next < kRanges;) {
            /* Checks the outputs, too. */
            struct zcdev_outcome outcome = zcdev_vector(ranges + next, kRanges - next);

            for (unsigned int i = next; i < next + outcome.stopped; i++)
                area_exchanged(&a, i % 50, &b, i % 41, 1 + i % 13);
            next += outcome.stopped;
            if (next < kRanges && ranges[next].done) {
                size_t pages = ranges[next].done / PAGE_SIZE;

                area_exchanged(&a, next % 50, &b, next % 41, pages);
                ranges[next].a += ranges[next].done;
                ranges[next].b += ranges[next].done;
                ranges[next].length -= ranges[next].done;
                ranges[next].done = 0;
                /* The rest of it, as a range of its own. */
                outcome = zcdev_vector(ranges + next, 1);
                CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_INTERRUPTED, "%s",
                      zcdev_cause(outcome.cause));
                area_exchanged(&a, next % 50 + pages, &b, next % 41 + pages,
                               outcome.done / PAGE_SIZE);
                CHECK(outcome.cause == ZC_CAUSE_NONE, "13 pages in three calls are not enough");
                next++;
            }
            stops += outcome.cause == ZC_CAUSE_INTERRUPTED;
            CHECK(++calls < 100000, "no end");
        }
    }
    signals_every(0);
    area_check_both(&a, &b, "interrupted");
    ktap_note("%zu calls, %zu of them interrupted, %d signals", calls, stops, (int)signals);
    CHECK(stops, "no signal came");
}

/* ---- threads ---- */

static struct ledger ledger;
static struct ledger_part parts[2];

static void open_ledger(enum fixture kind, size_t pages, size_t offset_a, size_t offset_b)
{
    zcdev_open();
    fixture_pair(kind, &a, &b, pages, offset_a, offset_b);
    ledger_open_areas(&ledger, parts, &a, &b);
}

static uint64_t exchanged_pages;

/* A few pages or nearly all, anywhere. */
static void exchange_at_random(struct crew_member *self)
{
    size_t pages =
        crew_random(self, 4) ? 1 + crew_random(self, 20) : 1 + crew_random(self, a.pages);
    struct zcdev_outcome outcome;

    if (pages > a.pages)
        pages = a.pages;
    outcome = zcdev_pair(area_page(&a, crew_random(self, a.pages - pages + 1)),
                         area_page(&b, crew_random(self, a.pages - pages + 1)), pages * PAGE_SIZE);
    CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_RACED ||
              outcome.cause == ZC_CAUSE_COW || outcome.cause == ZC_CAUSE_PAGE_SIZE ||
              outcome.cause == ZC_CAUSE_PINNED || outcome.cause == ZC_CAUSE_USERFAULTFD,
          "%s", zcdev_cause(outcome.cause));
    __atomic_fetch_add(&exchanged_pages, outcome.done / PAGE_SIZE, __ATOMIC_RELAXED);
}

static void exchange_huge_at_random(struct crew_member *self)
{
    size_t huge = a.pages / HUGE_PAGES, count = 1 + crew_random(self, huge);
    struct zcdev_outcome outcome = zcdev_pair(
        area_page(&a, crew_random(self, huge - count + 1) * HUGE_PAGES),
        area_page(&b, crew_random(self, huge - count + 1) * HUGE_PAGES), count * HUGE_SIZE);

    __atomic_fetch_add(&exchanged_pages, outcome.done / PAGE_SIZE, __ATOMIC_RELAXED);
}

static void write_at_random(struct crew_member *self)
{
    const struct area *area = self->number % 2 ? &a : &b;

    for (int i = 0; i < 100; i++)
        ledger_add(&ledger, area_page(area, crew_random(self, area->pages)), self->number);
}

static void read_at_random(struct crew_member *self)
{
    for (int i = 0; i < 100; i++) {
        const struct area *area = i % 2 ? &a : &b;
        const char *page = area_page(area, crew_random(self, area->pages));
        unsigned int k = crew_random(self, LEDGER_STAMP);

        CHECK(ledger_word_fits(&ledger, page, k), "word %u of %p is no page's: %#llx", k,
              (const void *)page, (unsigned long long)((const uint64_t *)page)[k]);
    }
}

static void finish(struct crew_member *crew, unsigned int count, const char *when)
{
    exchanged_pages = 0;
    crew_work(crew, count, 1500);
    ledger_audit(&ledger, parts, 2, when);
    ktap_note("%llu pages exchanged, %llu written", (unsigned long long)exchanged_pages,
              (unsigned long long)(ledger.added[0] + ledger.added[1] + ledger.added[2]));
    CHECK(exchanged_pages, "nothing was exchanged");
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
        CHECK(!page_out(a.at, a.pages) && !page_out(b.at, b.pages), "cannot be swapped out");
        ledger_audit(&ledger, parts, 2, "swapped out and in");
    }
}

TEST(no_write_lost, "threads: no write is lost, doubled or misdirected while pages are exchanged")
{
    struct crew_member crew[] = {{"writer", write_at_random, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL},
                                 {"reader", read_at_random, .arg = NULL},
                                 {"exchanger", exchange_at_random, .arg = NULL}};

    open_ledger(FIXTURE_SMALL, 700, 100, 350);
    finish(crew, 4, "written");
}

TEST(no_write_lost_huge, "threads: no write to huge pages is lost while these are exchanged")
{
    struct crew_member crew[] = {{"writer", write_at_random, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL},
                                 {"reader", read_at_random, .arg = NULL},
                                 {"exchanger", exchange_huge_at_random, .arg = NULL}};

    open_ledger(FIXTURE_HUGE, 3 * HUGE_PAGES, 0, 0);
    finish(crew, 4, "written");
}

TEST(two_exchangers, "threads: two of them exchange overlapping ranges, a third one writes")
{
    struct crew_member crew[] = {{"writer", write_at_random, .arg = NULL},
                                 {"exchanger", exchange_at_random, .arg = NULL},
                                 {"exchanger", exchange_at_random, .arg = NULL}};

    open_ledger(FIXTURE_SMALL, 300, 400, 350);
    finish(crew, 3, "exchanged by two");
}

enum { kUnits = 2 };

static unsigned int reported[kUnits];

static void exchange_all_units(struct crew_member *self)
{
    struct zcdev_outcome outcome = zcdev_pair(a.at, b.at, kUnits * HUGE_SIZE);

    (void)self;
    for (size_t i = 0; i < outcome.done / HUGE_SIZE; i++)
        __atomic_fetch_add(&reported[i], 1, __ATOMIC_RELAXED);
    CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_RACED, "%s",
          zcdev_cause(outcome.cause));
}

TEST(two_exchangers_huge,
     "threads: two of them exchange the same huge pages: whatever is reported is done")
{
    struct crew_member crew[] = {{"exchanger", exchange_all_units, .arg = NULL},
                                 {"exchanger", exchange_all_units, .arg = NULL}};

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, kUnits * HUGE_PAGES, 0, 0);
    crew_work(crew, 2, 1500);
    for (size_t i = 0; i < kUnits; i++)
        if (reported[i] % 2)
            area_exchanged(&a, i * HUGE_PAGES, &b, i * HUGE_PAGES, HUGE_PAGES);
    ktap_note("%u exchanges", reported[0]);
    area_check_both(&a, &b, "exchanged by two");
}

static struct {
    pthread_barrier_t barrier;
    bool stop;
} giving_up;

static void *give_up(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_barrier_wait(&giving_up.barrier);
        if (giving_up.stop)
            return NULL;
        NEED(!madvise(a.at, HUGE_SIZE, MADV_DONTNEED));
        pthread_barrier_wait(&giving_up.barrier);
    }
}

/* Given up first, the zeros are in b; last, in a. */
TEST(given_up_meanwhile,
     "threads: a huge page given up (MADV_DONTNEED) while it is exchanged is given up")
{
    unsigned int first = 0, rounds = 0;
    uint64_t begin = now_ms();
    pthread_t thread;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, HUGE_PAGES, 0, 0);
    NEED(!pthread_barrier_init(&giving_up.barrier, NULL, 2));
    NEED(!pthread_create(&thread, NULL, give_up, NULL));
    for (; rounds < 100 || now_ms() - begin < 3000; rounds++) {
        struct zcdev_outcome outcome;

        *(volatile char *)a.at = 1;
        *(volatile char *)b.at = 2;
        pthread_barrier_wait(&giving_up.barrier);
        outcome = zcdev_pair(a.at, b.at, HUGE_SIZE);
        pthread_barrier_wait(&giving_up.barrier);
        CHECK(!*a.at || (!*b.at && outcome.done), "round %u: %d and %d after %s", rounds, *a.at,
              *b.at, zcdev_cause(outcome.cause));
        first += *a.at != 0;
    }
    giving_up.stop = true;
    pthread_barrier_wait(&giving_up.barrier);
    pthread_join(thread, NULL);
    ktap_note("%u rounds, given up first in %u", rounds, first);
}

static void page_out_at_random(struct crew_member *self)
{
    size_t first = crew_random(self, a.pages - 20);

    madvise(area_page(self->turns % 2 ? &a : &b, first), 20 * PAGE_SIZE, 21 /* MADV_PAGEOUT */);
}

TEST(exchange_and_reclaim,
     "threads: pages are swapped out, in and exchanged at once, and written to")
{
    struct crew_member crew[] = {{"writer", write_at_random, .arg = NULL},
                                 {"exchanger", exchange_at_random, .arg = NULL},
                                 {"reclaimer", page_out_at_random, .arg = NULL}};

    need_swap();
    open_ledger(FIXTURE_SMALL, 300, 400, 350);
    finish(crew, 3, "reclaimed meanwhile");
}

/*
 * A translation that outlived an exchange would show itself when the page it
 * leads to is freed and used for something else.
 */
static char *bait;

static void read_bait(struct crew_member *self)
{
    for (int i = 0; i < 1000; i++) {
        size_t page = crew_random(self, kPages);
        unsigned int k = crew_random(self, LEDGER_STAMP);

        CHECK(ledger_word_fits(&ledger, bait + page * PAGE_SIZE, k), "page %zu, word %u: %#llx",
              page, k, (unsigned long long)((uint64_t *)(bait + page * PAGE_SIZE))[k]);
    }
}

static void change_bait(struct crew_member *self)
{
    const size_t len = kPages * PAGE_SIZE;
    char *other = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct zcdev_outcome outcome;

    (void)self;
    NEED(other != MAP_FAILED);
    memcpy(other, bait, len);
    outcome = zcdev_pair(bait, other, len);
    exchanged_pages += outcome.done / PAGE_SIZE;
    /* The pages that were the bait: overwritten and freed. */
    memset(other, 0xee, outcome.done);
    munmap(other, len);
    other = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(other != MAP_FAILED);
    memset(other, 0xdd, len);
    munmap(other, len);
}

TEST(no_stale_translation, "threads: none reads a page where it was before an exchange")
{
    struct crew_member crew[] = {{"reader", read_bait, .arg = NULL},
                                 {"changer", change_bait, .arg = NULL}};

    zcdev_open();
    fixture_area(FIXTURE_SMALL, &a, "bait", kPages, 9);
    bait = a.at;
    parts[0] = (struct ledger_part){bait, kPages};
    ledger_open(&ledger, parts, 1);
    crew_work(crew, 2, 1500);
    ledger_audit(&ledger, parts, 1, "changed");
    CHECK(exchanged_pages > kPages, "hardly anything was exchanged");
}

/* ---- ending in the middle ---- */

static void exchange_for_ever(struct crew_member *self)
{
    (void)self;
    zcdev_pair(a.at, b.at, a.pages * PAGE_SIZE);
}

enum ending { ENDING_KILLED, ENDING_EXIT, ENDING_EXEC, ENDING_FAULT };

static void end_in_the_middle(void *arg)
{
    static struct crew_member crew[] = {{"exchanger", exchange_for_ever, .arg = NULL},
                                        {"exchanger", exchange_for_ever, .arg = NULL}};
    enum ending ending = *(enum ending *)arg;

    fixture_area(FIXTURE_SMALL, &a, "a", 4000, 0);
    fixture_area(FIXTURE_MIXED, &b, "b", 400, 9);
    area_release(&b);
    fixture_area(FIXTURE_SMALL, &b, "b", 4000, 9);
    crew_start(crew, 2, 1);
    usleep(1000 + next_random(&(uint64_t){now_ms()}) % 40000);
    switch (ending) {
    case ENDING_KILLED:
        kill(getpid(), SIGKILL);
        break;
    case ENDING_EXIT:
        _exit(0);
    case ENDING_EXEC:
        execl("/proc/self/exe", "exchange_test", "--list", "--only", "no such test", NULL);
        FAIL("exec: errno %d", errno);
    case ENDING_FAULT:
        signal(SIGSEGV, SIG_DFL);
        for (volatile char *at = area_page(&a, a.pages);; at += PAGE_SIZE)
            *at = 1;
    }
}

static void ends(enum ending ending, int want_signal)
{
    long before, after;

    zcdev_open();
    before = file_number("/proc/meminfo", "AnonPages");
    for (int i = 0; i < 4; i++) {
        int pid = ktap_child(end_in_the_middle, &ending), status;

        CHECK(waitpid(pid, &status, 0) == pid, "errno %d", errno);
        CHECK(want_signal ? WIFSIGNALED(status) && WTERMSIG(status) == want_signal
                          : WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "status %#x", status);
    }
    for (int i = 0; i < 100; i++) {
        after = file_number("/proc/meminfo", "AnonPages");
        if (after - before < 8000)
            return;
        usleep(20 * 1000);
    }
    FAIL("%ld KiB of memory are not given back", after - before);
}

TEST(killed, "ending: a process killed in the middle of exchanges ends, and leaves nothing behind")
{
    ends(ENDING_KILLED, SIGKILL);
}

TEST(exited, "ending: a process that exits in the middle of its threads' exchanges ends")
{
    ends(ENDING_EXIT, 0);
}

TEST(executed, "ending: a process that executes another program in the middle of exchanges does so")
{
    ends(ENDING_EXEC, 0);
}

TEST(crashed, "ending: a process that crashes in the middle of exchanges ends")
{
    ends(ENDING_FAULT, SIGSEGV);
}

/* ---- the module ---- */

TEST(module_in_use, "module: not removed while the device is open, or held by an io_uring")
{
    struct uring ring;
    int error, fd = zcdev_open();

    need_root();
    error = syscall(SYS_delete_module, "zc", O_NONBLOCK) ? errno : 0;
    CHECK(error == EWOULDBLOCK || error == EBUSY, "errno %d", error);
    CHECK(fcntl(fd, F_GETFD) >= 0 && !zcdev_pair((void *)PAGE_SIZE, (void *)HUGE_SIZE, 0).error,
          "the device does not work any more");
    if (uring_open(&ring, 4, 0))
        ktap_skip("no io_uring: only tried with the device open");
    NEED(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1));
    close(fd);
    error = syscall(SYS_delete_module, "zc", O_NONBLOCK) ? errno : 0;
    CHECK(error == EWOULDBLOCK || error == EBUSY, "held by a ring: errno %d", error);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * What went wrong in mainline's UFFDIO_MOVE, which moves pages by the same
 * means: each of its bugs as a test of ours.
 */
#include "crew.h"
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "ledger.h"
#include "procfs.h"
#include "uffd.h"
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct area a, b;
static struct ledger ledger;
static struct ledger_part parts[2];
static uint64_t exchanged_pages, refusals[ZC_CAUSE_COUNT];

static void open_ledger(enum fixture kind, size_t pages, size_t offset_a, size_t offset_b)
{
    zcdev_open();
    fixture_pair(kind, &a, &b, pages, offset_a, offset_b);
    ledger_open_areas(&ledger, parts, &a, &b);
}

static void exchange_at_random(struct crew_member *self)
{
    size_t unit = self->arg ? HUGE_PAGES : 1, units = a.pages / unit;
    size_t count = 1 + crew_random(self, units);
    size_t at_a = crew_random(self, units - count + 1), at_b = crew_random(self, units - count + 1);
    struct zcdev_outcome outcome = zcdev_pair(area_page(&a, at_a * unit),
                                              area_page(&b, at_b * unit), count * unit * PAGE_SIZE);

    __atomic_fetch_add(&exchanged_pages, outcome.done / PAGE_SIZE, __ATOMIC_RELAXED);
    refusals[outcome.cause]++;
}

static void write_at_random(struct crew_member *self)
{
    for (int i = 0; i < 100; i++) {
        const struct area *area = i % 2 ? &a : &b;

        ledger_add(&ledger, area_page(area, crew_random(self, area->pages)), self->number);
    }
}

static void work(struct crew_member *crew, unsigned int count, const char *when)
{
    crew_work(crew, count, 1500);
    ledger_audit(&ledger, parts, 2, when);
    /* Where every fork came first, all is still there, but nothing has been tried. */
    if (!exchanged_pages)
        ktap_skip("every exchange was refused");
    ktap_note("%llu pages exchanged", (unsigned long long)exchanged_pages);
    for (int i = 1; i < ZC_CAUSE_COUNT; i++)
        if (refusals[i])
            ktap_note("%llu times %s", (unsigned long long)refusals[i], zcdev_cause(i));
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
        size_t left = page_out(a.at, a.pages) + page_out(b.at, b.pages);

        CHECK(!left, "%s: %zu pages cannot be swapped out", when, left);
        ledger_audit(&ledger, parts, 2, "swapped out and in");
    }
}

/*
 * Pinned between the check and the change of the entries, a page would be gone
 * from where the device was told it is. A buffer that is registered receives a
 * token by its frame; the process must find it at the address.
 */
static void pin_and_receive(struct crew_member *self)
{
    size_t unit = self->arg ? HUGE_PAGES : 1;
    size_t at = crew_random(self, a.pages / unit) * unit;
    struct iovec buffer = {area_page(&a, at), PAGE_SIZE};
    uint64_t *counter = (uint64_t *)buffer.iov_base + LEDGER_STAMP + self->number, was, token;
    struct io_uring_sqe *sqe;
    static struct uring ring;
    static int ends[2];
    int result;

    if (!ring.sqes && (uring_open(&ring, 4, 0) || pipe(ends)))
        FAIL("set-up: errno %d", errno);
    if (uring_pin(&ring, &buffer, 1))
        FAIL("set-up: registering: errno %d", errno);
    /* Pinned: it is where it is until let go. The counter is ours alone. */
    was = __atomic_load_n(counter, __ATOMIC_RELAXED);
    token = was + 1;
    if (write(ends[1], &token, sizeof(token)) != sizeof(token))
        FAIL("set-up: pipe: errno %d", errno);
    sqe = uring_sqe(&ring);
    sqe->opcode = IORING_OP_READ_FIXED;
    sqe->fd = ends[0];
    sqe->addr = (uintptr_t)counter;
    sqe->len = sizeof(token);
    sqe->off = -1;
    result = uring_wait(&ring);
    CHECK(result == sizeof(token), "READ_FIXED: %d", result);
    CHECK(__atomic_load_n(counter, __ATOMIC_RELAXED) == token,
          "page %zu was exchanged while it was pinned: %llu, not %llu", at,
          (unsigned long long)*counter, (unsigned long long)token);
    ledger.added[self->number]++;
    if (uring_unpin(&ring))
        FAIL("set-up: unregistering: errno %d", errno);
}

static void need_uring(void)
{
    struct uring ring;

    uring_need(&ring, 4, 0);
    uring_close(&ring);
}

TEST(pinned_after_check, "UFFDIO_MOVE bug: a page pinned after it was checked")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = NULL},
                                 {"pinner", pin_and_receive, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL}};

    need_uring();
    open_ledger(FIXTURE_SMALL, 16, 100, 101);
    work(crew, 3, "pinned after the check");
}

TEST(pinned_after_check_huge, "UFFDIO_MOVE bug: a huge page pinned after it was checked")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = "huge"},
                                 {"pinner", pin_and_receive, .arg = "huge"},
                                 {"writer", write_at_random, .arg = NULL}};

    need_uring();
    open_ledger(FIXTURE_HUGE, 2 * HUGE_PAGES, 0, 0);
    work(crew, 3, "pinned after the check");
}

/* It took the page apart while holding what must not be held then: on debug kernels, a splat. */
static void split_by_mprotect(struct crew_member *self)
{
    char *page = area_page(crew_random(self, 2) ? &a : &b, crew_random(self, a.pages));

    NEED(!mprotect(page, PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC));
    NEED(!mprotect(page, PAGE_SIZE, PROT_READ | PROT_WRITE));
}

static void collapse(struct crew_member *self)
{
    size_t at = crew_random(self, a.pages / HUGE_PAGES) * HUGE_PAGES;

    madvise(area_page(self->turns % 2 ? &a : &b, at), HUGE_SIZE, 25 /* MADV_COLLAPSE */);
}

TEST(split_under_rcu, "UFFDIO_MOVE bug: a large folio split where that may sleep must not")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = NULL},
                                 {"exchanger of huge pages", exchange_at_random, .arg = "huge"},
                                 {"splitter", split_by_mprotect, .arg = NULL},
                                 {"collapser", collapse, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL}};

    open_ledger(FIXTURE_HUGE, 2 * HUGE_PAGES, 0, 0);
    work(crew, 5, "split and collapsed");
}

/* A page in a pipe has one reference more, until the pipe is read. */
static void raised_refcount(enum fixture kind, size_t pages)
{
    struct iovec iov;
    int ends[2];

    zcdev_open();
    fixture_pair(kind, &a, &b, pages, 0, 0);
    NEED(!pipe(ends));
    iov = (struct iovec){area_page(&a, pages / 2), PAGE_SIZE};
    NEED(vmsplice(ends[1], &iov, 1, 0) == (ssize_t)PAGE_SIZE);
    for (int i = 0; i < 100; i++) {
        struct zcdev_outcome outcome = zcdev_pair(a.at, b.at, pages * PAGE_SIZE);

        area_exchanged(&a, 0, &b, 0, outcome.done / PAGE_SIZE);
        CHECK(outcome.cause != ZC_CAUSE_RACED || i < 99, "told to try again, without end");
        if (outcome.cause != ZC_CAUSE_RACED) {
            CHECK(outcome.cause == ZC_CAUSE_NONE, "%s", zcdev_cause(outcome.cause));
            break;
        }
        usleep(10 * 1000);
    }
    area_check_both(&a, &b, "referenced");
}

TEST(raised_refcount_small, "UFFDIO_MOVE bug: EAGAIN for ever, for a page with one reference more")
{
    raised_refcount(FIXTURE_SMALL, 8);
}

TEST(raised_refcount_huge,
     "UFFDIO_MOVE bug: EAGAIN for ever, for a huge page with one reference more")
{
    raised_refcount(FIXTURE_HUGE, 2 * HUGE_PAGES);
}

TEST(huge_zero_page, "UFFDIO_MOVE bug: the huge zero page taken for one of the process's own")
{
    const size_t pages = 2 * HUGE_PAGES;

    zcdev_open();
    for (int turn = 0; turn < 3; turn++) {
        fixture_area(turn == 1 ? FIXTURE_HUGE : FIXTURE_HUGE_ZERO, &a, "a", pages, 0);
        fixture_area(turn == 2 ? FIXTURE_HUGE : FIXTURE_HUGE_ZERO, &b, "b", pages, 0);
        exchange(whole(&a), whole(&b), pages);
        area_check_both(&a, &b, "huge zero page");
        exchange(part(&a, 3), part(&b, 5), 300);
        area_stamp(&a, 0, pages);
        area_stamp(&b, 0, pages);
        area_check_both(&a, &b, "written");
        /* Others that have the zero page find zeros. */
        struct area c;
        fixture_area(FIXTURE_HUGE_ZERO, &c, "c", pages, 0);
        area_check(&c, "another's zero page");
        area_release(&a);
        area_release(&b);
        area_release(&c);
    }
}

/* Entries that are not present: huge pages under migration, one after the other. */
static void migrate_huge(struct crew_member *self)
{
    void *at[8];
    int want[8], is[8];

    for (int i = 0; i < 8; i++) {
        at[i] = area_page(i % 2 ? &a : &b, crew_random(self, a.pages / HUGE_PAGES) * HUGE_PAGES);
        want[i] = self->turns % 2;
    }
    syscall(SYS_move_pages, 0, 8UL, at, want, is, MPOL_MF_MOVE);
}

TEST(not_present_pmd, "UFFDIO_MOVE bug: a huge entry that is not present, under migration")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = "huge"},
                                 {"migrator", migrate_huge, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL}};
    struct stat st;

    if (stat("/sys/devices/system/node/node1", &st))
        ktap_skip("one NUMA node only");
    open_ledger(FIXTURE_HUGE, 3 * HUGE_PAGES, 0, 0);
    work(crew, 3, "migrated");
}

static void migrate_small(struct crew_member *self)
{
    void *at[32];
    int want[32], is[32];

    for (int i = 0; i < 32; i++) {
        at[i] = area_page(i % 2 ? &a : &b, crew_random(self, a.pages));
        want[i] = self->turns % 2;
    }
    syscall(SYS_move_pages, 0, 32UL, at, want, is, MPOL_MF_MOVE);
}

TEST(not_present_pte, "UFFDIO_MOVE bug: small entries that are not present, under migration")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = NULL},
                                 {"migrator", migrate_small, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL}};
    struct stat st;

    if (stat("/sys/devices/system/node/node1", &st))
        ktap_skip("one NUMA node only");
    open_ledger(FIXTURE_SMALL, 200, 400, 17);
    work(crew, 3, "migrated");
}

/* Missing pages would be reported to a handler that does not know of the exchange. */
static void register_and_let_go(struct crew_member *self)
{
    size_t at = crew_random(self, a.pages - 4);
    char *page = area_page(self->turns % 2 ? &a : &b, at);
    int fd = *(int *)self->arg;
    struct zcdev_outcome outcome;

    if (uffd_register(fd, page, 4 * PAGE_SIZE, UFFDIO_REGISTER_MODE_MISSING))
        FAIL("set-up: userfaultfd: errno %d", errno);
    /* Registered: nothing comes or goes any more. */
    outcome = zcdev_pair(page, self->turns % 2 ? b.at : a.at, 4 * PAGE_SIZE);
    CHECK(outcome.cause == ZC_CAUSE_USERFAULTFD && !outcome.done, "%s after %llu",
          zcdev_cause(outcome.cause), (unsigned long long)outcome.done);
    if (uffd_unregister(fd, page, 4 * PAGE_SIZE))
        FAIL("set-up: userfaultfd: errno %d", errno);
}

TEST(registered_meanwhile, "UFFDIO_MOVE bug: the other side registered with userfaultfd meanwhile")
{
    int fd = uffd_open(0);
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = NULL},
                                 {"registrar", register_and_let_go, .arg = &fd},
                                 {"writer", write_at_random, .arg = NULL}};

    if (fd < 0)
        ktap_skip("userfaultfd: %s", strerror(errno));
    open_ledger(FIXTURE_SMALL, 100, 400, 17);
    work(crew, 3, "registered meanwhile");
}

/* A child that shares the page copy-on-write must not see it change its place. */
static void fork_and_audit(struct crew_member *self)
{
    int status, pid = fork();

    (void)self;
    if (pid < 0)
        FAIL("set-up: fork: errno %d", errno);
    if (!pid) {
        ledger_audit_snapshot(&ledger, parts, 2, "in a child");
        usleep(2000);
        ledger_audit_snapshot(&ledger, parts, 2, "in a child, a moment later");
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    CHECK(status == 0, "a child: status %#x", status);
}

TEST(forked_meanwhile, "UFFDIO_MOVE bug: a fork between the check and the move")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = NULL},
                                 {"forker", fork_and_audit, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL}};

    open_ledger(FIXTURE_SMALL, 64, 500, 17);
    work(crew, 3, "forked meanwhile");
}

TEST(forked_meanwhile_huge, "UFFDIO_MOVE bug: a fork between the check and the move of huge pages")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = "huge"},
                                 {"forker", fork_and_audit, .arg = NULL},
                                 /* Writing to a shared one takes it apart. */
                                 {"collapser", collapse, .arg = NULL}};

    open_ledger(FIXTURE_HUGE, 2 * HUGE_PAGES, 0, 0);
    work(crew, 3, "forked meanwhile");
}

/* Gone to swap and come back between two looks, it is another page. */
static void page_out_at_random(struct crew_member *self)
{
    madvise(area_page(self->turns % 2 ? &a : &b, crew_random(self, a.pages - 8)), 8 * PAGE_SIZE,
            21 /* MADV_PAGEOUT */);
}

TEST(swapped_meanwhile, "UFFDIO_MOVE bug: a page in the swap cache, swapped out and in meanwhile")
{
    struct crew_member crew[] = {{"exchanger", exchange_at_random, .arg = NULL},
                                 {"reclaimer", page_out_at_random, .arg = NULL},
                                 {"reclaimer", page_out_at_random, .arg = NULL},
                                 {"writer", write_at_random, .arg = NULL}};

    need_swap();
    open_ledger(FIXTURE_SMALL, 64, 500, 17);
    work(crew, 4, "swapped meanwhile");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * What happens to pages after they were exchanged. All of it works on pages
 * by what their folios say of their place; nothing else notices a wrong one.
 */
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"
#include "uring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif

enum { kPages = 64 };

static struct area a, b;

/* Two areas of which some pages were exchanged, some twice, some never. */
static void exchanged_areas(size_t pages)
{
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, pages, 100, 300);
    exchange_all(part(&a, 1), part(&b, 3), pages - 8);
    exchange_all(part(&b, pages / 2), part(&a, pages / 4), pages / 4);
}

static void all_swapped_out(const char *when)
{
    size_t left = page_out(a.at, a.pages) + page_out(b.at, b.pages);

    CHECK(!left, "%s: %zu pages cannot be swapped out", when, left);
    CHECK(pages_swapped(a.at, a.pages) == a.pages && pages_swapped(b.at, b.pages) == b.pages,
          "%s: %zu and %zu pages in swap", when, pages_swapped(a.at, a.pages),
          pages_swapped(b.at, b.pages));
    area_check_both(&a, &b, when);
}

TEST(after_reclaim, "after: every exchanged page is swapped out and comes back, again and again")
{
    need_swap();
    exchanged_areas(1500);
    for (int i = 0; i < 3; i++) {
        all_swapped_out("swapped");
        exchange_all(part(&a, 10 * i), part(&b, 7), 900);
    }
    all_swapped_out("swapped");
}

TEST(after_reclaim_swapped, "after: pages swapped out before and after an exchange come back right")
{
    need_swap();
    exchanged_areas(300);
    for (int i = 0; i < 4; i++) {
        page_out(area_page(&a, 30), 100);
        page_out(area_page(&b, 90), 150);
        exchange_all(part(&a, 5), part(&b, 6 + i), 280);
        all_swapped_out("swapped");
    }
}

TEST(after_three_mappings, "after: pages that went through three mappings outlive two of them")
{
    struct area c;

    need_swap();
    zcdev_open();
    for (int gone = 0; gone < 2; gone++) {
        fixture_area(FIXTURE_SMALL, &a, "a", kPages, 0);
        fixture_area(FIXTURE_MOVED, &b, "b", kPages, 9);
        fixture_area(FIXTURE_DEV_ZERO, &c, "c", kPages, 99);
        exchange_all(whole(&a), whole(&b), kPages);
        exchange_all(whole(&b), whole(&c), kPages);
        exchange_all(part(&c, 3), part(&a, 1), kPages - 9);
        /* With the mappings go their anon_vmas, if nothing else holds them. */
        munmap(gone ? a.at : b.at, kPages * PAGE_SIZE);
        drain_lru();
        CHECK(!page_out(c.at, kPages), "cannot be swapped out");
        area_check(&c, "two are left");
        munmap(gone ? b.at : a.at, kPages * PAGE_SIZE);
        CHECK(!page_out(c.at, kPages), "cannot be swapped out");
        area_check(&c, "one is left");
        area_release(&c);
    }
}

TEST(after_unmap, "after: the one side is unmapped at once, the other keeps its pages")
{
    need_swap();
    zcdev_open();
    for (int i = 0; i < 20; i++) {
        fixture_area(FIXTURE_SMALL, &a, "a", kPages, 0);
        fixture_area(i % 2 ? FIXTURE_SMALL : FIXTURE_UNTOUCHED, &b, "b", kPages, 9);
        CHECK(exchange(whole(&a), whole(&b), kPages).cause == ZC_CAUSE_NONE, "stopped");
        munmap(a.at, kPages * PAGE_SIZE);
        CHECK(!page_out(b.at, kPages), "cannot be swapped out");
        area_check(&b, "the other is unmapped");
        area_release(&b);
    }
}

/* ---- migration ---- */

static int nodes(void)
{
    struct stat st;

    return stat("/sys/devices/system/node/node1", &st) ? 1 : 2;
}

/* Of the pages that did not move, what the kernel said and what they are. */
static void tell_unmoved(const struct area *area, size_t pages, int node, const int *is)
{
    int told = 0;

    for (size_t i = 0; i < pages && told < 8; i++) {
        if (is[i] == node || (i && is[i] == is[i - 1]))
            continue;
        ktap_note("page %zu of %s: %d, not %d; pagemap %#llx, %s", i, area->name, is[i], node,
                  (unsigned long long)pagemap_of(area_page(area, i)),
                  page_is(area_page(area, i), KPF_THP) ? "huge" : "small");
        told++;
    }
    ktap_note("of %zu pages %zu are present, %zu in swap; %ld marked by NUMA balancing since boot",
              pages, pages_present(area->at, pages), pages_swapped(area->at, pages),
              file_number("/proc/vmstat", "numa_pte_updates"));
}

/*
 * Asks for every page to be on @node, shared or not. Return: pages that are.
 *
 * NUMA balancing takes access away from entries to see which process faults, and until one
 * does, move_pages() of Linux 6.1 finds no page there: its follow_page() stops at such an
 * entry with ENOENT, at a huge page's with EFAULT. And the process that faults has the
 * page moved to its own node. So it is kept away meanwhile: with a memory policy of its own a task is
 * not scanned. Reading the pages then gives access back, and brings in what is swapped.
 */
static size_t move_to(const struct area *area, size_t pages, int node)
{
    void **at = malloc(pages * sizeof(*at));
    int *want = malloc(pages * sizeof(*want)), *is = malloc(pages * sizeof(*is));
    size_t there = 0;

    NEED(at && want && is);
    NEED(!syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0UL));
    for (int tries = 0; tries < 20 && there < pages; tries++) {
        for (size_t i = 0; i < pages; i++) {
            at[i] = area_page(area, i);
            want[i] = node;
            is[i] = -1; /* not written where pages fail to move */
        }
        /* A huge page wants 2 MiB of frames in one piece. */
        if (tries) {
            file_write("/proc/sys/vm/drop_caches", "3");
            drain_lru();
        }
        area_check_part(area, 0, pages, "to be moved");
        if (syscall(SYS_move_pages, 0, pages, at, want, is, MPOL_MF_MOVE_ALL) < 0)
            FAIL("set-up: move_pages: errno %d", errno);
        there = 0;
        for (size_t i = 0; i < pages; i++)
            there += is[i] == node;
    }
    if (there < pages)
        tell_unmoved(area, pages, node, is);
    area_check_part(area, 0, pages, "asked to move");
    NEED(!syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL));
    free(at);
    free(want);
    free(is);
    return there;
}

TEST(after_migration, "after: every exchanged page is moved to another NUMA node, and back")
{
    if (nodes() < 2)
        ktap_skip("one NUMA node only");
    exchanged_areas(400);
    for (int node = 0; node < 4; node++) {
        size_t there_a = move_to(&a, 400, node % 2), there_b = move_to(&b, 400, (node + 1) % 2);

        CHECK(there_a == 400 && there_b == 400, "node %d: %zu and %zu pages moved", node % 2,
              there_a, there_b);
        area_check_both(&a, &b, "moved");
        exchange_all(part(&a, 3), part(&b, 30 + node), 200);
    }
    area_check_both(&a, &b, "moved and exchanged");
}

TEST(after_migration_huge,
     "after: every exchanged huge page is moved to another NUMA node, and back")
{
    struct area huge[2];

    if (nodes() < 2)
        ktap_skip("one NUMA node only");
    zcdev_open();
    for (int i = 0; i < 2; i++)
        fixture_area(FIXTURE_HUGE, &huge[i], i ? "b" : "a", 2 * HUGE_PAGES, 0);
    for (int node = 0; node < 3; node++) {
        exchange_all(part(&huge[0], HUGE_PAGES), part(&huge[1], 0), HUGE_PAGES);
        for (int i = 0; i < 2; i++) {
            size_t there = move_to(&huge[i], 2 * HUGE_PAGES, (node + i) % 2);

            CHECK(there == 2 * HUGE_PAGES, "%zu pages moved", there);
            area_check(&huge[i], "moved");
        }
    }
}

static const char balancing[] = "/proc/sys/kernel/numa_balancing";
static const char *const pace[] = {"/sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
                                   "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms"};

static long marked(void)
{
    return file_number("/proc/vmstat", "numa_pte_updates");
}

static void exchange_untouched(struct area *one, struct area *other, size_t unit)
{
    const size_t pages = one->pages - unit;
    struct zcdev_outcome outcome = zcdev_pair(area_page(one, unit), other->at, pages * PAGE_SIZE);

    area_exchanged(one, unit, other, 0, outcome.done / PAGE_SIZE);
    /* A hinting fault of ours may be moving the page. */
    CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_RACED, "%s",
          zcdev_cause(outcome.cause));
}

/* Reads nothing between exchanges: a marked entry is exchanged as it is. */
static void exchange_marked(void *arg)
{
    const long before = marked();
    struct area huge[2];

    (void)arg;
    exchanged_areas(kPages);
    for (int i = 0; i < 2; i++)
        fixture_area(FIXTURE_HUGE, &huge[i], i ? "d" : "c", 2 * HUGE_PAGES, 0);
    for (int turn = 0; turn < 6 || (marked() - before < 500 && turn < 60); turn++) {
        /* Those on the other node are marked, whichever is ours. */
        move_to(&a, kPages, 0);
        move_to(&b, kPages, 1);
        for (int i = 0; i < 200; i++) {
            exchange_untouched(&a, &b, 1 + i % 3);
            exchange_untouched(&huge[i % 2], &huge[!(i % 2)], HUGE_PAGES);
        }
        area_check_both(&a, &b, "watched by NUMA balancing");
        area_check(&huge[0], "watched by NUMA balancing");
        area_check(&huge[1], "watched by NUMA balancing");
    }
    if (marked() - before < 500)
        ktap_skip("NUMA balancing has marked %ld pages only", marked() - before);
    ktap_note("%ld pages marked", marked() - before);
}

TEST(during_numa_balancing, "during: exchanges of pages that NUMA balancing watches lose nothing")
{
    const long was = file_number(balancing, NULL);
    long paces[2];
    siginfo_t end;
    int child;

    need_root();
    if (nodes() < 2 || was < 0)
        ktap_skip("one NUMA node only, or no NUMA balancing");
    for (int i = 0; i < 2; i++) {
        paces[i] = file_number(pace[i], NULL);
        if (paces[i] < 0 || file_write(pace[i], "1"))
            ktap_skip("the pace of NUMA balancing cannot be set");
    }
    file_write(balancing, "1");
    /* A new process is looked at soon. */
    child = ktap_child(exchange_marked, NULL);
    while (waitid(P_PID, child, &end, WEXITED | WNOWAIT) && errno == EINTR)
        ;
    file_write(balancing, "%ld", was);
    for (int i = 0; i < 2; i++)
        file_write(pace[i], "%ld", paces[i]);
    ktap_wait(child);
}

TEST(after_soft_offline,
     "after: the frames of exchanged pages are taken out of use: content goes on")
{
    enum { kFew = 4 };
    uint64_t frame;

    need_root();
    exchanged_areas(kPages);
    for (size_t i = 0; i < kFew; i++) {
        char *at = area_page(i % 2 ? &a : &b, 10 + i);

        drain_lru();
        frame = pfn_of(at);
        if (madvise(at, PAGE_SIZE, MADV_SOFT_OFFLINE))
            ktap_skip("MADV_SOFT_OFFLINE: %s", strerror(errno));
        CHECK(pfn_of(at) != frame, "page %zu is still in its frame", i);
    }
    area_check_both(&a, &b, "in other frames");
    exchange_all(whole(&a), whole(&b), kPages);
}

TEST(after_compaction, "after: compaction, drop_caches, MADV_COLD and shrinking lose nothing")
{
    need_root();
    exchanged_areas(1000);
    for (int i = 0; i < 4; i++) {
        file_write("/proc/sys/vm/compact_memory", "1");
        file_write("/proc/sys/vm/drop_caches", "3");
        NEED(!madvise(a.at, 1000 * PAGE_SIZE, MADV_COLD));
        area_check_both(&a, &b, "compacted");
        exchange_all(part(&a, 17 * i), part(&b, 3), 900);
    }
}

TEST(after_collapse,
     "after: exchanged small pages are collapsed to a huge page, and exchanged whole")
{
    struct area small[2];

    zcdev_open();
    for (int i = 0; i < 2; i++)
        fixture_area(FIXTURE_SMALL, &small[i], i ? "b" : "a", HUGE_PAGES, 0);
    exchange_all(part(&small[0], 3), part(&small[1], 5), 400);
    for (int i = 0; i < 2; i++) {
        int error = 0;

        for (int tries = 0; tries < 50; tries++) {
            error = madvise(small[i].at, HUGE_SIZE, MADV_COLLAPSE) ? errno : 0;
            if (error != EAGAIN && error != EBUSY && error != ENOMEM)
                break;
            drain_lru();
        }
        if (error)
            ktap_skip("MADV_COLLAPSE: %s", strerror(error));
        CHECK(huge_kib(small[i].at, HUGE_PAGES) == 2048, "not huge");
        area_check(&small[i], "collapsed");
    }
    exchange_all(whole(&small[0]), whole(&small[1]), HUGE_PAGES);
    CHECK(huge_kib(small[0].at, HUGE_PAGES) == 2048, "not huge any more");
}

/* ---- processes ---- */

static void write_in_child(void *arg)
{
    (void)arg;
    area_check_both(&a, &b, "in the child");
    area_stamp(&a, 0, kPages / 2);
    area_stamp(&b, kPages / 2, kPages / 2);
    area_check_both(&a, &b, "written in the child");
    /* What it has written is its own; the rest is shared still. */
    exchange_all(whole(&a), part(&b, kPages / 2), kPages / 2);
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
        page_out(a.at, kPages);
        page_out(b.at, kPages);
    }
    area_check_both(&a, &b, "swapped in the child");
}

TEST(after_fork, "after: fork shares exchanged pages copy-on-write, both ways")
{
    int child;

    exchanged_areas(kPages);
    for (int i = 0; i < 5; i++) {
        child = ktap_child(write_in_child, NULL);
        area_stamp(&a, kPages / 4, kPages / 2);
        area_stamp(&b, kPages / 4, kPages / 2);
        area_check_both(&a, &b, "written in the parent");
        ktap_wait(child);
        area_check_both(&a, &b, "after the child");
        area_stamp(&a, 0, kPages);
        area_stamp(&b, 0, kPages);
        exchange_all(whole(&a), whole(&b), kPages);
    }
}

/* The child's pages are filed under the parent's anon_vma until it has written to them. */
static void orphan(void *arg)
{
    (void)arg;
    fixture_area(FIXTURE_SMALL, &b, "b", kPages, 11);
    exchange_stops(whole(&a), whole(&b), kPages, ZC_CAUSE_COW, 0);
    area_stamp(&a, 0, kPages);
    exchange_all(whole(&a), whole(&b), kPages);
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0)
        all_swapped_out("in the child");
    exchange_all(part(&a, 3), part(&b, 8), kPages / 2);
}

TEST(after_inherited, "after: a child exchanges what it inherited, once it has written to it")
{
    zcdev_open();
    fixture_area(FIXTURE_SMALL, &a, "a", kPages, 0);
    ktap_wait(ktap_child(orphan, NULL));
    area_check(&a, "the child's exchange");
    fixture_area(FIXTURE_SMALL, &b, "b", kPages, 11);
    area_stamp(&a, 0, kPages);
    exchange_all(whole(&a), whole(&b), kPages);
}

static void read_parent(void *arg)
{
    struct area *area = arg;
    static char copy[kPages * 4096];
    struct iovec to = {copy, sizeof(copy)}, from = {area->at, sizeof(copy)};
    int parent = getppid(), fd, status;
    char path[64];

    if (process_vm_readv(parent, &to, 1, &from, 1, 0) != sizeof(copy))
        FAIL("process_vm_readv: errno %d", errno);
    area_check_copy(area, copy, "process_vm_readv");
    memset(copy, 0, sizeof(copy));
    snprintf(path, sizeof(path), "/proc/%d/mem", parent);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && pread(fd, copy, sizeof(copy), (uintptr_t)area->at) == sizeof(copy),
          "/proc/PID/mem: errno %d", errno);
    area_check_copy(area, copy, "/proc/PID/mem");

    CHECK(!ptrace(PTRACE_ATTACH, parent, 0, 0), "ptrace: errno %d", errno);
    while (waitpid(parent, &status, __WALL) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < kPages; i++) {
        uint64_t word;

        errno = 0;
        word = ptrace(PTRACE_PEEKDATA, parent, area_page(area, i) + 8 * i, 0);
        CHECK(!errno && word == ((uint64_t *)(copy + i * PAGE_SIZE))[i], "PEEKDATA of page %zu", i);
        CHECK(!ptrace(PTRACE_POKEDATA, parent, area_page(area, i) + 8 * i, word), "POKEDATA");
    }
    ptrace(PTRACE_DETACH, parent, 0, 0);
}

TEST(after_readers,
     "after: process_vm_readv, /proc/PID/mem, ptrace and write(2) see the right pages")
{
    static char copy[kPages * 4096];
    int ends[2];

    need_root();
    exchanged_areas(kPages);
    ktap_wait(ktap_child(read_parent, &a));
    ktap_wait(ktap_child(read_parent, &b));
    NEED(!pipe(ends) && fcntl(ends[1], F_SETPIPE_SZ, sizeof(copy)) >= 0);
    NEED(write(ends[1], a.at, sizeof(copy)) == sizeof(copy));
    NEED(read(ends[0], copy, sizeof(copy)) == sizeof(copy));
    area_check_copy(&a, copy, "write(2)");
    NEED(write(ends[1], copy, sizeof(copy)) == sizeof(copy));
    NEED(read(ends[0], b.at, sizeof(copy)) == sizeof(copy));
    memcpy(b.id, a.id, kPages * sizeof(*b.id));
    area_check_both(&a, &b, "read(2)");
    /* Shared with the readers while these lived. */
    area_stamp(&a, 0, kPages);
    area_stamp(&b, 0, kPages);
    exchange_all(whole(&a), whole(&b), kPages);
}

/* What a device is told at registering is the frame that is there by then. */
TEST(after_pinning, "after: buffers registered later receive where the process sees it")
{
    struct uring ring;
    int ends[2];
    struct iovec buffer;
    char page[PAGE_SIZE];

    uring_need(&ring, 8, 0);
    exchanged_areas(kPages);
    NEED(!pipe(ends));
    buffer = (struct iovec){a.at, kPages * PAGE_SIZE};
    NEED(!uring_pin(&ring, &buffer, 1));
    for (size_t i = 0; i < kPages; i += 5) {
        struct io_uring_sqe *sqe = uring_sqe(&ring);
        uint64_t id = new_ids(1);
        int result;

        stamp(page, id);
        NEED(write(ends[1], page, PAGE_SIZE) == (ssize_t)PAGE_SIZE);
        sqe->opcode = IORING_OP_READ_FIXED;
        sqe->fd = ends[0];
        sqe->addr = (uintptr_t)area_page(&a, i);
        sqe->len = PAGE_SIZE;
        sqe->off = -1;
        result = uring_wait(&ring);
        CHECK(result == (int)PAGE_SIZE, "READ_FIXED: %d", result);
        a.id[i] = id;
        CHECK(exchange(part(&a, i), part(&b, i), 1).cause == ZC_CAUSE_PINNED, "not PINNED");
    }
    area_check_both(&a, &b, "received");
    NEED(!uring_unpin(&ring));
    exchange_all(whole(&a), whole(&b), kPages);
    uring_close(&ring);
}

/* ---- mappings ---- */

TEST(after_mremap, "after: mremap moves exchanged pages, reclaim finds them there")
{
    exchanged_areas(kPages);
    for (int i = 0; i < 3; i++) {
        struct area to;

        area_reserve(&to, "moved", kPages, 50 * i);
        NEED(syscall(SYS_mremap, a.at, kPages * PAGE_SIZE, kPages * PAGE_SIZE,
                     MREMAP_MAYMOVE | MREMAP_FIXED, to.at) == (long)to.at);
        a.at = to.at;
        area_check_both(&a, &b, "moved");
        exchange_all(part(&a, 2), part(&b, 5), kPages - 6);
        if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0)
            all_swapped_out("moved and swapped");
    }
}

TEST(after_mprotect, "after: mprotect splits mappings with exchanged pages, reclaim finds them")
{
    exchanged_areas(kPages);
    for (size_t i = 0; i < kPages; i += 7)
        NEED(!mprotect(area_page(i % 2 ? &a : &b, i), PAGE_SIZE, PROT_READ));
    area_check_both(&a, &b, "protected");
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0)
        all_swapped_out("protected and swapped");
    for (size_t i = 0; i < kPages; i += 7)
        NEED(!mprotect(area_page(i % 2 ? &a : &b, i), PAGE_SIZE, PROT_READ | PROT_WRITE));
    exchange_all(whole(&a), whole(&b), kPages);
}

TEST(after_dontneed, "after: MADV_DONTNEED gives up exchanged pages only where it is called")
{
    exchanged_areas(kPages);
    for (size_t i = 3; i + 1 < kPages; i += 6) {
        NEED(!madvise(area_page(&a, i), 2 * PAGE_SIZE, MADV_DONTNEED));
        a.id[i] = a.id[i + 1] = 0;
    }
    area_check_both(&a, &b, "given up");
    exchange_all(whole(&a), whole(&b), kPages);
}

static void mergeable(int advice)
{
    NEED(!madvise(a.at, kPages * PAGE_SIZE, advice));
    NEED(!madvise(b.at, kPages * PAGE_SIZE, advice));
}

TEST(after_ksm, "after: KSM merges exchanged pages, and writing takes them apart")
{
    uint64_t id = new_ids(1);
    long run = file_number("/sys/kernel/mm/ksm/run", NULL);
    int tries = 0;

    need_root();
    if (run < 0)
        ktap_skip("no KSM");
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, kPages, 0, 9);
    exchange_all(whole(&a), whole(&b), kPages);
    for (size_t i = 0; i < kPages; i++) {
        a.id[i] = b.id[i] = id;
        stamp(area_page(&a, i), id);
        stamp(area_page(&b, i), id);
    }
    exchange_all(whole(&a), whole(&b), kPages);
    mergeable(MADV_MERGEABLE);
    file_write("/sys/kernel/mm/ksm/run", "1");
    file_write("/sys/kernel/mm/ksm/sleep_millisecs", "1");
    while (pfn_of(a.at) != pfn_of(b.at) && ++tries < 600)
        usleep(20 * 1000);
    CHECK(pfn_of(a.at) == pfn_of(b.at), "not merged");
    area_check_both(&a, &b, "merged");
    CHECK(exchange(part(&a, 0), part(&b, 3), 1).cause == ZC_CAUSE_COW, "not COW");
    mergeable(MADV_UNMERGEABLE);
    area_check_both(&a, &b, "no more to be merged");
    area_stamp(&a, 0, kPages);
    area_stamp(&b, 0, kPages);
    area_check_both(&a, &b, "taken apart");
    exchange_all(whole(&a), whole(&b), kPages);
    file_write("/sys/kernel/mm/ksm/run", "%ld", run);
    if (file_number("/proc/meminfo", "SwapTotal") > 0)
        all_swapped_out("swapped");
}

/*
 * ksmd picks a page by its address, and files what it has merged under it, wherever in the
 * same mapping the page is by then. One that was exchanged meanwhile would not be found any
 * more: by reclaim, for one.
 */
TEST(during_ksm, "during: KSM scans memory that is offered for exchange, and finds all of it again")
{
    enum { kRounds = 60 };
    static const char ksm[] = "/sys/kernel/mm/ksm/run";
    size_t causes[ZC_CAUSE_COUNT] = {0};

    need_root();
    if (file_number(ksm, NULL) < 0)
        ktap_skip("no KSM");
    if (nodes() < 2)
        ktap_skip("one NUMA node only");
    zcdev_open();
    fixture_area(FIXTURE_MERGEABLE, &a, "a", 4 * kPages, 0);
    file_write("/sys/kernel/mm/ksm/sleep_millisecs", "0");
    file_write("/sys/kernel/mm/ksm/smart_scan", "0");
    file_write(ksm, "1");
    for (int i = 0; i < kRounds; i++) {
        /* Of each page two, at new places; they are the ones that ksmd looks at now. */
        size_t first = i % 8, second = 2 * kPages + i * 7 % 8, pages = kPages;
        struct zcdev_outcome outcome;

        if (i % 20 == 0) {
            area_stamp(&a, 0, 2 * kPages);
            for (size_t k = 0; k < 2 * kPages; k++) {
                a.id[2 * kPages + k] = a.id[k];
                stamp(area_page(&a, 2 * kPages + k), a.id[k]);
            }
        }
        outcome = zcdev_pair(area_page(&a, first), area_page(&a, second), pages * PAGE_SIZE);
        area_exchanged(&a, first, &a, second, outcome.done / PAGE_SIZE);
        causes[outcome.cause]++;
        usleep(1000);
    }
    file_write(ksm, "0");
    area_check(&a, "under KSM");
    ktap_note("%zu exchanged, %zu COW, %zu raced", causes[ZC_CAUSE_NONE], causes[ZC_CAUSE_COW],
              causes[ZC_CAUSE_RACED]);
    for (int node = 0; node < 2; node++) {
        size_t there = move_to(&a, a.pages, node);

        CHECK(there == a.pages, "%zu of %zu pages found and moved to node %d", there, a.pages,
              node);
    }
    CHECK(causes[ZC_CAUSE_COW] == kRounds, "%zu of %d refused", causes[ZC_CAUSE_COW], kRounds);
}

TEST(wipe_on_fork, "memory advised for fork, exchanged with other memory, keeps its place's advice")
{
    static const int advice[] = {MADV_DONTFORK, MADV_WIPEONFORK};

    zcdev_open();
    for (int i = 0; i < 2; i++) {
        fixture_pair(FIXTURE_SMALL, &a, &b, kPages, 0, 9);
        NEED(!madvise(a.at, kPages * PAGE_SIZE, advice[i]));
        exchange_all(whole(&a), whole(&b), kPages);
        int pid = fork();
        if (!pid) {
            area_check(&b, "in the child");
            if (i == 1) {
                memset(a.id, 0, kPages * sizeof(*a.id));
                area_check(&a, "wiped in the child");
            }
            _exit(0);
        }
        ktap_wait(pid);
        area_check_both(&a, &b, "in the parent");
        area_stamp(&b, 0, kPages);
        exchange_all(whole(&a), whole(&b), kPages);
        area_release(&a);
        area_release(&b);
    }
}

/* ---- accounts ---- */

static const char group[] = "/sys/fs/cgroup/zc-test";

static void exchange_in_group(void *arg)
{
    char path[80];
    long current, charged;

    (void)arg;
    snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    NEED(!file_write(path, "%d", getpid()));
    snprintf(path, sizeof(path), "%s/memory.current", group);
    fixture_area(FIXTURE_SMALL, &a, "a", 4000, 0);
    current = file_number(path, NULL);
    CHECK(current >= 4000 * (long)PAGE_SIZE, "set-up: %ld bytes charged", current);
    fixture_area(FIXTURE_UNTOUCHED, &b, "b", 4000, 9);
    for (int i = 0; i < 5; i++)
        CHECK(exchange(whole(&a), whole(&b), 4000).cause == ZC_CAUSE_NONE, "stopped");
    charged = file_number(path, NULL);
    /* Charges are taken in batches of 64 pages per processor. */
    CHECK(labs(charged - current) < 300 * (long)PAGE_SIZE, "%ld bytes charged before, %ld after",
          current, charged);
    munmap(a.at, 4000 * PAGE_SIZE);
    munmap(b.at, 4000 * PAGE_SIZE);
    charged = file_number(path, NULL);
    CHECK(charged < current - 3500 * (long)PAGE_SIZE, "%ld bytes charged when all is unmapped",
          charged);
}

/* Pages charged to one group, exchanged with such of another, stay its own. */
TEST(memory_cgroup, "accounts: a memory cgroup is charged what it was, and gets all of it back")
{
    char path[80];

    need_root();
    zcdev_open();
    file_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    if (mkdir(group, 0755) && errno != EEXIST)
        ktap_skip("no cgroup2: %s", strerror(errno));
    snprintf(path, sizeof(path), "%s/memory.current", group);
    if (file_number(path, NULL) < 0) {
        rmdir(group);
        ktap_skip("no memory cgroup");
    }
    fixture_area(FIXTURE_SMALL, &a, "a", 300, 0); /* charged to the first group */
    ktap_wait(ktap_child(exchange_in_group, NULL));
    for (int i = 0; i < 100 && file_number(path, NULL) > 64 * (long)PAGE_SIZE; i++)
        usleep(20 * 1000);
    CHECK(file_number(path, NULL) <= 300 * (long)PAGE_SIZE, "%ld bytes charged to no group",
          file_number(path, NULL));
    CHECK(!rmdir(group), "rmdir: errno %d", errno);
}

/* ---- memory that is watched ---- */

static const char damon[] = "/sys/kernel/mm/damon/admin/kdamonds";

static int damon_write(const char *file, const char *text)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", damon, file);
    return file_write(path, "%s", text);
}

TEST(during_damon, "during: exchanges while DAMON watches the process lose nothing")
{
    char pid[16];

    need_root();
    snprintf(pid, sizeof(pid), "%d", getpid());
    if (damon_write("nr_kdamonds", "1"))
        ktap_skip("no DAMON");
    if (damon_write("0/contexts/nr_contexts", "1") ||
        damon_write("0/contexts/0/operations", "vaddr") ||
        damon_write("0/contexts/0/targets/nr_targets", "1") ||
        damon_write("0/contexts/0/targets/0/pid_target", pid))
        ktap_skip("DAMON cannot be set up");
    damon_write("0/contexts/0/monitoring_attrs/intervals/sample_us", "1000");
    damon_write("0/contexts/0/monitoring_attrs/intervals/aggr_us", "10000");
    exchanged_areas(600);
    if (damon_write("0/state", "on"))
        ktap_skip("DAMON cannot be started");
    for (int i = 0; i < 60; i++) {
        exchange_all(part(&a, i % 7), part(&b, i % 5), 590);
        usleep(1000);
    }
    damon_write("0/state", "off");
    damon_write("nr_kdamonds", "0");
    area_check_both(&a, &b, "watched");
}

/* ---- direct I/O ---- */

/* A block device of our own, in memory; its number, or -1. */
static int make_zram(void)
{
    long number = file_number("/sys/class/zram-control/hot_add", NULL);
    char path[64];

    if (number < 0)
        return -1;
    snprintf(path, sizeof(path), "/sys/block/zram%ld/disksize", number);
    return file_write(path, "16M") ? -1 : (int)number;
}

TEST(direct_io, "after: direct I/O from and to exchanged pages moves the right bytes")
{
    struct area c;
    char path[32];
    int number, fd;

    need_root();
    exchanged_areas(kPages);
    number = make_zram();
    if (number < 0)
        ktap_skip("no block device for direct I/O (zram)");
    snprintf(path, sizeof(path), "/dev/zram%d", number);
    fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    NEED(fd >= 0);
    fixture_area(FIXTURE_SMALL, &c, "c", kPages, 40);
    for (int i = 0; i < 10; i++) {
        NEED(pwrite(fd, a.at, kPages * PAGE_SIZE, 0) == kPages * (ssize_t)PAGE_SIZE);
        exchange_all(whole(&a), whole(&b), kPages);
        NEED(pread(fd, c.at, kPages * PAGE_SIZE, 0) == kPages * (ssize_t)PAGE_SIZE);
        memcpy(c.id, b.id, kPages * sizeof(*c.id));
        area_check(&c, "written and read again");
        exchange_all(whole(&c), whole(&a), kPages);
        area_stamp(&b, 0, kPages);
    }
    close(fd);
    file_write("/sys/class/zram-control/hot_remove", "%d", number);
}

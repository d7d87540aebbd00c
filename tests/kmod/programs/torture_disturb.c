/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "torture_disturb.h"

#include "ktap.h"
#include "pagemap.h"
#include "procfs.h"
#include "torture_pool.h"
#include "uffd.h"
#include "uring.h"
#include "zcdev.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADVICE_COLD = 20, ADVICE_PAGEOUT = 21, ADVICE_COLLAPSE = 25, kDisturbers = 4 };

static struct uring rings[kDisturbers];
static int uffd = -1;

/* One thread at a time: what is put back must be what was there. */
static pthread_mutex_t protection_lock = PTHREAD_MUTEX_INITIALIZER;

static struct pick pick_pool(struct crew_member *self, size_t most)
{
    return pick_in(self, &pool_regions[crew_random(self, POOL_MOVING)], most);
}

static void advise_pool(struct crew_member *self)
{
    static const int advice[] = {ADVICE_COLD, ADVICE_PAGEOUT, ADVICE_PAGEOUT, MADV_WILLNEED};
    struct pick pick = pick_pool(self, 64);

    madvise(pick.at, pick.pages * PAGE_SIZE, advice[crew_random(self, 4)]);
}

static void advise_scratch(struct crew_member *self)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE, ADVICE_PAGEOUT, ADVICE_COLD};
    struct pick pick = pick_in(self, &scratch_regions[crew_random(self, SCRATCH_REGIONS)], 64);

    madvise(pick.at, pick.pages * PAGE_SIZE, advice[crew_random(self, 4)]);
}

static void advise_huge(struct crew_member *self)
{
    const struct region *region = &pool_regions[crew_random(self, 2) ? POOL_HUGE : POOL_HUGE_TOO];
    struct pick pick = pick_in(self, region, HUGE_PAGES);

    madvise(pick.at, pick.pages * PAGE_SIZE, MADV_NOHUGEPAGE);
    usleep(crew_random(self, 500));
    madvise(region->at, region->pages * PAGE_SIZE, MADV_HUGEPAGE);
}

static void collapse(struct crew_member *self)
{
    const struct region *region = &pool_regions[crew_random(self, 2) ? POOL_HUGE : POOL_HUGE_TOO];

    madvise(region->at + crew_random(self, region->pages / HUGE_PAGES) * HUGE_SIZE, HUGE_SIZE,
            ADVICE_COLLAPSE);
}

static void merge(struct crew_member *self)
{
    const struct region *region = &pool_regions[POOL_MERGEABLE];
    struct pick pick = pick_in(self, region, region->pages);

    madvise(pick.at, pick.pages * PAGE_SIZE, MADV_UNMERGEABLE);
    usleep(crew_random(self, 500));
    madvise(region->at, region->pages * PAGE_SIZE, MADV_MERGEABLE);
}

static void lock(struct crew_member *self)
{
    struct pick pick = pick_pool(self, 32);

    if (mlock(pick.at, pick.pages * PAGE_SIZE))
        return;
    usleep(crew_random(self, 500));
    munlock(pick.at, pick.pages * PAGE_SIZE);
}

/* Splits huge pages' mappings and VMAs, and makes the two sides differ. */
static void protect(struct crew_member *self)
{
    struct pick pick = pick_pool(self, 8);

    pthread_mutex_lock(&protection_lock);
    mprotect(pick.at, pick.pages * PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    usleep(crew_random(self, 300));
    mprotect(pick.at, pick.pages * PAGE_SIZE, PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&protection_lock);
}

/* Without MREMAP_DONTUNMAP: for a moment nothing is at the old address. */
static void move(struct crew_member *self)
{
    struct region *region = &pool_regions[POOL_MOVING];
    const size_t len = region->pages * PAGE_SIZE;
    char *from = region->at, *to;

    pthread_rwlock_wrlock(&moving_lock);
    from = region->at;
    to = moving_windows[from == moving_windows[0]];
    if (crew_random(self, 3)) {
        if (syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != (long)to)
            FAIL("mremap: errno %d", errno);
        if (mmap(from, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != from)
            FAIL("mmap: errno %d", errno);
        __atomic_store_n(&region->at, to, __ATOMIC_RELAXED);
    } else {
        mprotect(from, len / 2, PROT_READ);
        mprotect(from, len, PROT_READ | PROT_WRITE);
    }
    pthread_rwlock_unlock(&moving_lock);
}

static void map_again(struct crew_member *self)
{
    struct pick pick = pick_in(self, &scratch_regions[SCRATCH_MAPPED], 100);
    const size_t len = pick.pages * PAGE_SIZE;

    pthread_mutex_lock(&protection_lock);
    munmap(pick.at, len);
    if (mmap(pick.at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) != pick.at)
        FAIL("mmap: errno %d", errno);
    for (size_t i = 0; i < pick.pages; i += 1 + crew_random(self, 5))
        ledger_stamp(pick.at + i * PAGE_SIZE, scratch_ledger.first + i);
    pthread_mutex_unlock(&protection_lock);
}

/* What is pinned stays where it is until it is let go. */
static void pin(struct crew_member *self)
{
    struct uring *ring = &rings[self->number % kDisturbers];
    struct pick pick = pick_pool(self, 4);
    struct iovec buffer = {pick.at, pick.pages * PAGE_SIZE};
    uint64_t was[8], is;

    if (!ring->sqes || pick.pages > 8 || uring_pin(ring, &buffer, 1))
        return;
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < pick.pages; i++) {
            is = ledger_word(&pool_ledger, pick.at + i * PAGE_SIZE, 7 * turn + i);
            CHECK(is && (!turn || is == was[i]),
                  "page %zu of a pinned buffer holds id %llu, and held %llu before", i,
                  (unsigned long long)is, (unsigned long long)was[i]);
            was[i] = is;
        }
        usleep(crew_random(self, 500));
    }
    uring_unpin(ring);
}

static void watch_faults(struct crew_member *self)
{
    struct pick pick = pick_pool(self, 16);

    /* All of the pool is there, or in swap: none of its pages is missing. */
    if (uffd < 0 ||
        uffd_register(uffd, pick.at, pick.pages * PAGE_SIZE, UFFDIO_REGISTER_MODE_MISSING))
        return;
    usleep(crew_random(self, 500));
    uffd_unregister(uffd, pick.at, pick.pages * PAGE_SIZE);
}

static void bind(struct crew_member *self)
{
    struct pick pick = pick_pool(self, 16);
    unsigned long node = 1 + crew_random(self, 2);

    syscall(SYS_mbind, pick.at, pick.pages * PAGE_SIZE, MPOL_PREFERRED, &node, 64UL, MPOL_MF_MOVE);
    usleep(crew_random(self, 300));
    syscall(SYS_mbind, pick.at, pick.pages * PAGE_SIZE, MPOL_DEFAULT, NULL, 0UL, 0);
}

static void migrate(struct crew_member *self)
{
    void *at[16];
    int want[16], is[16];

    for (int i = 0; i < 16; i++) {
        at[i] = pool_page(self);
        want[i] = crew_random(self, 2);
    }
    syscall(SYS_move_pages, 0, 16UL, at, want, is, MPOL_MF_MOVE);
}

static void compact(struct crew_member *self)
{
    (void)self;
    file_write("/proc/sys/vm/compact_memory", "1");
}

static void drop_caches(struct crew_member *self)
{
    (void)self;
    file_write("/proc/sys/vm/drop_caches", "3");
}

static void clear_refs(struct crew_member *self)
{
    file_write("/proc/self/clear_refs", "%d", crew_random(self, 2) ? 4 : 1);
}

static void split(struct crew_member *self)
{
    struct pick pick = pick_in(self, &pool_regions[POOL_HUGE], HUGE_PAGES);

    file_write("/sys/kernel/debug/split_huge_pages", "%d,0x%lx,0x%lx,0", getpid(), (long)pick.at,
               (long)pick.at + (long)(pick.pages * PAGE_SIZE));
}

/* A child sees all as it was at that moment, also when it exchanges its copies. */
static void fork_child(struct crew_member *self)
{
    int pid, status;

    pthread_rwlock_rdlock(&moving_lock);
    pid = fork();
    pthread_rwlock_unlock(&moving_lock);
    if (pid < 0)
        return;
    if (!pid) {
        pool_audit_in_child("in a child");
        for (int i = 0; i < 10; i++) {
            struct pick a = pick_pool(self, 16), b = pick_pool(self, 16);
            size_t pages = a.pages < b.pages ? a.pages : b.pages;

            /* Its own, now. */
            for (size_t k = 0; k < pages; k++) {
                __atomic_fetch_add((uint64_t *)(a.at + k * PAGE_SIZE + 4088), 0, __ATOMIC_RELAXED);
                __atomic_fetch_add((uint64_t *)(b.at + k * PAGE_SIZE + 4088), 0, __ATOMIC_RELAXED);
            }
            zcdev_pair(a.at, b.at, pages * PAGE_SIZE);
        }
        pool_audit_in_child("in a child, after exchanges");
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    CHECK(status == 0, "a child: status %#x", status);
}

static struct {
    const char *name;
    void (*turn)(struct crew_member *);
    unsigned int share; /* how often, relatively */
    uint64_t count;
} things[] = {
    {"madvise on the pool", advise_pool, 20, 0},
    {"madvise on scratch", advise_scratch, 20, 0},
    {"MADV_NOHUGEPAGE", advise_huge, 4, 0},
    {"MADV_COLLAPSE", collapse, 8, 0},
    {"MADV_UNMERGEABLE", merge, 2, 0},
    {"mlock", lock, 10, 0},
    {"mprotect", protect, 6, 0},
    {"mremap", move, 10, 0},
    {"munmap and mmap", map_again, 10, 0},
    {"io_uring buffers", pin, 10, 0},
    {"userfaultfd", watch_faults, 6, 0},
    {"mbind", bind, 5, 0},
    {"move_pages", migrate, 10, 0},
    {"compaction", compact, 1, 0},
    {"drop_caches", drop_caches, 1, 0},
    {"clear_refs", clear_refs, 2, 0},
    {"split_huge_pages", split, 3, 0},
    {"fork", fork_child, 2, 0},
};

enum { kThings = sizeof(things) / sizeof(*things) };

void disturb_open(void)
{
    for (int i = 0; i < kDisturbers; i++)
        if (uring_open(&rings[i], 4, 0))
            rings[i].sqes = NULL;
    uffd = uffd_open(0);
    file_write("/sys/kernel/mm/ksm/run", "1");
    file_write("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "50");
    file_write("/sys/kernel/mm/transparent_hugepage/khugepaged/alloc_sleep_millisecs", "50");
}

void disturb(struct crew_member *self)
{
    unsigned int shares = 0, at;

    for (int i = 0; i < kThings; i++)
        shares += things[i].share;
    at = crew_random(self, shares);
    for (int i = 0; i < kThings; i++) {
        if (at < things[i].share) {
            things[i].turn(self);
            __atomic_fetch_add(&things[i].count, 1, __ATOMIC_RELAXED);
            return;
        }
        at -= things[i].share;
    }
}

void disturb_report(void)
{
    for (int i = 0; i < kThings; i++)
        ktap_note("%8llu times %s", (unsigned long long)things[i].count, things[i].name);
}

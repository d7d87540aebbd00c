/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "torture_pool.h"

#include "ktap.h"
#include "pagemap.h"
#include "procfs.h"

#include <errno.h>
#include <sys/mman.h>

struct region pool_regions[POOL_REGIONS] = {
    [POOL_SMALL] = {.name = "small", .pages = 500},
    [POOL_SMALL_TOO] = {.name = "small, too", .pages = 700},
    [POOL_HUGE] = {.name = "huge", .pages = 2 * HUGE_PAGES, .huge = true},
    [POOL_HUGE_TOO] = {.name = "huge, too", .pages = 2 * HUGE_PAGES, .huge = true},
    [POOL_MERGEABLE] = {.name = "mergeable", .pages = 150},
    [POOL_MOVING] = {.name = "moving", .pages = 100},
};
struct region scratch_regions[SCRATCH_REGIONS] = {
    [SCRATCH_SMALL] = {.name = "scratch", .pages = 300},
    [SCRATCH_HUGE] = {.name = "huge scratch", .pages = HUGE_PAGES, .huge = true},
    [SCRATCH_MAPPED] = {.name = "mapped scratch", .pages = 200},
};
struct ledger pool_ledger, scratch_ledger;
pthread_rwlock_t moving_lock = PTHREAD_RWLOCK_INITIALIZER;
char *moving_windows[2];

/* Inaccessible memory on both sides, so that what is mapped elsewhere stays elsewhere. */
static char *window(size_t pages, bool huge, size_t offset)
{
    char *map = mmap(NULL, pages * PAGE_SIZE + 3 * HUGE_SIZE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t at = ((uintptr_t)map + HUGE_SIZE) / HUGE_SIZE * HUGE_SIZE;

    NEED(map != MAP_FAILED);
    return (char *)at + (huge ? 0 : offset % HUGE_PAGES * PAGE_SIZE);
}

static void make_region(struct region *region, size_t offset)
{
    region->at = window(region->pages, region->huge, offset);
    NEED(mmap(region->at, region->pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == region->at);
    if (region->huge)
        madvise(region->at, region->pages * PAGE_SIZE, MADV_HUGEPAGE);
}

static size_t pool_parts(struct ledger_part *parts)
{
    for (int i = 0; i < POOL_REGIONS; i++)
        parts[i] = (struct ledger_part){pool_regions[i].at, pool_regions[i].pages};
    return POOL_REGIONS;
}

static size_t scratch_parts(struct ledger_part *parts)
{
    for (int i = 0; i < SCRATCH_REGIONS; i++)
        parts[i] = (struct ledger_part){scratch_regions[i].at, scratch_regions[i].pages};
    return SCRATCH_REGIONS;
}

void pool_map(void)
{
    struct ledger_part parts[POOL_REGIONS];

    for (int i = 0; i < POOL_REGIONS; i++)
        make_region(&pool_regions[i], 100 + 111 * i);
    for (int i = 0; i < SCRATCH_REGIONS; i++)
        make_region(&scratch_regions[i], 77 * i);
    madvise(pool_regions[POOL_MERGEABLE].at, pool_regions[POOL_MERGEABLE].pages * PAGE_SIZE,
            MADV_MERGEABLE);
    moving_windows[0] = pool_regions[POOL_MOVING].at;
    moving_windows[1] = window(pool_regions[POOL_MOVING].pages, false, 77);
    ledger_reserve(&pool_ledger, parts, pool_parts(parts));
    ledger_reserve(&scratch_ledger, parts, scratch_parts(parts));
}

void pool_open(void)
{
    struct ledger_part parts[POOL_REGIONS];

    ledger_open(&pool_ledger, parts, pool_parts(parts));
    ledger_open(&scratch_ledger, parts, scratch_parts(parts));
}

void pool_audit(const char *when)
{
    struct ledger_part parts[POOL_REGIONS];

    ledger_audit(&pool_ledger, parts, pool_parts(parts), when);
}

void pool_audit_in_child(const char *when)
{
    struct ledger_part parts[POOL_REGIONS];

    ledger_audit_snapshot(&pool_ledger, parts, pool_parts(parts), when);
}

void scratch_audit(const char *when)
{
    for (int r = 0; r < SCRATCH_REGIONS; r++) {
        const struct region *region = &scratch_regions[r];

        /* Parts of it may be unmapped at the moment. */
        if (r == SCRATCH_MAPPED)
            continue;
        for (size_t i = 0; i < region->pages; i++) {
            const uint64_t *page = (const uint64_t *)(region->at + i * PAGE_SIZE);

            for (unsigned int k = 0; k < LEDGER_STAMP; k += 5)
                CHECK(!page[k] || ledger_word_fits(&scratch_ledger, (const char *)page, k),
                      "%s: page %zu of %s: word %u is %#llx", when, i, region->name, k,
                      (unsigned long long)page[k]);
        }
    }
}

void pool_page_out(void)
{
    if (!is_root() || file_number("/proc/meminfo", "SwapTotal") <= 0)
        return;
    for (int i = 0; i < POOL_REGIONS; i++) {
        size_t left = page_out(pool_regions[i].at, pool_regions[i].pages);

        CHECK(!left, "%zu pages of %s cannot be swapped out", left, pool_regions[i].name);
    }
}

static struct pick pick_units(struct crew_member *self, const struct region *region, size_t unit,
                              size_t most)
{
    size_t units = region->pages / unit, count = most / unit;
    char *at = __atomic_load_n(&region->at, __ATOMIC_RELAXED);

    if (count > units)
        count = units;
    count = 1 + crew_random(self, count ? count : 1);
    return (struct pick){at + crew_random(self, units - count + 1) * unit * PAGE_SIZE,
                         count * unit};
}

struct pick pick_in(struct crew_member *self, const struct region *region, size_t most)
{
    return pick_units(self, region, region->huge && crew_random(self, 2) ? HUGE_PAGES : 1, most);
}

void pick_pair(struct crew_member *self, bool in_pool, size_t most, struct pick *a, struct pick *b)
{
    const struct region *regions = in_pool ? pool_regions : scratch_regions, *of[2];
    const size_t number = in_pool ? POOL_REGIONS : SCRATCH_REGIONS;
    const unsigned int kind = crew_random(self, 8);
    size_t unit = 1;

    for (int i = 0; i < 2; i++) {
        do
            of[i] = &regions[crew_random(self, number)];
        while (kind > 1 && of[i]->huge != (kind > 5));
    }
    if (kind > 5) {
        unit = HUGE_PAGES;
        most = 2 * HUGE_PAGES;
    }
    *a = pick_units(self, of[0], unit, most);
    *b = pick_units(self, of[1], unit, most);
    if (a->pages > b->pages)
        a->pages = b->pages;
    b->pages = a->pages;
}

char *pool_page(struct crew_member *self)
{
    const struct region *region = &pool_regions[crew_random(self, POOL_MOVING)];

    return region->at + crew_random(self, region->pages) * PAGE_SIZE;
}

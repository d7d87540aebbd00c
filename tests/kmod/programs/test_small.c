/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* Small pages of every kind that is exchanged, with every other. */
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPages = 24 };

/*
 * The pages have found their new places not when their content is right, but
 * when reclaim, which knows only what their folios tell, takes them out there.
 */
static void swapped_out_and_in(struct area *a, struct area *b)
{
    size_t left;

    if (!is_root() || file_number("/proc/meminfo", "SwapTotal") <= 0)
        return;
    left = page_out(a->at, a->pages) + page_out(b->at, b->pages);
    CHECK(!left, "%s and %s: %zu pages cannot be swapped out any more", a->name, b->name, left);
    area_check(a, "swapped out and in");
    area_check(b, "swapped out and in");
}

/* Each kind once on the other side; at other offsets within their page tables. */
static void with_every_kind(enum fixture kind)
{
    for (enum fixture other = FIXTURE_SMALL; other < FIXTURE_PLAIN_END; other++) {
        struct area a, b;

        if (other == FIXTURE_SWAP_CACHE && kind != FIXTURE_SWAP_CACHE)
            continue; /* may be missing; its own test has the pair the other way round */
        if (other == FIXTURE_COW_BROKEN && kind == FIXTURE_COW_BROKEN)
            continue;
        /* What forks comes first, for the child shares what is there already. */
        if (other == FIXTURE_COW_BROKEN)
            fixture_area(other, &b, fixture_name(other), kPages, 500);
        fixture_area(kind, &a, fixture_name(kind), kPages, 3);
        if (other != FIXTURE_COW_BROKEN)
            fixture_area(other, &b, fixture_name(other), kPages, 500);
        /* Twice and in part: to the other's pages, and some of the way back. */
        exchange_all(whole(&a), whole(&b), kPages);
        exchange_all(part(&a, 2), part(&b, 7), 9);
        swapped_out_and_in(&a, &b);
        area_stamp(&a, 0, kPages);
        area_stamp(&b, 0, kPages);
        exchange_all(whole(&b), whole(&a), kPages);
        area_release(&a);
        area_release(&b);
    }
}

#define EVERY_KIND(kind, claim)                                                                    \
    TEST(every_kind_##kind, claim " and every other kind are exchanged, and reclaim finds them")   \
    {                                                                                              \
        zcdev_open();                                                                              \
        with_every_kind(kind);                                                                     \
    }

EVERY_KIND(FIXTURE_SMALL, "small pages")
EVERY_KIND(FIXTURE_UNTOUCHED, "untouched memory")
EVERY_KIND(FIXTURE_ZERO_PAGE, "the zero page")
EVERY_KIND(FIXTURE_MIXED, "mixed pages")
EVERY_KIND(FIXTURE_SWAPPED, "swapped pages")
EVERY_KIND(FIXTURE_SWAP_CACHE, "pages in the swap cache")
EVERY_KIND(FIXTURE_FREED, "MADV_FREE pages")
EVERY_KIND(FIXTURE_MOVED, "memory moved by mremap")
EVERY_KIND(FIXTURE_DEV_ZERO, "private mappings of /dev/zero")
EVERY_KIND(FIXTURE_ADVISED, "otherwise advised memory")
EVERY_KIND(FIXTURE_COW_BROKEN, "pages rewritten since a child ended")

TEST(no_copy, "small pages change places, frame by frame: nothing is copied")
{
    struct area a, b;

    need_root();
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 700, 100, 400);
    exchange_frames(whole(&a), whole(&b), 700);
    exchange_frames(whole(&b), whole(&a), 700);
    exchange_frames(part(&a, 5), part(&b, 77), 1);
}

TEST(no_mapping_touched, "no mapping is made, split, merged or removed")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 64, 0, 9);
    exchange_all(part(&a, 10), part(&b, 20), 30);
    CHECK(mappings_of(a.at, 64 * PAGE_SIZE) == 1 && mappings_of(b.at, 64 * PAGE_SIZE) == 1,
          "%d and %d mappings", mappings_of(a.at, 64 * PAGE_SIZE),
          mappings_of(b.at, 64 * PAGE_SIZE));
}

TEST(within_one_mapping, "two ranges of one mapping are exchanged, side by side and apart")
{
    struct area area;

    zcdev_open();
    fixture_area(FIXTURE_SMALL, &area, "a", 1200, 400);
    exchange_all(part(&area, 0), part(&area, 1), 1);
    exchange_all(part(&area, 10), part(&area, 20), 10);
    exchange_all(part(&area, 30), part(&area, 20), 10);
    exchange_all(part(&area, 0), part(&area, 600), 600);
    exchange_all(part(&area, 0), part(&area, 1199), 1);
    swapped_out_and_in(&area, &area);
}

TEST(untouched_stays, "untouched memory stays untouched: no page is allocated for it")
{
    struct area a, b;
    long before;

    zcdev_open();
    fixture_pair(FIXTURE_UNTOUCHED, &a, &b, 2048, 0, 9);
    before = rss_anon_pages();
    CHECK(exchange(whole(&a), whole(&b), 2048).cause == ZC_CAUSE_NONE, "not exchanged");
    CHECK(rss_anon_pages() - before < 8, "%ld pages more", rss_anon_pages() - before);
    CHECK(pages_present(a.at, 2048) + pages_present(b.at, 2048) == 0, "pages there");
}

TEST(untouched_moves, "a page exchanged with untouched memory leaves untouched memory behind")
{
    struct area a, b;
    size_t there;
    long before;

    zcdev_open();
    fixture_area(FIXTURE_SMALL, &a, "a", 1000, 0);
    fixture_area(FIXTURE_UNTOUCHED, &b, "b", 1000, 9);
    before = rss_anon_pages();
    CHECK(exchange(whole(&a), whole(&b), 1000).cause == ZC_CAUSE_NONE, "not exchanged");
    /* At most one page per page table of the side that had none, and one to begin with. */
    there = pages_present(a.at, 1000);
    CHECK(there <= 4, "%zu pages allocated", there);
    CHECK(pages_present(b.at, 1000) == 1000, "%zu pages arrived", pages_present(b.at, 1000));
    CHECK(rss_anon_pages() - before <= 8, "%ld pages more", rss_anon_pages() - before);
    area_check_both(&a, &b, "exchanged");
    swapped_out_and_in(&a, &b);
}

TEST(rss_unchanged, "the resident size is what it was, and comes to nothing when both are unmapped")
{
    struct area a, b;
    long before, exchanged, after;

    zcdev_open();
    before = rss_anon_pages();
    fixture_area(FIXTURE_SMALL, &a, "a", 1500, 0);
    fixture_area(FIXTURE_MIXED, &b, "b", 1500, 9);
    area_check(&b, "before");
    exchanged = rss_anon_pages();
    for (int i = 0; i < 5; i++)
        CHECK(exchange(whole(&a), whole(&b), 1500).cause == ZC_CAUSE_NONE, "not exchanged");
    CHECK(labs(rss_anon_pages() - exchanged) <= 8, "%ld pages before, %ld after", exchanged,
          rss_anon_pages());
    munmap(a.at, 1500 * PAGE_SIZE);
    munmap(b.at, 1500 * PAGE_SIZE);
    after = rss_anon_pages();
    CHECK(labs(after - before) <= 128, "%ld pages at first, %ld at last", before, after);
}

TEST(heap_and_bss, "heap, static data and mapped memory are exchanged with each other")
{
    static char bss[(kPages + 1) * 4096];
    uintptr_t top = ((uintptr_t)sbrk(0) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
    struct area heap, data, mapped;

    zcdev_open();
    NEED(!brk((void *)(top + kPages * PAGE_SIZE)));
    area_of(&heap, "heap", (void *)top, kPages);
    area_of(&data, "data", (void *)(((uintptr_t)bss + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1)), kPages);
    fixture_area(FIXTURE_SMALL, &mapped, "mapped", kPages, 9);
    area_stamp(&heap, 0, kPages);
    exchange_all(whole(&heap), whole(&mapped), kPages);
    if (exchange(whole(&data), whole(&mapped), kPages).cause != ZC_CAUSE_FILE) {
        area_check(&data, "exchanged");
        exchange_all(whole(&data), whole(&heap), kPages);
        swapped_out_and_in(&heap, &data);
    }
    swapped_out_and_in(&heap, &mapped);
}

TEST(written_behind, "pages are written to at their new places without a copy")
{
    struct area a, b;
    uint64_t frame_a, frame_b;

    need_root();
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    exchange_all(whole(&a), whole(&b), 8);
    frame_a = pfn_of(a.at);
    frame_b = pfn_of(b.at);
    area_stamp(&a, 0, 8);
    area_stamp(&b, 0, 8);
    CHECK(pfn_of(a.at) == frame_a && pfn_of(b.at) == frame_b, "copied when written to");
    area_check_both(&a, &b, "written");
}

/* CRIU and live migration would miss a page that comes without being marked. */
TEST(soft_dirty, "both sides are soft-dirty where they were exchanged, and nowhere else")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 64, 0, 9);
    if (file_write("/proc/self/clear_refs", "4"))
        ktap_skip("no clear_refs");
    CHECK(!(pagemap_of(a.at) & PM_SOFT_DIRTY), "set-up: still soft-dirty");
    CHECK(exchange(part(&a, 10), part(&b, 20), 30).cause == ZC_CAUSE_NONE, "not exchanged");
    for (size_t i = 0; i < 64; i++) {
        CHECK(!(pagemap_of(area_page(&a, i)) & PM_SOFT_DIRTY) == !(i >= 10 && i < 40),
              "page %zu of a", i);
        CHECK(!(pagemap_of(area_page(&b, i)) & PM_SOFT_DIRTY) == !(i >= 20 && i < 50),
              "page %zu of b", i);
    }
    area_check_both(&a, &b, "soft-dirty");
}

/* Reclaim would take a page in use for an idle one, or the other way round. */
TEST(young, "pages take along whether they were used of late")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 64, 0, 9);
    drain_lru();
    /* Where memory has been short the kernel is still ageing pages now and then. */
    bool set_up = false;
    for (int turn = 0; turn < 10 && !set_up; turn++) {
        if (file_write("/proc/self/clear_refs", "1"))
            ktap_skip("no clear_refs");
        area_check_part(&a, 0, 40, "used");
        set_up = smaps_kib("Referenced", a.at, 64 * PAGE_SIZE) == 160 &&
                 smaps_kib("Referenced", b.at, 64 * PAGE_SIZE) == 0;
    }
    if (!set_up)
        ktap_skip("the kernel keeps ageing these pages");
    CHECK(exchange(whole(&a), whole(&b), 64).cause == ZC_CAUSE_NONE, "not exchanged");
    CHECK(smaps_kib("Referenced", a.at, 64 * PAGE_SIZE) == 0 &&
              smaps_kib("Referenced", b.at, 64 * PAGE_SIZE) == 160,
          "%ld and %ld KiB used", smaps_kib("Referenced", a.at, 64 * PAGE_SIZE),
          smaps_kib("Referenced", b.at, 64 * PAGE_SIZE));
    area_check_both(&a, &b, "exchanged");
}

/*
 * A clean page that is in swap already is dropped without being written. If a
 * written one came out of an exchange as clean, its new content would be lost.
 */
TEST(dirty, "what was written before an exchange survives being swapped out after it")
{
    struct area a, b;

    need_swap();
    zcdev_open();
    for (int i = 0; i < 8; i++) {
        fixture_pair(FIXTURE_SWAPPED, &a, &b, kPages, 0, 9);
        /* Some are read only, some are written again. */
        area_check_part(&a, 0, kPages / 2, "read");
        area_stamp(&a, kPages / 2, kPages / 2);
        area_check_part(&b, 0, kPages / 3, "read");
        area_stamp(&b, kPages / 3, kPages / 3);
        exchange_all(whole(&a), whole(&b), kPages);
        swapped_out_and_in(&a, &b);
        swapped_out_and_in(&b, &a);
        area_release(&a);
        area_release(&b);
    }
}

TEST(freed_other_side, "a page exchanged with a MADV_FREE one is not dropped in its stead")
{
    struct area a, b;

    need_swap();
    zcdev_open();
    fixture_area(FIXTURE_FREED, &a, "a", kPages, 0);
    fixture_area(FIXTURE_SMALL, &b, "b", kPages, 9);
    exchange_all(whole(&a), whole(&b), kPages);
    swapped_out_and_in(&a, &b);
    for (size_t i = 0; i < kPages; i++)
        CHECK(a.id[i] && !(a.id[i] & ID_OR_ZERO), "oracle");
    /* And one written after MADV_FREE is kept wherever it is. */
    area_stamp(&b, 0, kPages);
    exchange_all(whole(&a), whole(&b), kPages);
    swapped_out_and_in(&a, &b);
}

TEST(many_sizes, "every size from 1 to 70 pages, around a page table's end")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 140, HUGE_PAGES - 35, HUGE_PAGES - 20);
    for (size_t pages = 1; pages <= 70; pages++) {
        CHECK(exchange(part(&a, pages / 2), part(&b, 70 - pages), pages).cause == ZC_CAUSE_NONE,
              "%zu pages", pages);
    }
    area_check_both(&a, &b, "all sizes");
    swapped_out_and_in(&a, &b);
}

TEST(large, "64 MiB at once, over many page tables at different offsets")
{
    struct area a, b;
    const size_t pages = 16384;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, pages, 100, 301);
    exchange_all(whole(&a), whole(&b), pages);
}

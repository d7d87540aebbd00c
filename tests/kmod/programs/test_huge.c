/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* Huge pages: exchanged whole, refused in part, never split. */
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void still_huge(const struct area *area, size_t pages)
{
    const long kib = huge_kib(area->at, area->pages);

    CHECK(kib == (long)pages * 4, "%s: %ld KiB huge, not %zu", area->name, kib, pages * 4);
}

/* Brought in from swap, a page may still be, or be anew, a part of a folio that is refused. */
static bool in_large_folio(const struct area *area, size_t page)
{
    return page_is(area_page(area, page), KPF_COMPOUND_HEAD) ||
           page_is(area_page(area, page), KPF_COMPOUND_TAIL);
}

TEST(huge_whole, "huge: congruent huge pages are exchanged whole, without a copy, and stay huge")
{
    struct area a, b;
    const size_t pages = 3 * HUGE_PAGES;

    need_root();
    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, pages, 0, 0);
    exchange_frames(whole(&a), whole(&b), pages);
    exchange_frames(part(&a, HUGE_PAGES), part(&b, 2 * HUGE_PAGES), HUGE_PAGES);
    exchange_frames(part(&a, 0), part(&a, HUGE_PAGES), HUGE_PAGES);
    still_huge(&a, pages);
    still_huge(&b, pages);
    area_stamp(&a, 0, pages);
    area_check(&a, "written");
    still_huge(&a, pages);
}

TEST(huge_swapped_out, "huge: exchanged huge pages are found by reclaim, and come back right")
{
    struct area a, b;
    struct zcdev_outcome outcome;
    const size_t pages = 2 * HUGE_PAGES;
    size_t left;

    need_swap();
    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, pages, 0, 0);
    exchange_all(whole(&a), whole(&b), pages);
    left = page_out(a.at, pages) + page_out(b.at, pages);
    CHECK(!left, "%zu pages cannot be swapped out any more", left);
    area_check_both(&a, &b, "swapped out and in");
    outcome = exchange(whole(&b), whole(&a), pages);
    CHECK(outcome.cause == ZC_CAUSE_NONE || (outcome.cause == ZC_CAUSE_PAGE_SIZE &&
                                             (in_large_folio(&a, outcome.done / PAGE_SIZE) ||
                                              in_large_folio(&b, outcome.done / PAGE_SIZE))),
          "%s", zcdev_cause(outcome.cause));
    area_check_both(&a, &b, "exchanged again");
}

/* Splitting walks the reverse mapping: done by all means there are. */
TEST(huge_split_after, "huge: exchanged huge pages are split like others, and lose nothing")
{
    struct area a, b;
    const size_t pages = 4 * HUGE_PAGES;
    size_t left;

    need_swap();
    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, pages, 0, 0);
    exchange_all(whole(&a), whole(&b), pages);
    /* The mapping only; a part given up; a part swapped out; on demand. */
    NEED(!mprotect(area_page(&a, 7), PAGE_SIZE, PROT_READ));
    NEED(!madvise(area_page(&a, HUGE_PAGES + 9), PAGE_SIZE, MADV_DONTNEED));
    a.id[HUGE_PAGES + 9] = 0;
    left = page_out(area_page(&a, 2 * HUGE_PAGES + 11), 5);
    CHECK(!left, "%zu pages of a part cannot be swapped out", left);
    /* With debugfs: of each huge page of this process. */
    file_write("/sys/kernel/debug/split_huge_pages", "%d,0x%lx,0x%lx,0", getpid(), (long)b.at,
               (long)b.at + (long)(pages * PAGE_SIZE));
    area_check_both(&a, &b, "split");
    if (huge_kib(b.at, pages))
        ktap_note("no split_huge_pages in debugfs");
    left = page_out(a.at, pages) + page_out(b.at, pages);
    CHECK(!left, "%zu pages cannot be swapped out any more", left);
    area_check_both(&a, &b, "swapped out and in");
}

TEST(huge_unmapped_after, "huge: a part of an exchanged huge page is unmapped, the rest is kept")
{
    struct area a, b;
    const size_t pages = 2 * HUGE_PAGES;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, pages, 0, 0);
    exchange_all(whole(&a), whole(&b), pages);
    NEED(!munmap(area_page(&a, 100), 300 * PAGE_SIZE));
    area_check_part(&a, 0, 100, "unmapped");
    area_check_part(&a, 400, pages - 400, "unmapped");
    area_check(&b, "unmapped");
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
        CHECK(!page_out(a.at, 100) && !page_out(area_page(&a, 400), pages - 400),
              "not swapped out");
        area_check_part(&a, 0, 100, "swapped out and in");
        area_check_part(&a, 400, pages - 400, "swapped out and in");
    }
}

TEST(huge_one_side, "huge: on one side only, either one, is PAGE_SIZE, and nothing is split")
{
    struct area a, b;

    zcdev_open();
    fixture_area(FIXTURE_HUGE, &a, "a", HUGE_PAGES, 0);
    fixture_area(FIXTURE_SMALL, &b, "b", HUGE_PAGES, 0);
    exchange_stops(whole(&a), whole(&b), HUGE_PAGES, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(whole(&b), whole(&a), HUGE_PAGES, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(part(&b, 5), part(&a, 8), 100, ZC_CAUSE_PAGE_SIZE, 0);
    still_huge(&a, HUGE_PAGES);
}

TEST(huge_not_congruent,
     "huge: both sides huge but not congruent is PAGE_SIZE, and nothing is split")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, 2 * HUGE_PAGES, 0, 0);
    exchange_stops(part(&a, 0), part(&b, 1), HUGE_PAGES, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(part(&a, 256), part(&b, 0), HUGE_PAGES, ZC_CAUSE_PAGE_SIZE, 0);
    still_huge(&a, 2 * HUGE_PAGES);
    still_huge(&b, 2 * HUGE_PAGES);
}

TEST(huge_part, "huge: a part of a huge page is PAGE_SIZE, before its end and from its middle")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, 2 * HUGE_PAGES, 0, 0);
    exchange_stops(whole(&a), whole(&b), 1, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(whole(&a), whole(&b), HUGE_PAGES - 1, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(part(&a, 1), part(&b, 1), HUGE_PAGES - 1, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(whole(&a), whole(&b), HUGE_PAGES + 1, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES);
    exchange_stops(part(&a, 10), part(&a, 100), 20, ZC_CAUSE_PAGE_SIZE, 0);
    still_huge(&a, 2 * HUGE_PAGES);
    still_huge(&b, 2 * HUGE_PAGES);
}

TEST(huge_between_small, "huge: small, huge and small pages in one range, congruent")
{
    const size_t pages = 200 + 2 * HUGE_PAGES + 200, first = HUGE_PAGES - 200;
    struct area *side[2], a, b;

    zcdev_open();
    side[0] = &a;
    side[1] = &b;
    for (int i = 0; i < 2; i++) {
        area_reserve(side[i], i ? "b" : "a", pages, first);
        fixture_make(FIXTURE_SMALL, side[i], 0, 200);
        fixture_make(FIXTURE_HUGE, side[i], 200, 2 * HUGE_PAGES);
        fixture_make(FIXTURE_SMALL, side[i], 200 + 2 * HUGE_PAGES, 200);
    }
    exchange_all(whole(&a), whole(&b), pages);
    exchange_all(part(&a, 150), part(&b, 150), 2 * HUGE_PAGES + 100);
    still_huge(&a, 2 * HUGE_PAGES);
    still_huge(&b, 2 * HUGE_PAGES);
}

TEST(huge_stops_within, "huge: small pages before a huge page on one side only are exchanged")
{
    struct area a, b;

    zcdev_open();
    area_reserve(&a, "a", 2 * HUGE_PAGES, 0);
    fixture_make(FIXTURE_SMALL, &a, 0, HUGE_PAGES);
    fixture_make(FIXTURE_HUGE, &a, HUGE_PAGES, HUGE_PAGES);
    fixture_area(FIXTURE_SMALL, &b, "b", 2 * HUGE_PAGES, 77);
    exchange_stops(part(&a, 100), part(&b, 0), 1000 - 100, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES - 100);
    exchange_stops(part(&b, 3), part(&a, 100), 1000 - 100, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES - 100);
    still_huge(&a, HUGE_PAGES);
}

/* A huge page may be had for the side that has none; to be refused is all right, too. */
static void whole_or_refused(enum fixture with, size_t offset)
{
    struct area a, b;
    struct zcdev_outcome outcome;

    zcdev_open();
    fixture_area(FIXTURE_HUGE, &a, "a", 2 * HUGE_PAGES, 0);
    fixture_area(with, &b, "b", 2 * HUGE_PAGES, offset);
    outcome = exchange(whole(&a), whole(&b), 2 * HUGE_PAGES);
    CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_PAGE_SIZE, "%s",
          zcdev_cause(outcome.cause));
    CHECK(outcome.done % HUGE_SIZE == 0, "done %zu", (size_t)outcome.done);
    area_check_both(&a, &b, "whole or refused");
    if (outcome.cause == ZC_CAUSE_PAGE_SIZE)
        still_huge(&a, 2 * HUGE_PAGES);
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
        CHECK(!page_out(a.at, 2 * HUGE_PAGES) && !page_out(b.at, 2 * HUGE_PAGES),
              "not swapped out");
        area_check_both(&a, &b, "swapped out and in");
    }
}

TEST(huge_and_zero, "huge: with the huge zero page: whole, or refused")
{
    whole_or_refused(FIXTURE_HUGE_ZERO, 0);
}

TEST(huge_and_untouched, "huge: with untouched memory that may be huge: whole, or refused")
{
    whole_or_refused(FIXTURE_HUGE_UNTOUCHED, 0);
}

TEST(huge_and_untouched_small,
     "huge: with untouched memory that may not be huge: refused, not split")
{
    struct area a, b;

    zcdev_open();
    fixture_area(FIXTURE_HUGE, &a, "a", HUGE_PAGES, 0);
    fixture_area(FIXTURE_UNTOUCHED, &b, "b", HUGE_PAGES, 0);
    exchange_stops(whole(&a), whole(&b), HUGE_PAGES, ZC_CAUSE_PAGE_SIZE, 0);
    exchange_stops(whole(&b), whole(&a), HUGE_PAGES, ZC_CAUSE_PAGE_SIZE, 0);
    still_huge(&a, HUGE_PAGES);
}

/* Like huge memory in every way but one: exchanged or refused, each page whole. */
static void odd_kinds(enum fixture kind)
{
    for (enum fixture with = FIXTURE_SMALL; with < FIXTURE_HUGE_END; with++) {
        struct area a, b;
        struct zcdev_outcome outcome;

        if (with != FIXTURE_SMALL && with != FIXTURE_UNTOUCHED && with != FIXTURE_MIXED &&
            with != FIXTURE_HUGE)
            continue;
        for (int turn = 0; turn < 2; turn++) {
            fixture_area(kind, &a, fixture_name(kind), HUGE_PAGES, 0);
            fixture_area(with, &b, fixture_name(with), HUGE_PAGES, 0);
            outcome = turn ? exchange(whole(&b), whole(&a), HUGE_PAGES)
                           : exchange(whole(&a), whole(&b), HUGE_PAGES);
            CHECK(outcome.cause == ZC_CAUSE_NONE || outcome.cause == ZC_CAUSE_PAGE_SIZE,
                  "%s and %s: %s", a.name, b.name, zcdev_cause(outcome.cause));
            CHECK(kind != FIXTURE_HUGE_SWAPPED || with == FIXTURE_HUGE ||
                      outcome.cause == ZC_CAUSE_NONE ||
                      in_large_folio(&a, outcome.done / PAGE_SIZE),
                  "%s and %s: %s", a.name, b.name, zcdev_cause(outcome.cause));
            area_check_both(&a, &b, "odd kinds");
            if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
                CHECK(!page_out(a.at, HUGE_PAGES) && !page_out(b.at, HUGE_PAGES),
                      "%s and %s: not swapped out", a.name, b.name);
                area_check_both(&a, &b, "swapped out and in");
            }
            area_release(&a);
            area_release(&b);
        }
    }
}

#define ODD(kind, claim)                                                                           \
    TEST(odd_##kind, claim ": exchanged or refused, nothing lost, and reclaim finds them")         \
    {                                                                                              \
        zcdev_open();                                                                              \
        odd_kinds(kind);                                                                           \
    }

ODD(FIXTURE_HUGE_ZERO, "the huge zero page")
ODD(FIXTURE_HUGE_UNTOUCHED, "untouched MADV_HUGEPAGE memory")
ODD(FIXTURE_HUGE_SWAPPED, "huge pages swapped out")
ODD(FIXTURE_HUGE_BY_MPROTECT, "huge pages by small entries, since mprotect")
ODD(FIXTURE_HUGE_BY_DONTNEED, "huge pages by small entries, since MADV_DONTNEED")
ODD(FIXTURE_HUGE_FEW, "folios of 64 KiB")

/* It is one page to its folio's count, whatever it is mapped by: it cannot go alone. */
TEST(huge_by_small_entries, "huge: pages of a huge page mapped by small entries are PAGE_SIZE")
{
    static const enum fixture kinds[] = {FIXTURE_HUGE_BY_MPROTECT, FIXTURE_HUGE_BY_DONTNEED};
    struct area a, b;

    zcdev_open();
    for (int i = 0; i < 2; i++) {
        fixture_area(kinds[i], &a, "a", HUGE_PAGES, 0);
        fixture_area(FIXTURE_SMALL, &b, "b", HUGE_PAGES, 0);
        exchange_stops(part(&a, 5), part(&b, 9), 20, ZC_CAUSE_PAGE_SIZE, 0);
        exchange_stops(part(&b, 5), part(&a, 9), 20, ZC_CAUSE_PAGE_SIZE, 0);
        if (is_root())
            CHECK(page_is(area_page(&a, 5), KPF_THP), "the huge page was split");
        area_release(&a);
        area_release(&b);
    }
}

TEST(huge_soft_dirty, "huge: both sides are soft-dirty where they were exchanged")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, 2 * HUGE_PAGES, 0, 0);
    if (file_write("/proc/self/clear_refs", "4"))
        ktap_skip("no clear_refs");
    CHECK(exchange(whole(&a), part(&b, HUGE_PAGES), HUGE_PAGES).cause == ZC_CAUSE_NONE, "stopped");
    for (size_t i = 0; i < 2 * HUGE_PAGES; i += 8) {
        CHECK(!(pagemap_of(area_page(&a, i)) & PM_SOFT_DIRTY) == !(i < HUGE_PAGES), "page %zu of a",
              i);
        CHECK(!(pagemap_of(area_page(&b, i)) & PM_SOFT_DIRTY) == !(i >= HUGE_PAGES),
              "page %zu of b", i);
    }
    area_check_both(&a, &b, "soft-dirty");
}

TEST(huge_rss, "huge: the resident size is what it was, and comes to nothing")
{
    struct area a, b;
    const size_t pages = 8 * HUGE_PAGES;
    long before, exchanged;

    zcdev_open();
    before = rss_anon_pages();
    fixture_pair(FIXTURE_HUGE, &a, &b, pages, 0, 0);
    exchanged = rss_anon_pages();
    for (int i = 0; i < 9; i++)
        CHECK(exchange(whole(&a), whole(&b), pages).cause == ZC_CAUSE_NONE, "stopped");
    CHECK(rss_anon_pages() == exchanged, "%ld before, %ld after", exchanged, rss_anon_pages());
    area_check_both(&a, &b, "nine times");
    munmap(a.at, pages * PAGE_SIZE);
    munmap(b.at, pages * PAGE_SIZE);
    CHECK(rss_anon_pages() - before < 128, "%ld at first, %ld at last", before, rss_anon_pages());
}

TEST(huge_mlocked, "huge: locked huge pages are refused, on either side")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, HUGE_PAGES, 0, 0);
    NEED(!mlock(b.at, HUGE_SIZE));
    exchange_stops(whole(&a), whole(&b), HUGE_PAGES, ZC_CAUSE_LOCKED, 0);
    exchange_stops(whole(&b), whole(&a), HUGE_PAGES, ZC_CAUSE_LOCKED, 0);
}

TEST(huge_pinned, "huge: a huge page of which one page is pinned is refused whole")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_HUGE, &a, &b, 2 * HUGE_PAGES, 0, 0);
    pin_pages(area_page(&b, HUGE_PAGES + 300), 1);
    exchange_stops(whole(&a), whole(&b), 2 * HUGE_PAGES, ZC_CAUSE_PINNED, HUGE_PAGES);
    exchange_stops(whole(&b), whole(&a), 2 * HUGE_PAGES, ZC_CAUSE_PINNED, HUGE_PAGES);
    unpin_pages();
    exchange_all(whole(&b), whole(&a), 2 * HUGE_PAGES);
}

TEST(huge_cow, "huge: a huge page shared with a child is refused, until it is written to")
{
    struct area a, b;
    int child;

    zcdev_open();
    fixture_area(FIXTURE_HUGE, &a, "a", HUGE_PAGES, 0);
    child = ktap_child(sleep_for_ever, NULL);
    fixture_area(FIXTURE_HUGE, &b, "b", HUGE_PAGES, 0);
    exchange_stops(whole(&a), whole(&b), HUGE_PAGES, ZC_CAUSE_COW, 0);
    exchange_stops(whole(&b), whole(&a), HUGE_PAGES, ZC_CAUSE_COW, 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    exchange_stops(whole(&b), whole(&a), HUGE_PAGES, ZC_CAUSE_COW, 0);
    area_stamp(&a, 0, HUGE_PAGES);
    exchange_all(whole(&b), whole(&a), HUGE_PAGES);
}

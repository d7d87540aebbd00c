/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* Addresses and lengths; ranges over many mappings; vectors that stop on their way. */
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct area a, b;

static void make_areas(size_t pages)
{
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, pages, 3, 77);
}

static void check_areas(const char *when)
{
    area_check_both(&a, &b, when);
}

static void stops(uint64_t at_a, uint64_t at_b, uint64_t length, enum zc_cause cause)
{
    struct zc_range range = {.a = at_a, .b = at_b, .length = length};
    struct zcdev_outcome outcome = zcdev_vector(&range, 1);

    CHECK(outcome.cause == cause && outcome.done == 0 && outcome.stopped == 0,
          "a %#llx, b %#llx, length %#llx: %s, done %llu", (unsigned long long)at_a,
          (unsigned long long)at_b, (unsigned long long)length, zcdev_cause(outcome.cause),
          (unsigned long long)outcome.done);
}

TEST(alignment, "addresses: what is not a multiple of the page size is ALIGNMENT")
{
    static const unsigned int off[] = {1, 8, 2048, 4095};

    make_areas(8);
    for (int i = 0; i < 4; i++) {
        stops((uintptr_t)a.at + off[i], (uintptr_t)b.at, PAGE_SIZE, ZC_CAUSE_ALIGNMENT);
        stops((uintptr_t)a.at, (uintptr_t)b.at + off[i], PAGE_SIZE, ZC_CAUSE_ALIGNMENT);
        stops((uintptr_t)a.at, (uintptr_t)b.at, PAGE_SIZE + off[i], ZC_CAUSE_ALIGNMENT);
        stops((uintptr_t)a.at, (uintptr_t)b.at, off[i], ZC_CAUSE_ALIGNMENT);
        stops((uintptr_t)a.at + off[i], (uintptr_t)b.at + off[i], PAGE_SIZE, ZC_CAUSE_ALIGNMENT);
    }
    check_areas("not aligned");
}

TEST(zero_length, "addresses: a length of 0 exchanges nothing, and is a success")
{
    struct zcdev_outcome outcome;

    make_areas(2);
    outcome = zcdev_pair(a.at, b.at, 0);
    CHECK(outcome.cause == ZC_CAUSE_NONE && outcome.stopped == 1, "%s", zcdev_cause(outcome.cause));
    outcome = zcdev_pair(a.at, a.at, 0);
    CHECK(outcome.cause == ZC_CAUSE_NONE, "with itself: %s", zcdev_cause(outcome.cause));
    check_areas("nothing");
}

TEST(beyond_user_memory,
     "addresses: of the kernel, around the end of user memory, and wrapping, are ALIGNMENT")
{
    static const uint64_t far[] = {
        0x7fffffffe000, /* the last page below the end: the kernel keeps one free */
        0x7ffffffff000,     0x800000000000,     0x800000001000,     0x00ffffffffffe000,
        0x00fffffffffff000, 0x7fffffffffffe000, 0x8000000000000000, 0xff00000000000000,
        0xffff7ffffffff000, 0xffff800000000000, 0xffff888000000000, 0xffffc90000000000,
        0xffffffff80000000, 0xffffffff81000000, 0xffffffffff600000, 0xffffffffffffe000,
        0xfffffffffffff000};
    static const uint64_t lengths[] = {0x1000, 0x2000, 0x3000};

    make_areas(4);
    for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++) {
        for (int k = 0; k < 3; k++) {
            struct zcdev_outcome outcome;

            /* Below the end there are addresses, though hardly memory. */
            outcome = zcdev_pair((void *)far[i], b.at, lengths[k]);
            CHECK(outcome.cause == ZC_CAUSE_ALIGNMENT ||
                      (i == 0 && outcome.cause == ZC_CAUSE_UNMAPPED),
                  "a %#llx: %s", (unsigned long long)far[i], zcdev_cause(outcome.cause));
            outcome = zcdev_pair(b.at, (void *)far[i], lengths[k]);
            CHECK(outcome.cause == ZC_CAUSE_ALIGNMENT ||
                      (i == 0 && outcome.cause == ZC_CAUSE_UNMAPPED),
                  "b %#llx: %s", (unsigned long long)far[i], zcdev_cause(outcome.cause));
        }
    }
    check_areas("far away");
}

TEST(huge_lengths, "addresses: lengths beyond user memory are ALIGNMENT, whatever they wrap to")
{
    static const uint64_t lengths[] = {0x7ffffffff000,     0x800000000000,     0x7fffffffffff000,
                                       0x7ffffffffffff000, 0x8000000000000000, 0xffff800000000000,
                                       0xfffffffffffff000};

    make_areas(4);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        stops((uintptr_t)a.at, (uintptr_t)b.at, lengths[i], ZC_CAUSE_ALIGNMENT);
        /* So long that the end comes out below the beginning. */
        stops((uintptr_t)a.at, (uintptr_t)b.at, -(uintptr_t)a.at, ZC_CAUSE_ALIGNMENT);
        stops((uintptr_t)a.at, (uintptr_t)b.at, -(uintptr_t)b.at + PAGE_SIZE, ZC_CAUSE_ALIGNMENT);
    }
    check_areas("too long");
}

TEST(overlap, "addresses: ranges that share pages, in any order, are OVERLAP")
{
    make_areas(16);
    for (int shift = 0; shift < 8; shift++) {
        stops((uintptr_t)area_page(&a, 0), (uintptr_t)area_page(&a, shift), 8 * PAGE_SIZE,
              ZC_CAUSE_OVERLAP);
        stops((uintptr_t)area_page(&a, shift), (uintptr_t)area_page(&a, 0), 8 * PAGE_SIZE,
              ZC_CAUSE_OVERLAP);
    }
    stops((uintptr_t)a.at, (uintptr_t)a.at, PAGE_SIZE, ZC_CAUSE_OVERLAP);
    /* Far apart, but not as far as they are long: whatever lies between. */
    stops((uintptr_t)a.at, (uintptr_t)b.at, labs(a.at - b.at) + PAGE_SIZE, ZC_CAUSE_OVERLAP);
    stops((uintptr_t)b.at, (uintptr_t)a.at, labs(a.at - b.at) + PAGE_SIZE, ZC_CAUSE_OVERLAP);
    check_areas("overlapping");
    exchange_all(part(&a, 0), part(&a, 8), 8);
}

TEST(unmapped_all, "holes: where nothing is mapped is UNMAPPED, also at address 0")
{
    void *hole = mmap(NULL, PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    make_areas(4);
    NEED(hole != MAP_FAILED && !munmap(hole, PAGE_SIZE));
    stops(0, (uintptr_t)b.at, PAGE_SIZE, ZC_CAUSE_UNMAPPED);
    stops((uintptr_t)a.at, 0, PAGE_SIZE, ZC_CAUSE_UNMAPPED);
    stops((uintptr_t)hole, (uintptr_t)b.at, PAGE_SIZE, ZC_CAUSE_UNMAPPED);
    stops((uintptr_t)a.at, (uintptr_t)hole, PAGE_SIZE, ZC_CAUSE_UNMAPPED);
    /* An address below a mapping belongs to none, although there is a next one. */
    stops((uintptr_t)a.at - PAGE_SIZE, (uintptr_t)b.at, PAGE_SIZE, ZC_CAUSE_UNMAPPED);
    check_areas("unmapped");
}

TEST(unmapped_hole, "holes: the pages before a hole are exchanged, on either side, then UNMAPPED")
{
    make_areas(1200);
    for (size_t hole = 1; hole < 1200; hole = hole * 3 + 1) {
        struct area c, d;

        fixture_area(FIXTURE_SMALL, &c, "c", 1200, 200);
        fixture_area(FIXTURE_SMALL, &d, "d", 1200, 11);
        NEED(!munmap(area_page(&c, hole), PAGE_SIZE));
        struct zcdev_outcome outcome = exchange(whole(&c), whole(&d), 1200);
        CHECK(outcome.cause == ZC_CAUSE_UNMAPPED && outcome.done == hole * PAGE_SIZE,
              "hole %zu of c: %s after %zu", hole, zcdev_cause(outcome.cause),
              (size_t)outcome.done / PAGE_SIZE);
        outcome = exchange(whole(&d), whole(&c), 1200);
        CHECK(outcome.cause == ZC_CAUSE_UNMAPPED && outcome.done == hole * PAGE_SIZE,
              "hole %zu of c as b: %s after %zu", hole, zcdev_cause(outcome.cause),
              (size_t)outcome.done / PAGE_SIZE);
        area_check_part(&c, 0, hole, "before the hole");
        area_check_part(&c, hole + 1, 1200 - hole - 1, "behind the hole");
        area_check(&d, "with the hole");
        area_release(&c);
        area_release(&d);
    }
}

TEST(unmapped_end, "holes: a range longer than its mapping is exchanged up to its end")
{
    make_areas(8);
    /* area_reserve() leaves the next page unmapped. */
    for (int turn = 0; turn < 2; turn++) {
        struct zcdev_outcome outcome =
            turn ? zcdev_pair(a.at, b.at, 9 * PAGE_SIZE) : zcdev_pair(b.at, a.at, 1 << 20);

        area_exchanged(&a, 0, &b, 0, outcome.done / PAGE_SIZE);
        CHECK(outcome.cause == ZC_CAUSE_UNMAPPED && outcome.done == 8 * PAGE_SIZE, "%s after %zu",
              zcdev_cause(outcome.cause), (size_t)outcome.done / PAGE_SIZE);
        check_areas("up to the end");
    }
}

/* Neighbours whose flags differ are mappings of their own. */
static void make_many_mappings(struct area *area, const char *name, size_t pages, size_t each,
                               size_t offset)
{
    area_reserve(area, name, pages, offset);
    for (size_t i = 0, k = 0; i < pages; i += each, k++)
        fixture_make(k % 2 ? FIXTURE_SMALL : FIXTURE_ADVISED, area, i,
                     pages - i < each ? pages - i : each);
    CHECK(mappings_of(area->at, pages * PAGE_SIZE) == (int)((pages + each - 1) / each),
          "set-up: %d mappings", mappings_of(area->at, pages * PAGE_SIZE));
}

TEST(many_mappings,
     "mappings: a range over many of them is exchanged with a range over many others")
{
    zcdev_open();
    make_many_mappings(&a, "a", 1100, 37, 100);
    make_many_mappings(&b, "b", 1100, 53, 400);
    exchange_all(whole(&a), whole(&b), 1100);
    exchange_all(part(&a, 5), part(&b, 300), 700);
    CHECK(mappings_of(a.at, 1100 * PAGE_SIZE) == (1100 + 36) / 37, "mappings changed");
    if (is_root() && file_number("/proc/meminfo", "SwapTotal") > 0) {
        size_t left = page_out(a.at, 1100) + page_out(b.at, 1100);

        CHECK(!left, "%zu pages cannot be swapped out any more", left);
        check_areas("swapped out and in");
    }
}

TEST(stopped_by_mapping, "mappings: the first that is refused stops the range at its first page")
{
    static const enum fixture kinds[] = {FIXTURE_READ_ONLY, FIXTURE_SHARED,     FIXTURE_FILE,
                                         FIXTURE_MLOCKED,   FIXTURE_EXECUTABLE, FIXTURE_POLICY};

    zcdev_open();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        make_many_mappings(&a, "a", 120, 20, 500);
        make_many_mappings(&b, "b", 120, 33, 0);
        fixture_make(kinds[i], &a, 70 + i, 1);
        exchange_stops(whole(&a), whole(&b), 120, fixture_cause(kinds[i]), 70 + i);
        exchange_stops(whole(&b), whole(&a), 120, fixture_cause(kinds[i]), 70 + i);
        exchange_all(part(&a, 71 + i), part(&b, 71 + i), 120 - 71 - i);
        area_release(&a);
        area_release(&b);
    }
}

TEST(page_tables, "tables: every relation of two ranges to the ends of their page tables")
{
    static const size_t offsets[] = {0, 1, 2, 255, 256, 510, 511};
    const size_t pages = 2 * HUGE_PAGES + 5;

    zcdev_open();
    for (size_t i = 0; i < 7; i++) {
        for (size_t k = 0; k < 7; k += i % 2 ? 2 : 3) {
            fixture_pair(FIXTURE_SMALL, &a, &b, pages, offsets[i], offsets[k]);
            exchange_all(whole(&a), whole(&b), pages);
            exchange_all(part(&a, pages - 7), part(&b, 1), 7);
            area_release(&a);
            area_release(&b);
        }
    }
}

TEST(same_page_table, "tables: both ranges in one page table, either order")
{
    zcdev_open();
    fixture_area(FIXTURE_SMALL, &a, "a", HUGE_PAGES, 0);
    exchange_all(part(&a, 0), part(&a, 256), 256);
    exchange_all(part(&a, 511), part(&a, 0), 1);
    exchange_all(part(&a, 300), part(&a, 100), 200);
}

TEST(never_a_table,
     "tables: whole page tables that do not exist, on both sides or one, in any order")
{
    const size_t pages = 4 * HUGE_PAGES;
    size_t k;

    zcdev_open();
    fixture_pair(FIXTURE_UNTOUCHED, &a, &b, pages, 100, 300);
    for (k = 0; k < pages; k += 97)
        area_stamp(k % 2 ? &a : &b, k < pages / 2 ? k : k / 4, 1);
    exchange_all(whole(&a), whole(&b), pages);
    exchange_all(part(&a, 7), part(&b, 1000), 1000);
}

/* ---- vectors ---- */

static struct zc_range range_of(size_t page_a, size_t page_b, size_t pages)
{
    return (struct zc_range){.a = (uintptr_t)area_page(&a, page_a),
                             .b = (uintptr_t)area_page(&b, page_b),
                             .length = pages * PAGE_SIZE,
                             .cause = 99,
                             .done = 98};
}

TEST(vector, "vectors: ranges are exchanged in their order, the same pages again and again")
{
    struct zc_range ranges[200];
    struct zcdev_outcome outcome;
    size_t done = 0;

    make_areas(64);
    srandom(1);
    for (int i = 0; i < 200; i++) {
        size_t pages = random() % 9, at_a = random() % 55, at_b = random() % 55;

        ranges[i] = range_of(at_a, at_b, pages);
        area_exchanged(&a, at_a, &b, at_b, pages);
        done += pages;
    }
    outcome = zcdev_vector(ranges, 200);
    CHECK(outcome.cause == ZC_CAUSE_NONE && outcome.stopped == 200 &&
              outcome.done == done * PAGE_SIZE,
          "stopped at %u because of %s", outcome.stopped, zcdev_cause(outcome.cause));
    check_areas("200 ranges");
}

TEST(vector_long, "vectors: ten thousand ranges")
{
    struct zc_range *ranges = malloc(10001 * sizeof(*ranges));
    struct zcdev_outcome outcome;

    make_areas(8);
    for (size_t i = 0; i < 10001; i++) {
        ranges[i] = range_of(i % 8, (i + i / 8) % 8, 1);
        area_exchanged(&a, i % 8, &b, (i + i / 8) % 8, 1);
    }
    outcome = zcdev_vector(ranges, 10001);
    CHECK(outcome.cause == ZC_CAUSE_NONE && outcome.stopped == 10001, "stopped at %u because of %s",
          outcome.stopped, zcdev_cause(outcome.cause));
    check_areas("10001 ranges");
}

TEST(vector_stops,
     "vectors: stopped in the middle, those before are done, those behind are untouched")
{
    static const enum fixture kinds[] = {FIXTURE_MLOCKED, FIXTURE_PINNED, FIXTURE_SHARED,
                                         FIXTURE_READ_ONLY};
    struct zcdev_outcome outcome;
    struct zc_range ranges[6];

    zcdev_open();
    for (int i = 0; i < 4; i++) {
        fixture_pair(FIXTURE_SMALL, &a, &b, 64, 3, 5);
        fixture_make(kinds[i], &b, 33, 2);
        ranges[0] = range_of(0, 0, 5);
        ranges[1] = range_of(5, 10, 0);
        ranges[2] = range_of(5, 9, 4);
        ranges[3] = range_of(20, 30, 10);
        ranges[4] = range_of(40, 50, 3);
        ranges[5] = range_of(40, 50, 3);
        outcome = zcdev_vector(ranges, 6);
        area_exchanged(&a, 0, &b, 0, 5);
        area_exchanged(&a, 5, &b, 9, 4);
        area_exchanged(&a, 20, &b, 30, 3);
        CHECK(outcome.cause == fixture_cause(kinds[i]) && outcome.stopped == 3 &&
                  outcome.done == 12 * PAGE_SIZE && ranges[3].done == 3 * PAGE_SIZE,
              "%s: stopped at %u because of %s, done %llu, %llu", fixture_name(kinds[i]),
              outcome.stopped, zcdev_cause(outcome.cause), (unsigned long long)outcome.done,
              (unsigned long long)ranges[3].done);
        CHECK(ranges[4].cause == 99 && ranges[4].done == 98 && ranges[5].done == 98,
              "outputs behind the one that stopped were written");
        check_areas("stopped");
        area_release(&a);
        area_release(&b);
    }
}

TEST(vector_stops_first,
     "vectors: stopped at the first and at the last range, by wrong addresses too")
{
    struct zcdev_outcome outcome;
    struct zc_range ranges[3];

    make_areas(8);
    for (int wrong = 0; wrong < 3; wrong++) {
        for (int i = 0; i < 3; i++)
            ranges[i] = range_of(2 * i, 2 * i, 2);
        ranges[wrong].b += 1;
        outcome = zcdev_vector(ranges, 3);
        CHECK(outcome.cause == ZC_CAUSE_ALIGNMENT && outcome.stopped == (unsigned int)wrong &&
                  outcome.done == wrong * 2 * PAGE_SIZE,
              "wrong %d: %s at %u", wrong, zcdev_cause(outcome.cause), outcome.stopped);
        area_exchanged(&a, 0, &b, 0, 2 * wrong);
        check_areas("one wrong");
    }
}

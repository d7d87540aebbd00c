/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "area.h"

#include "ktap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kWords = 512, kWhole = -1 }; /* kWhole: no word is another's */

static uint64_t last_id;

uint64_t new_ids(size_t count)
{
    uint64_t first = last_id + 1;

    last_id += count;
    return first;
}

/* Any single word tells id and place: id in the upper 48 bits, scrambled by the place. */
uint64_t stamp_word(uint64_t id, unsigned int k)
{
    if (!id)
        return 0;
    return (id << 12 | 0x800 | k) ^ (0x9e3779b97f4a7c15u * (k + 1));
}

static uint64_t id_of(uint64_t word, unsigned int k)
{
    uint64_t plain = word ^ (0x9e3779b97f4a7c15u * (k + 1));

    return (plain & 0xfff) == (0x800 | k) ? plain >> 12 : (uint64_t)-1;
}

void stamp(void *page, uint64_t id)
{
    uint64_t *word = page;

    for (unsigned int k = 0; k < kWords; k++)
        word[k] = stamp_word(id, k);
}

uint64_t stamp_read(const void *page, int *torn)
{
    const uint64_t *word = page;
    uint64_t id = word[0] ? id_of(word[0], 0) : 0;

    *torn = kWhole;
    for (unsigned int k = 0; k < kWords; k++) {
        if (word[k] != (stamp_word(id, k))) {
            *torn = k;
            break;
        }
    }
    return id;
}

bool stamp_is(const void *page, uint64_t id)
{
    int torn;

    return stamp_read(page, &torn) == id && torn == kWhole;
}

void area_reserve(struct area *area, const char *name, size_t pages, size_t offset)
{
    size_t len = (pages + offset + 2) * PAGE_SIZE + 2 * HUGE_SIZE;
    char *map = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t base;

    NEED(map != MAP_FAILED);
    base = ((uintptr_t)map + PAGE_SIZE + HUGE_SIZE - 1) / HUGE_SIZE * HUGE_SIZE;
    area_of(area, name, (char *)base + offset * PAGE_SIZE, pages);
    NEED(!munmap(area->at - PAGE_SIZE, PAGE_SIZE));
    NEED(!munmap(area->at + pages * PAGE_SIZE, PAGE_SIZE));
}

void area_of(struct area *area, const char *name, void *at, size_t pages)
{
    *area = (struct area){.name = name, .at = at, .pages = pages};
    area->id = calloc(pages, sizeof(*area->id));
    NEED(area->id);
}

void area_release(struct area *area)
{
    munmap(area->at, area->pages * PAGE_SIZE);
    free(area->id);
}

void area_stamp(struct area *area, size_t first, size_t pages)
{
    uint64_t id = new_ids(pages);

    for (size_t i = first; i < first + pages; i++) {
        area->id[i] = id++;
        stamp(area_page(area, i), area->id[i]);
    }
}

void area_exchanged(struct area *a, size_t first_a, struct area *b, size_t first_b, size_t pages)
{
    for (size_t i = 0; i < pages; i++) {
        uint64_t id = a->id[first_a + i];

        a->id[first_a + i] = b->id[first_b + i];
        b->id[first_b + i] = id;
    }
}

static bool page_right(const struct area *area, const void *page, size_t i)
{
    uint64_t want = area->id[i] & ~ID_OR_ZERO, is;
    int torn;

    is = stamp_read(page, &torn);
    return torn == kWhole && (is == want || (is == 0 && (area->id[i] & ID_OR_ZERO)));
}

size_t area_wrong(const struct area *area, size_t first, size_t pages)
{
    size_t i = first;

    while (i < first + pages && page_right(area, area_page(area, i), i))
        i++;
    return i;
}

static void check_page(const struct area *area, const void *page, size_t i, const char *when)
{
    uint64_t want = area->id[i] & ~ID_OR_ZERO, is;
    int torn;

    if (page_right(area, page, i))
        return;
    is = stamp_read(page, &torn);
    if (torn != kWhole)
        FAIL("%s: page %zu of %s, id %llu, is torn: begins as id %llu, word %d is %#llx", when, i,
             area->name, (unsigned long long)want, (unsigned long long)is, torn,
             (unsigned long long)((const uint64_t *)page)[torn]);
    FAIL("%s: page %zu of %s (%zu) holds id %llu, not %llu", when, i, area->name, area->pages,
         (unsigned long long)is, (unsigned long long)want);
}

void area_check_part(const struct area *area, size_t first, size_t pages, const char *when)
{
    for (size_t i = first; i < first + pages; i++)
        check_page(area, area_page(area, i), i, when);
}

void area_check(const struct area *area, const char *when)
{
    area_check_part(area, 0, area->pages, when);
}

void area_check_both(const struct area *a, const struct area *b, const char *when)
{
    area_check(a, when);
    area_check(b, when);
}

void area_check_copy(const struct area *area, const void *copy, const char *when)
{
    for (size_t i = 0; i < area->pages; i++)
        check_page(area, (const char *)copy + i * PAGE_SIZE, i, when);
}

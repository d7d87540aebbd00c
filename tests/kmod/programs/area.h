/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_AREA_H
#define ZC_TESTS_AREA_H

/*
 * The oracle: memory of which every page's content is known.
 *
 * A page holds the stamp of its id: 512 words that all depend on it, so that a
 * page which is another's, or only in part its own, is told from the right one.
 * Id 0 is a page of zeros. An exchange is repeated on the ids (area_exchanged);
 * area_check() then reads every byte: each page is in its old place or in its
 * new one, whole, exactly once.
 */

#include "pagemap.h"

struct area {
    const char *name; /* one letter per area, for messages */
    char *at;
    size_t pages;
    uint64_t *id; /* of the page at each place */
};

/** A page that may be either of two: zeros, or the id (MADV_FREE). */
#define ID_OR_ZERO ((uint64_t)1 << 63)

/**
 * area_reserve - a window of addresses, inaccessible as yet
 * @offset: pages from a 2 MiB boundary to its first page
 *
 * There is an unmapped page on either side.
 */
void area_reserve(struct area *area, const char *name, size_t pages, size_t offset);

/** Of memory that is there already, all zeros. */
void area_of(struct area *area, const char *name, void *at, size_t pages);
void area_release(struct area *area);

/** Ids that no other page has; of 0 of them, the next one. */
uint64_t new_ids(size_t count);
void stamp(void *page, uint64_t id);
uint64_t stamp_word(uint64_t id, unsigned int k);

/** The id stamped on the page; 0 for zeros; 1 + *torn if word *torn is another's. */
uint64_t stamp_read(const void *page, int *torn);
bool stamp_is(const void *page, uint64_t id);

/** New content for @pages pages from @first on. */
void area_stamp(struct area *area, size_t first, size_t pages);

/** What an exchange of @pages pages does. */
void area_exchanged(struct area *a, size_t first_a, struct area *b, size_t first_b, size_t pages);

/** The first of the pages that is not what it should be; first + pages if none. */
size_t area_wrong(const struct area *area, size_t first, size_t pages);

/** Reads all of it; fails the test at the first page that is not what it should be. */
void area_check(const struct area *area, const char *when);
void area_check_both(const struct area *a, const struct area *b, const char *when);
void area_check_part(const struct area *area, size_t first, size_t pages, const char *when);

/** As area_check(), of the bytes at @copy. */
void area_check_copy(const struct area *area, const void *copy, const char *when);

/** The page at index @i. */
static inline char *area_page(const struct area *area, size_t i)
{
    return area->at + i * PAGE_SIZE;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_LEDGER_H
#define ZC_TESTS_LEDGER_H

/*
 * The oracle for pages that are written to while they are exchanged.
 *
 *   word 0 ... 495          496 ... 511
 *   a stamp of the id       one counter per writer
 *
 * Writers add one to their counter in any page with one atomic instruction, so
 * each write lands in exactly one page, wherever that is; and they know how
 * often they did. Afterwards every id must be found exactly once, with its whole
 * stamp, and the counters of all pages must add up to what was written. A write
 * through a stale translation, a page copied instead of moved, lost, doubled or
 * mixed up does not add up. At any time, each single word of a stamp tells
 * whether it may be where it was found.
 */

#include "area.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEDGER_WRITERS = 16, LEDGER_STAMP = 512 - LEDGER_WRITERS };

struct ledger {
    uint64_t first; /* ids first ... first + pages - 1 */
    size_t pages;
    uint64_t added[LEDGER_WRITERS]; /* each changed by its writer only */
};

struct ledger_part {
    char *at;
    size_t pages;
};

/** One page's stamp, and counters of 0. */
void ledger_stamp(char *page, uint64_t id);

/** Ids for all pages of the parts; ledger_open() then stamps them. */
void ledger_reserve(struct ledger *ledger, const struct ledger_part *parts, size_t count);

/** Stamps all pages of the parts; no thread may be writing. */
void ledger_open(struct ledger *ledger, const struct ledger_part *parts, size_t count);

/** Stamps all pages of two areas; they become the @parts. */
void ledger_open_areas(struct ledger *ledger, struct ledger_part parts[2], const struct area *a,
                       const struct area *b);

static inline void ledger_add(struct ledger *ledger, char *page, unsigned int writer)
{
    __atomic_fetch_add((uint64_t *)page + LEDGER_STAMP + writer, 1, __ATOMIC_RELAXED);
    ledger->added[writer]++;
}

/** The id that word @k tells; 0 if it is none of the ledger's. At any time. */
uint64_t ledger_word(const struct ledger *ledger, const char *page, unsigned int k);

/** Whether word @k of the page is one of the ledger's. At any time. */
bool ledger_word_fits(const struct ledger *ledger, const char *page, unsigned int k);

/**
 * ledger_audit - every page, and every write; no thread may be writing
 *
 * Fails the test, naming @when and what does not add up.
 */
void ledger_audit(const struct ledger *ledger, const struct ledger_part *parts, size_t count,
                  const char *when);

/** As ledger_audit(), in a child made by fork() while writers were at work: each may be
 *  between its write and counting it. */
void ledger_audit_snapshot(const struct ledger *ledger, const struct ledger_part *parts,
                           size_t count, const char *when);

/** One page by itself, of its id and stamp; the id, or 0 with a note why not. */
uint64_t ledger_page(const struct ledger *ledger, const char *page);

#endif

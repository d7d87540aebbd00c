/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_TORTURE_POOL_H
#define ZC_TESTS_TORTURE_POOL_H

/*
 * The memory of the torture, in two worlds that never mix:
 *
 *   pool     every page and every write to it is accounted for (ledger.h)
 *   scratch  may be given up at any moment: each word is one of its ledger's, or 0
 */

#include "crew.h"
#include "ledger.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum pool_name {
    POOL_SMALL,
    POOL_SMALL_TOO,
    POOL_HUGE,
    POOL_HUGE_TOO,
    POOL_MERGEABLE,
    POOL_MOVING, /* by mremap, between two windows */
    POOL_REGIONS
};

enum scratch_name {
    SCRATCH_SMALL,
    SCRATCH_HUGE,
    SCRATCH_MAPPED, /* unmapped and mapped again in parts */
    SCRATCH_REGIONS
};

struct region {
    const char *name;
    char *at;
    size_t pages;
    bool huge; /* MADV_HUGEPAGE, aligned for it */
};

extern struct region pool_regions[POOL_REGIONS], scratch_regions[SCRATCH_REGIONS];
extern struct ledger pool_ledger, scratch_ledger;

/** Held for reading while POOL_MOVING is touched, for writing while it is moved. Exchanges
 *  need neither. */
extern pthread_rwlock_t moving_lock;
extern char *moving_windows[2];

/** Maps it, untouched: a process forked now shares no page of it. */
void pool_map(void);
void pool_open(void);

/** All pages and writes add up. No member of a crew may be at work. */
void pool_audit(const char *when);
void pool_audit_in_child(const char *when);
void scratch_audit(const char *when);

/** Swaps all of the pool out: every page must be found. */
void pool_page_out(void);

/** Some pages of a region; in half of the cases, of a huge one, whole huge pages. */
struct pick {
    char *at;
    size_t pages;
};
struct pick pick_in(struct crew_member *self, const struct region *region, size_t most);

/** Two sides for an exchange, as long as each other: mostly of a kind, so that it is one. */
void pick_pair(struct crew_member *self, bool in_pool, size_t most, struct pick *a, struct pick *b);

/** One write, or one look, at a page of the pool that is not moving. */
char *pool_page(struct crew_member *self);

#endif

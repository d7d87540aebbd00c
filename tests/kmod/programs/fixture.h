/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_FIXTURE_H
#define ZC_TESTS_FIXTURE_H

/*
 * Memory of every kind. Each maker proves that the memory is of its kind, or
 * skips the test where this kernel or guest has no such memory, or fails it.
 */

#include "area.h"
#include "zc_ioctl.h"

enum fixture {
    /* Exchanged, with any other of this group. */
    FIXTURE_SMALL,      /* anonymous, written */
    FIXTURE_UNTOUCHED,  /* never touched */
    FIXTURE_ZERO_PAGE,  /* read, never written */
    FIXTURE_MIXED,      /* in turn: written, untouched, zero page, swapped out */
    FIXTURE_SWAPPED,    /* swapped out */
    FIXTURE_SWAP_CACHE, /* swapped out and read again: still in swap, and clean */
    FIXTURE_FREED,      /* MADV_FREE: may be dropped at any moment */
    FIXTURE_MOVED,      /* by mremap(): the VMA's offset is not its address */
    FIXTURE_DEV_ZERO,   /* MAP_PRIVATE of /dev/zero: anonymous, with offsets from 0 */
    FIXTURE_ADVISED,    /* MADV_SEQUENTIAL, MADV_DONTDUMP: other flags, same pages */
    FIXTURE_COW_BROKEN, /* shared with a child, which ended; written again */
    FIXTURE_PLAIN_END,

    /* Exchanged whole with huge pages only. */
    FIXTURE_HUGE = FIXTURE_PLAIN_END,
    FIXTURE_HUGE_END,

    /* Huge in some way, but without a whole huge page of its own. */
    FIXTURE_HUGE_ZERO = FIXTURE_HUGE_END, /* the huge zero page */
    FIXTURE_HUGE_UNTOUCHED,               /* MADV_HUGEPAGE, never touched */
    FIXTURE_HUGE_SWAPPED,                 /* was huge, swapped out */
    FIXTURE_HUGE_BY_MPROTECT, /* mapped by small entries since one page had other rights */
    FIXTURE_HUGE_BY_DONTNEED, /* the same, one page of it given up */
    FIXTURE_HUGE_FEW,         /* folios of 64 KiB */
    FIXTURE_ODD_END,

    /* Refused. */
    FIXTURE_SHARED = FIXTURE_ODD_END,
    FIXTURE_SHARED_MEMFD,
    FIXTURE_MEMFD,
    FIXTURE_FILE,
    FIXTURE_FILE_WRITTEN, /* private, with pages of its own */
    FIXTURE_HUGETLB,
    FIXTURE_HUGETLB_PRIVATE,
    FIXTURE_MLOCKED,
    FIXTURE_MLOCKED_ONFAULT,
    FIXTURE_GROWSDOWN,
    FIXTURE_READ_ONLY,
    FIXTURE_NO_ACCESS,
    FIXTURE_EXECUTABLE,
    FIXTURE_PKEY,
    FIXTURE_DROPPABLE,
    FIXTURE_SECRET,
    FIXTURE_COW,       /* shared with a child */
    FIXTURE_COW_ENDED, /* as FIXTURE_COW, the child gone, not written since */
    FIXTURE_MERGEABLE, /* MADV_MERGEABLE, nothing merged */
    FIXTURE_KSM,
    FIXTURE_USERFAULTFD,    /* registered for missing pages */
    FIXTURE_USERFAULTFD_WP, /* registered for write protection, and protected */
    FIXTURE_POLICY,
    FIXTURE_PINNED, /* registered with io_uring */
    FIXTURE_END
};

const char *fixture_name(enum fixture kind);

/** Why a range with such memory, beside FIXTURE_SMALL, is not exchanged. */
enum zc_cause fixture_cause(enum fixture kind);

/** Pages it comes in: 1, or those of a huge page, at addresses that fit. */
size_t fixture_unit(enum fixture kind);

/**
 * fixture_make - put memory of a kind at a part of an area
 *
 * The area's ids are set. Must be called in the test's own process; what it
 * needs beside the memory (a child, a userfaultfd) lives until the test ends.
 */
void fixture_make(enum fixture kind, struct area *area, size_t first, size_t pages);

/** Ends what the fixtures made so far needed beside memory, but for pins. */
void fixture_end(void);

/** A window with nothing but such memory. */
void fixture_area(enum fixture kind, struct area *area, const char *name, size_t pages,
                  size_t offset);

/** Two such windows, named "a" and "b". */
void fixture_pair(enum fixture kind, struct area *a, struct area *b, size_t pages, size_t offset_a,
                  size_t offset_b);

/** Pins pages (FOLL_PIN) until unpin_pages(); one lot at a time. */
void pin_pages(void *at, size_t pages);
void unpin_pages(void);

/** For ktap_child(): a child that only shares the memory. */
void sleep_for_ever(void *arg);

/** Makes read-only and inaccessible memory readable, for area_check(). */
void fixture_reveal(enum fixture kind, struct area *area, size_t first, size_t pages);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_PAGEMAP_H
#define ZC_TESTS_PAGEMAP_H

/* What the page tables hold: /proc/self/pagemap and /proc/kpageflags. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_SIZE ((size_t)4096)
#define HUGE_SIZE ((size_t)2 << 20)
#define HUGE_PAGES (HUGE_SIZE / PAGE_SIZE)

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_PFN (((uint64_t)1 << 55) - 1)
#define PM_SOFT_DIRTY ((uint64_t)1 << 55)
#define PM_MMAP_EXCLUSIVE ((uint64_t)1 << 56)
#define PM_UFFD_WP ((uint64_t)1 << 57)
#define PM_FILE ((uint64_t)1 << 61)
#define PM_SWAP ((uint64_t)1 << 62)
#define PM_PRESENT ((uint64_t)1 << 63)

/* include/uapi/linux/kernel-page-flags.h */
enum {
    KPF_COMPOUND_HEAD = 15,
    KPF_COMPOUND_TAIL = 16,
    KPF_HUGE = 17,
    KPF_HWPOISON = 19,
    KPF_THP = 22,
    KPF_ZERO_PAGE = 24,
    KPF_SWAPCACHE = 13,
    KPF_SWAPBACKED = 14,
};

uint64_t pagemap_of(const void *at);
void pagemap_read(const void *at, size_t pages, uint64_t *entries);

/** The frame mapped at @at; 0 if there is none or the caller may not know. */
uint64_t pfn_of(const void *at);

/** Whether flag @kpf is set for the page mapped at @at. */
bool page_is(const void *at, int kpf);

size_t pages_present(const void *at, size_t pages);
size_t pages_swapped(const void *at, size_t pages);
size_t pages_flagged(const void *at, size_t pages, int kpf);

/**
 * huge_kib - how much of a range is mapped by entries of 2 MiB
 *
 * Reads from each: from huge pages that NUMA balancing has taken access from, smaps looks
 * away until somebody reads them.
 */
long huge_kib(const void *at, size_t pages);

/**
 * page_out - have the range written to swap
 *
 * Tries hard: it is the test of the reverse mapping. Return: pages still not
 * swapped, of those that have content.
 */
size_t page_out(void *at, size_t pages);

/** Ends the test as skipped where nothing can be swapped out. */
void need_swap(void);
void need_root(void);

#endif

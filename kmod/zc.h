/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ZC_H
#define ZC_H

/*
 * zc.ko - exchange the pages of two ranges of a process
 *
 *   device.c   /dev/zc: ioctl, io_uring, user memory
 *   range.c    one pair of ranges: mmap lock, pace, faults, retries
 *   vma.c      which mappings may take part
 *   table.c    the pages of two page tables
 *   huge.c     huge pages of two page-middle directories
 *   rmap.c     what a folio must know of its new place
 *   tlb.c      the one kernel function that is not exported
 *   prototypes.c  that it is declared as we call it
 *   counters.c what was done, for /sys/class/misc/zc/stats/
 *
 * Locks, from the outside in: mmap lock (read); up to 6.18 the roots of both
 * anon_vmas, the second one by trylock; both page-table locks in the order of
 * their addresses; folio locks, by trylock.
 */

#include <linux/mm_types.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include "uapi/zc_ioctl.h"

/* What an attempt at some pages ends with, beside enum zc_cause. */
enum {
	ZC_NEEDS_FAULT_A = ZC_CAUSE_COUNT,	/* have the next page of a faulted in */
	ZC_NEEDS_FAULT_B,
};

/* The anon_vmas that pages go to; both NULL where no page has ever been. */
struct zc_rmap {
	struct anon_vma *a, *b;
};

/* The present state of a pair of ranges. Mappings are valid while the mmap lock is held. */
struct zc_walk {
	struct mm_struct *mm;
	unsigned long a, b;		/* next page on either side */
	unsigned long end;		/* of a */
	struct vm_area_struct *vma_a, *vma_b;	/* of a and b; NULL: look again */
	struct zc_rmap kept;		/* see zc_rmap_keep() */
	struct grave *spare;		/* rmap.c: for a caller that may not wait */
	struct zc_pair *pairs;		/* what is being exchanged */
	unsigned int room;		/* pairs there is room for */
	bool nowait;			/* rather stop than sleep */
};

/* Two entries of page tables, taken out. */
struct zc_pair {
	union {
		pte_t pte;
		pmd_t pmd;
	} a, b;
};

/* range.c */
int zc_exchange_range(struct zc_range *range, bool nowait);
bool zc_interrupted(bool nowait);

/* vma.c */
enum zc_cause zc_vmas_find(struct zc_walk *w);

/* table.c and huge.c: bytes exchanged, and in *why what came then */
unsigned long zc_table_exchange(struct zc_walk *w, pmd_t *pmd_a, pmd_t *pmd_b,
				const struct zc_rmap *rmap, unsigned int pages, int *why);
unsigned long zc_huge_exchange(struct zc_walk *w, pmd_t *pmd_a, pmd_t *pmd_b,
			       const struct zc_rmap *rmap, unsigned int pages, int *why);
void zc_lock_both(spinlock_t *a, spinlock_t *b);
void zc_unlock_both(spinlock_t *a, spinlock_t *b);

/* rmap.c */
bool zc_rmap_lock(struct zc_rmap *rmap, struct zc_walk *w);
void zc_rmap_unlock(const struct zc_rmap *rmap);
void zc_rmap_keep(struct zc_walk *w, const struct zc_rmap *rmap);
void zc_rmap_let_go(struct zc_walk *w);
enum zc_cause zc_folio_take(struct folio *folio, const struct page *page,
			    const struct anon_vma *of);
void zc_folio_settle(struct folio *folio, struct anon_vma *to,
		     const struct vm_area_struct *vma, unsigned long addr);
int zc_rmap_init(void);
void zc_rmap_exit(void);

/* tlb.c */
int zc_tlb_init(void);
void zc_tlb_flush(const struct zc_walk *w, unsigned int pages, unsigned int shift);
void zc_flush_nothing(struct mm_struct *mm, unsigned long start, unsigned long end,
		      unsigned int stride_shift, bool freed_tables);
void *zc_symbol(const char *name);

/* counters.c */
struct zc_counters {
	unsigned long pages;			/* of either side */
	unsigned long ranges[ZC_CAUSE_COUNT];	/* by what they ended with */
};

DECLARE_PER_CPU(struct zc_counters, zc_counters);
extern const struct attribute_group *zc_counter_groups[];
void zc_counters_init(void);

static inline void zc_count(const struct zc_range *range)
{
	this_cpu_add(zc_counters.pages, range->done / PAGE_SIZE);
	this_cpu_inc(zc_counters.ranges[range->cause]);
}

#endif /* ZC_H */

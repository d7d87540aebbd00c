// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "zc.h"
#include "zc_compat.h"

/*
 * Pairs on the stack: enough for short exchanges and for huge pages. Where more
 * small pages are to be exchanged at once there is memory for as many as a page
 * table holds; without it they go in smaller steps, each with its TLB flush.
 */
#define ZC_FEW 32

/* A page that the kernel is working on is given up after this many attempts. */
#define ZC_ATTEMPTS 8

enum level {
	LEVEL_NONE,	/* no page table: nothing has been touched here */
	LEVEL_TABLE,
	LEVEL_HUGE,
	LEVEL_TRANSIT,	/* a huge page that is being migrated */
	LEVEL_OTHER,
};

/* Everything above page tables stays while the mmap lock is held. */
static pmd_t *find_pmd(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;
	pud_t *pud;

	if (pgd_none(READ_ONCE(*pgd)))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(READ_ONCE(*p4d)))
		return NULL;
	pud = pud_offset(p4d, addr);
	if (pud_none(READ_ONCE(*pud)))
		return NULL;
	return pmd_offset(pud, addr);
}

static enum level level_of(pmd_t *pmd)
{
	pmd_t is = pmd ? zc_pmd_read(pmd) : __pmd(0);

	if (pmd_none(is))
		return LEVEL_NONE;
	if (!pmd_present(is))
		return LEVEL_TRANSIT;
	if (pmd_trans_huge(is))
		return LEVEL_HUGE;
	return pmd_bad(is) ? LEVEL_OTHER : LEVEL_TABLE;
}

/* Bytes up to the end of @vma, or of what one entry of @size covers. */
static unsigned long reach(unsigned long addr, const struct vm_area_struct *vma,
			   unsigned long size)
{
	return min(ALIGN_DOWN(addr, size) + size, vma->vm_end) - addr;
}

/* How much lies ahead within one mapping and one table of a level, on both sides. */
static unsigned long stretch(const struct zc_walk *w, unsigned long size)
{
	return min3(w->end - w->a, reach(w->a, w->vma_a, size), reach(w->b, w->vma_b, size));
}

static void make_room(struct zc_walk *w)
{
	const unsigned long pages = min_t(unsigned long, (w->end - w->a) / PAGE_SIZE, PTRS_PER_PTE);

	struct zc_pair *more;

	/* There is room for what is ahead once there has been for more. */
	if (pages <= w->room)
		return;
	more = kmalloc_array(pages, sizeof(*more),
			     (w->nowait ? GFP_NOWAIT : GFP_KERNEL) | __GFP_NOWARN);
	if (more) {
		w->pairs = more;
		w->room = pages;
	}
}

static unsigned long exchange_huge(struct zc_walk *w, pmd_t *a, pmd_t *b,
				   const struct zc_rmap *rmap, int *why)
{
	unsigned long pages = stretch(w, PUD_SIZE) / HPAGE_PMD_SIZE;

	if (!pages || ((w->a | w->b) & ~HPAGE_PMD_MASK)) {
		*why = ZC_CAUSE_PAGE_SIZE;	/* only a part of it, never split */
		return 0;
	}
	return zc_huge_exchange(w, a, b, rmap, min_t(unsigned long, pages, w->room), why);
}

/* The next pages, as many as can be had at once. */
static unsigned long exchange_some(struct zc_walk *w, int *why)
{
	pmd_t *a = find_pmd(w->mm, w->a), *b = find_pmd(w->mm, w->b);
	const enum level la = level_of(a), lb = level_of(b);
	const unsigned long len = stretch(w, PMD_SIZE);
	unsigned long done = 0;
	struct zc_rmap rmap;

	if (la == LEVEL_TABLE && lb == LEVEL_TABLE)
		make_room(w);
	if (la == LEVEL_OTHER || lb == LEVEL_OTHER) {
		*why = ZC_CAUSE_SPECIAL;
	} else if (la == LEVEL_TRANSIT) {
		*why = ZC_NEEDS_FAULT_A;
	} else if (lb == LEVEL_TRANSIT) {
		*why = ZC_NEEDS_FAULT_B;
	} else if (la == LEVEL_NONE && lb == LEVEL_NONE) {
		done = len;
	} else if (la == LEVEL_NONE) {
		*why = ZC_NEEDS_FAULT_A;
	} else if (lb == LEVEL_NONE) {
		*why = ZC_NEEDS_FAULT_B;
	} else if (la != lb) {
		*why = ZC_CAUSE_PAGE_SIZE;
	} else if (!zc_rmap_lock(&rmap, w)) {
		*why = ZC_CAUSE_RACED;
	} else {
		if (la == LEVEL_HUGE)
			done = exchange_huge(w, a, b, &rmap, why);
		else
			done = zc_table_exchange(w, a, b, &rmap,
						 min_t(unsigned long, len / PAGE_SIZE, w->room),
						 why);
		zc_rmap_unlock(&rmap);
		if (done)
			zc_rmap_keep(w, &rmap);
	}
	w->a += done;
	w->b += done;
	return done;
}

/* What was found belongs to the lock. */
static void forget(struct zc_walk *w)
{
	w->vma_a = NULL;
	w->vma_b = NULL;
}

static enum zc_cause fault_in(struct zc_walk *w, unsigned long addr)
{
	bool unlocked = false;
	int err;

	err = fixup_user_fault(w->mm, addr, FAULT_FLAG_WRITE, &unlocked);
	if (unlocked)
		forget(w);
	switch (err) {
	case 0:
		return ZC_CAUSE_NONE;
	case -ENOMEM:
		return ZC_CAUSE_NO_MEMORY;
	case -EINTR:
		return ZC_CAUSE_INTERRUPTED;
	case -EHWPOISON:
		return ZC_CAUSE_POISONED;
	default:
		/*
		 * The mapping allows what was asked of it, unless it has changed
		 * meanwhile; so the memory itself has failed.
		 */
		return unlocked ? ZC_CAUSE_NONE : ZC_CAUSE_POISONED;
	}
}

static enum zc_cause lock(struct zc_walk *w)
{
	if (w->nowait)
		return mmap_read_trylock(w->mm) ? ZC_CAUSE_NONE : ZC_CAUSE_RACED;
	return mmap_read_lock_killable(w->mm) ? ZC_CAUSE_INTERRUPTED : ZC_CAUSE_NONE;
}

/**
 * zc_interrupted - is there something else to be done first?
 * @nowait: as of zc_exchange_range()
 *
 * What io_uring has to tell a task is no signal; but a worker of its own is told in
 * this way, too, that its present work is cancelled. (A caller that may not wait is no
 * such worker, though the thread that polls a submission queue looks like one.)
 *
 * Return: whether to stop
 */
bool zc_interrupted(bool nowait)
{
	if ((current->flags & PF_IO_WORKER) && !nowait)
		return signal_pending(current);
	return task_sigpending(current);
}

/*
 * Goes through both ranges. Called and left with the mmap lock held, unless *locked
 * is false then.
 */
static enum zc_cause exchange_all(struct zc_walk *w, bool *locked)
{
	enum zc_cause cause;
	int attempts = 0, why;
	bool first = true;

	while (w->a < w->end) {
		/* A caller that calls again after a signal gets at least one step further. */
		if (!first && zc_interrupted(w->nowait))
			return ZC_CAUSE_INTERRUPTED;
		cause = zc_vmas_find(w);
		if (cause)
			return cause;
		why = ZC_CAUSE_NONE;
		if (exchange_some(w, &why)) {
			attempts = 0;
			first = false;
		}
		if (why && why < ZC_CAUSE_COUNT && why != ZC_CAUSE_RACED)
			return why;
		if (why && (++attempts > ZC_ATTEMPTS || w->nowait))
			return ZC_CAUSE_RACED;
		if (why > ZC_CAUSE_COUNT - 1) {
			cause = fault_in(w, why == ZC_NEEDS_FAULT_A ? w->a : w->b);
			if (cause)
				return cause;
		}
		/* Let the holder of a page in transit release it. */
		if (need_resched() || why || mmap_lock_is_contended(w->mm)) {
			mmap_read_unlock(w->mm);
			*locked = false;
			cond_resched();
			forget(w);
			cause = lock(w);
			if (cause)
				return cause;
			*locked = true;
		}
	}
	return ZC_CAUSE_NONE;
}

static enum zc_cause check(const struct zc_range *range)
{
	unsigned long a = range->a, b = range->b, length = range->length;

	if ((a | b | length) & ~PAGE_MASK)
		return ZC_CAUSE_ALIGNMENT;
	if (length > TASK_SIZE || a > TASK_SIZE - length || b > TASK_SIZE - length)
		return ZC_CAUSE_ALIGNMENT;
	if (length && a < b + length && b < a + length)
		return ZC_CAUSE_OVERLAP;
	return ZC_CAUSE_NONE;
}

/**
 * zc_exchange_range - exchange the pages of one pair of ranges
 * @range:  checked here; its cause and done are set
 * @nowait: never sleep; what would have to ends with ZC_CAUSE_RACED
 *
 * Return: why it was not exchanged to its end, enum zc_cause
 */
int zc_exchange_range(struct zc_range *range, bool nowait)
{
	struct zc_pair few[ZC_FEW] ZC_UNINITIALIZED;
	struct zc_walk w = {
		.mm = current->mm,
		.a = range->a,
		.b = range->b,
		.end = range->a + range->length,
		.pairs = few,
		.room = ZC_FEW,
		.nowait = nowait,
	};
	bool locked;

	range->done = 0;
	range->cause = check(range);
	if (range->cause || !range->length)
		return range->cause;

	range->cause = lock(&w);
	locked = !range->cause;
	if (locked)
		range->cause = exchange_all(&w, &locked);
	if (locked)
		mmap_read_unlock(w.mm);
	zc_rmap_let_go(&w);
	if (w.pairs != few)
		kfree(w.pairs);
	range->done = w.a - range->a;
	return range->cause;
}

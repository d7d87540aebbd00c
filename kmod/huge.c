// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/page_table_check.h>
#include <linux/userfaultfd_k.h>

#include "zc.h"
#include "zc_compat.h"

/* May the huge page of @pmd move whole? Its folio, locked, in *folio. */
static int take_huge(pmd_t pmd, const struct anon_vma *anon_vma, int needs_fault,
		     struct folio **folio)
{
	struct page *page;

	if (!pmd_present(pmd) || !pmd_trans_huge(pmd))
		return ZC_CAUSE_RACED;	/* was huge a moment ago */
	if (zc_pmd_uffd(pmd))
		return ZC_CAUSE_USERFAULTFD;
	page = pmd_page(pmd);
	*folio = page_folio(page);
	/* The huge zero page: a write brings a page of its own. */
	if (!folio_test_anon(*folio))
		return needs_fault;
	if (page != &(*folio)->page || folio_nr_pages(*folio) != HPAGE_PMD_NR)
		return ZC_CAUSE_PAGE_SIZE;
	return zc_folio_take(*folio, page, anon_vma);
}

/*
 * The entry is not mapped any more, but not empty either: code that looks without the
 * lock would take an empty entry for memory that was never touched, or was given up.
 */
static pmd_t take_out(struct vm_area_struct *vma, unsigned long addr, pmd_t *pmd)
{
	return pmdp_establish(vma, addr, pmd, pmd_mkinvalid(zc_pmd_read(pmd)));
}

static int take_pair(struct zc_walk *w, pmd_t *pmd_a, pmd_t *pmd_b, const struct zc_rmap *rmap,
		     unsigned int i, struct zc_pair *pair)
{
	const unsigned long addr_a = w->a + i * HPAGE_PMD_SIZE, addr_b = w->b + i * HPAGE_PMD_SIZE;
	struct folio *folio_a, *folio_b;
	int why;

	why = take_huge(zc_pmd_read(pmd_a), rmap->a, ZC_NEEDS_FAULT_A, &folio_a);
	if (why)
		return why;
	why = take_huge(zc_pmd_read(pmd_b), rmap->b, ZC_NEEDS_FAULT_B, &folio_b);
	if (why)
		goto unlock_a;

	pair->a.pmd = take_out(w->vma_a, addr_a, pmd_a);
	pair->b.pmd = take_out(w->vma_b, addr_b, pmd_b);
	if (!folio_maybe_dma_pinned(folio_a) && !folio_maybe_dma_pinned(folio_b))
		return ZC_CAUSE_NONE;

	set_pmd_at(w->mm, addr_a, pmd_a, pair->a.pmd);
	set_pmd_at(w->mm, addr_b, pmd_b, pair->b.pmd);
	why = ZC_CAUSE_PINNED;
	folio_unlock(folio_b);
unlock_a:
	folio_unlock(folio_a);
	return why;
}

static void settle(struct zc_walk *w, unsigned long addr, pmd_t *to, pmd_t pmd,
		   struct anon_vma *anon_vma, const struct vm_area_struct *vma)
{
	set_pmd_at(w->mm, addr, to, pmd_mksoft_dirty(pmd));
	zc_folio_settle(page_folio(pmd_page(pmd)), anon_vma, vma, addr);
}

/**
 * zc_huge_exchange - exchange the next huge pages of both sides, whole
 * @w:     where the next pages are
 * @pmd_a: the entry of the first huge page of a
 * @pmd_b: and of b
 * @rmap:  the anon_vmas of both, locked
 * @pages: huge pages at most; all within one page-middle directory on either side
 * @why:   out: why the next one was not exchanged; untouched if all were
 *
 * As zc_table_exchange(), one level up. The page table that each huge mapping
 * keeps in store, for the day it is split, stays where it is: there are as
 * many huge pages on either side after as before.
 *
 * Return: bytes exchanged
 */
unsigned long zc_huge_exchange(struct zc_walk *w, pmd_t *pmd_a, pmd_t *pmd_b,
			       const struct zc_rmap *rmap, unsigned int pages, int *why)
{
	spinlock_t *lock_a = pmd_lockptr(w->mm, pmd_a), *lock_b = pmd_lockptr(w->mm, pmd_b);
	unsigned int n, i;

	zc_lock_both(lock_a, lock_b);
	for (n = 0; n < pages; n++) {
		*why = take_pair(w, pmd_a + n, pmd_b + n, rmap, n, &w->pairs[n]);
		if (*why)
			break;
	}
	if (n)
		zc_tlb_flush(w, n, HPAGE_PMD_SHIFT);
	for (i = 0; i < n; i++) {
		settle(w, w->a + i * HPAGE_PMD_SIZE, pmd_a + i, w->pairs[i].b.pmd, rmap->a,
		       w->vma_a);
		settle(w, w->b + i * HPAGE_PMD_SIZE, pmd_b + i, w->pairs[i].a.pmd, rmap->b,
		       w->vma_b);
	}
	zc_unlock_both(lock_a, lock_b);
	return n * HPAGE_PMD_SIZE;
}

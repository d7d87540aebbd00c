// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/page_table_check.h>
#include <linux/rcupdate.h>
#include <linux/userfaultfd_k.h>

#include "zc.h"
#include "zc_compat.h"

/*
 * Page-table locks of two tables, which may share one. Elsewhere such pairs are
 * taken under the mmap lock for writing (mremap) or in this order (userfaultfd).
 */
void zc_lock_both(spinlock_t *a, spinlock_t *b)
{
	if (a > b)
		swap(a, b);
	spin_lock(a);
	__release(a);	/* sparse cannot follow one lock or two: it sees none */
	if (a != b) {
		spin_lock_nested(b, SINGLE_DEPTH_NESTING);
		__release(b);
	}
}

void zc_unlock_both(spinlock_t *a, spinlock_t *b)
{
	__acquire(a);
	spin_unlock(a);
	if (a != b) {
		__acquire(b);
		spin_unlock(b);
	}
}

/* One side's page table, locked. */
struct side {
	pte_t *pte;		/* of the side's next page */
	spinlock_t *lock;
	struct anon_vma *anon_vma;
};

/*
 * An emptied page table may be freed under the mmap lock for reading, after an
 * RCU grace period: it is looked for under RCU, and once locked, again.
 */
static bool lock_tables(struct zc_walk *w, pmd_t *pmd_a, pmd_t *pmd_b, struct side *a,
			struct side *b)
{
	pmd_t was_a = zc_pmd_read(pmd_a), was_b = zc_pmd_read(pmd_b);

	if (!pmd_present(was_a) || !pmd_present(was_b) || pmd_leaf(was_a) || pmd_leaf(was_b))
		return false;
	a->pte = pte_offset_kernel(&was_a, w->a);
	b->pte = pte_offset_kernel(&was_b, w->b);
	a->lock = pte_lockptr(w->mm, &was_a);
	b->lock = pte_lockptr(w->mm, &was_b);
	zc_lock_both(a->lock, b->lock);
	if (pmd_same(was_a, zc_pmd_read(pmd_a)) && pmd_same(was_b, zc_pmd_read(pmd_b)))
		return true;
	zc_unlock_both(a->lock, b->lock);
	return false;
}

/*
 * May the page of @pte move? Its folio, locked, in *folio; NULL where there is
 * none to tell about it: nothing mapped, or the zero page.
 */
static int take_page(pte_t pte, const struct anon_vma *anon_vma, int needs_fault,
		     struct folio **folio)
{
	struct page *page;

	*folio = NULL;
	if (pte_none(pte))
		return ZC_CAUSE_NONE;
	if (!pte_present(pte))
		/* Swapped out, migrating, poisoned; a guard no fault will ever bring in. */
		return zc_pte_is_guard(pte) ? ZC_CAUSE_ACCESS : needs_fault;
	if (zc_pte_uffd(pte))
		return ZC_CAUSE_USERFAULTFD;
	if (pte_special(pte))
		return is_zero_pfn(pte_pfn(pte)) ? ZC_CAUSE_NONE : ZC_CAUSE_SPECIAL;
	if (zc_pte_is_device(pte))
		return ZC_CAUSE_SPECIAL;

	page = pfn_to_page(pte_pfn(pte));
	*folio = page_folio(page);
	/* The other pages of a large folio would stay behind. */
	if (folio_test_large(*folio))
		return ZC_CAUSE_PAGE_SIZE;
	if (!folio_test_anon(*folio))
		return ZC_CAUSE_SPECIAL;
	return zc_folio_take(*folio, page, anon_vma);
}

static struct folio *folio_of(pte_t pte)
{
	return pte_none(pte) || pte_special(pte) ? NULL : pfn_folio(pte_pfn(pte));
}

static void put_back(struct zc_walk *w, unsigned long addr, pte_t *pte, pte_t was)
{
	if (!pte_none(was))
		set_pte_at(w->mm, addr, pte, was);
}

/*
 * Takes the entries of one page of either side out of their tables. From then
 * on no new pin can come from get_user_pages_fast(), which looks at the entry
 * again after it has raised the count; so a last look at the count decides.
 */
static int take_pair(struct zc_walk *w, const struct side *a, const struct side *b,
		     unsigned int i, struct zc_pair *pair)
{
	const unsigned long addr_a = w->a + i * PAGE_SIZE, addr_b = w->b + i * PAGE_SIZE;
	pte_t *pte_a = a->pte + i, *pte_b = b->pte + i;
	struct folio *folio_a, *folio_b;
	int why;

	pair->a.pte = ptep_get(pte_a);
	pair->b.pte = ptep_get(pte_b);
	why = take_page(pair->a.pte, a->anon_vma, ZC_NEEDS_FAULT_A, &folio_a);
	if (why)
		return why;
	why = take_page(pair->b.pte, b->anon_vma, ZC_NEEDS_FAULT_B, &folio_b);
	if (why)
		goto unlock_a;
	/* A mapping that has never had a page has no anon_vma to file one under. */
	why = folio_a && !b->anon_vma ? ZC_NEEDS_FAULT_B :
	      folio_b && !a->anon_vma ? ZC_NEEDS_FAULT_A : ZC_CAUSE_NONE;
	if (why)
		goto unlock_b;

	if (!pte_none(pair->a.pte))
		pair->a.pte = ptep_get_and_clear(w->mm, addr_a, pte_a);
	if (!pte_none(pair->b.pte))
		pair->b.pte = ptep_get_and_clear(w->mm, addr_b, pte_b);
	if (!(folio_a && folio_maybe_dma_pinned(folio_a)) &&
	    !(folio_b && folio_maybe_dma_pinned(folio_b)))
		return ZC_CAUSE_NONE;

	put_back(w, addr_a, pte_a, pair->a.pte);
	put_back(w, addr_b, pte_b, pair->b.pte);
	why = ZC_CAUSE_PINNED;
unlock_b:
	if (folio_b)
		folio_unlock(folio_b);
unlock_a:
	if (folio_a)
		folio_unlock(folio_a);
	return why;
}

static void settle(struct zc_walk *w, unsigned long addr, pte_t *to, pte_t pte,
		   struct anon_vma *anon_vma, const struct vm_area_struct *vma)
{
	struct folio *folio = folio_of(pte);

	if (pte_none(pte))
		return;
	set_pte_at(w->mm, addr, to, pte_mksoft_dirty(pte));
	if (folio)
		zc_folio_settle(folio, anon_vma, vma, addr);
}

/**
 * zc_table_exchange - exchange the next small pages of both sides
 * @w:     where the next pages are
 * @pmd_a: what points to the page table of a
 * @pmd_b: and of b
 * @rmap:  the anon_vmas of both, locked
 * @pages: how many at most; all within one page table on either side
 * @why:   out: why the next page was not exchanged; untouched if all were
 *
 * Entries are taken out one by one, forgotten by all processors at once, and
 * only then put in at their new places, all under the locks of both tables: no
 * thread ever sees, or writes to, one page at two addresses.
 *
 * Return: bytes exchanged
 */
unsigned long zc_table_exchange(struct zc_walk *w, pmd_t *pmd_a, pmd_t *pmd_b,
				const struct zc_rmap *rmap, unsigned int pages, int *why)
{
	struct side a = { .anon_vma = rmap->a }, b = { .anon_vma = rmap->b };
	bool mapped = false;
	unsigned int n, i;

	rcu_read_lock();
	if (!lock_tables(w, pmd_a, pmd_b, &a, &b)) {
		rcu_read_unlock();
		*why = ZC_CAUSE_RACED;
		return 0;
	}
	for (n = 0; n < pages; n++) {
		*why = take_pair(w, &a, &b, n, &w->pairs[n]);
		if (*why)
			break;
		mapped |= !pte_none(w->pairs[n].a.pte) || !pte_none(w->pairs[n].b.pte);
	}
	if (mapped)
		zc_tlb_flush(w, n, PAGE_SHIFT);
	for (i = 0; i < n; i++) {
		settle(w, w->a + i * PAGE_SIZE, a.pte + i, w->pairs[i].b.pte, a.anon_vma, w->vma_a);
		settle(w, w->b + i * PAGE_SIZE, b.pte + i, w->pairs[i].a.pte, b.anon_vma, w->vma_b);
	}
	zc_unlock_both(a.lock, b.lock);
	rcu_read_unlock();
	return n * PAGE_SIZE;
}

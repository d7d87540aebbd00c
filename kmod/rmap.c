// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/rmap.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>

#include "zc.h"
#include "zc_compat.h"

/*
 * An anonymous folio tells where it is mapped by its anon_vma (folio->mapping)
 * and the place within (folio->index). Reclaim, migration, KSM and compaction
 * trust them, and nobody else notices when they are wrong.
 */

/**
 * zc_rmap_lock - the anon_vmas of both mappings, none of their folios being walked
 * @rmap: out
 * @w:    the mappings
 *
 * The second root is only tried: mm_take_all_locks() takes all of a process in
 * any order, and two processes that were forked from one another share roots.
 *
 * Return: false if the second is taken by somebody; nothing is held then.
 */
bool zc_rmap_lock(struct zc_rmap *rmap, const struct zc_walk *w)
{
	/* Set once, possibly just now by a fault; never changed under the mmap lock. */
	rmap->a = READ_ONCE(w->vma_a->anon_vma);
	rmap->b = READ_ONCE(w->vma_b->anon_vma);
#if ZC_RMAP_WALKS_UNLOCKED
	if (rmap->a)
		down_write(&rmap->a->root->rwsem);
	if (rmap->b && (!rmap->a || rmap->a->root != rmap->b->root) &&
	    !down_write_trylock(&rmap->b->root->rwsem)) {
		if (rmap->a)
			up_write(&rmap->a->root->rwsem);
		return false;
	}
#endif
	return true;
}

/**
 * zc_rmap_unlock - let walks go on
 * @rmap: as zc_rmap_lock() has left it
 */
void zc_rmap_unlock(const struct zc_rmap *rmap)
{
#if ZC_RMAP_WALKS_UNLOCKED
	if (rmap->b && (!rmap->a || rmap->a->root != rmap->b->root))
		up_write(&rmap->b->root->rwsem);
	if (rmap->a)
		up_write(&rmap->a->root->rwsem);
#endif
}

#if ZC_RMAP_TRUSTS_RCU

static void put_nothing(struct anon_vma *anon_vma)
{
	WARN_ON_ONCE(1);
}

DEFINE_STATIC_CALL(zc_put_anon_vma, put_nothing);

static struct workqueue_struct *graves;

/* A pair of anon_vmas that pages go between, and our references to both. */
struct zc_grave {
	struct rcu_work work;
	struct anon_vma *a, *b;
};

static void put(struct anon_vma *anon_vma)
{
	if (anon_vma && atomic_dec_and_test(&anon_vma->refcount))
		static_call(zc_put_anon_vma)(anon_vma);
}

static void bury(struct work_struct *work)
{
	struct zc_grave *grave = container_of(to_rcu_work(work), struct zc_grave, work);

	put(grave->a);
	put(grave->b);
	kfree(grave);
}

/**
 * zc_rmap_keep - let both anon_vmas outlive every walk that has seen them
 * @w:    remembers the last pair
 * @rmap: the pair that pages have just gone between
 *
 * A walk may have read an anon_vma from a folio that has since gone to the
 * other, and take its lock while nothing holds it any more. So both live on
 * until every walk that began before the last page went has left its RCU
 * section: they are held from the first page on, up to zc_rmap_let_go(). The
 * mmap lock is held; it may be dropped before the next page, as two anon_vmas
 * that are held are not freed, and the same addresses thus are the same pair.
 */
void zc_rmap_keep(struct zc_walk *w, const struct zc_rmap *rmap)
{
	struct zc_grave *grave = w->grave;

	if (rmap->a == rmap->b || (grave && grave->a == rmap->a && grave->b == rmap->b))
		return;
	zc_rmap_let_go(w);
	grave = kmalloc(sizeof(*grave), GFP_KERNEL);
	if (!grave) {
		/*
		 * The caller's hold on the mappings keeps them meanwhile. Not
		 * for pages to come: their walks may begin later.
		 */
		synchronize_rcu();
		return;
	}
	INIT_RCU_WORK(&grave->work, bury);
	grave->a = rmap->a;
	grave->b = rmap->b;
	if (grave->a)
		atomic_inc(&grave->a->refcount);
	if (grave->b)
		atomic_inc(&grave->b->refcount);
	w->grave = grave;
}

/**
 * zc_rmap_let_go - no more pages go between the pair that is kept
 * @w: remembers it, if there is one
 */
void zc_rmap_let_go(struct zc_walk *w)
{
	if (w->grave)
		queue_rcu_work(graves, &w->grave->work);
	w->grave = NULL;
}

int zc_rmap_init(void)
{
	void *put_anon_vma = zc_symbol("__put_anon_vma");

	if (!put_anon_vma) {
		pr_err("not loaded: this kernel does not tell where __put_anon_vma is (kprobes off?)\n");
		return -ENOENT;
	}
	static_call_update(zc_put_anon_vma, put_anon_vma);
	graves = alloc_workqueue("zc", WQ_UNBOUND, 0);
	return graves ? 0 : -ENOMEM;
}

void zc_rmap_exit(void)
{
	rcu_barrier();
	destroy_workqueue(graves);
}

#else

void zc_rmap_keep(struct zc_walk *w, const struct zc_rmap *rmap) { }
void zc_rmap_let_go(struct zc_walk *w) { }
int zc_rmap_init(void) { return 0; }
void zc_rmap_exit(void) { }

#endif

static inline struct address_space *mapping_of(const struct anon_vma *anon_vma)
{
	return (void *)anon_vma + FOLIO_MAPPING_ANON;
}

/**
 * zc_folio_take - lock a mapped anonymous folio if it may move to another place
 * @folio: what @page belongs to
 * @page:  the page mapped, the first one of it
 * @of:    the anon_vma of its mapping
 *
 * Under the page-table lock, so the folio is held by its entry. On success it
 * is locked.
 *
 * References are not counted: the batches in which folios wait for their LRU
 * lists, and get_user_pages() without FOLL_PIN, hold the folio and not its
 * address, as they do when mremap() moves it. Only who pins (FOLL_PIN) relies
 * on the page staying where it was.
 *
 * Return: why it may not
 */
enum zc_cause zc_folio_take(struct folio *folio, const struct page *page,
			    const struct anon_vma *of)
{
	if (PageHWPoison((struct page *)page))
		return ZC_CAUSE_POISONED;
	if (folio_test_ksm(folio) || !PageAnonExclusive((struct page *)page))
		return ZC_CAUSE_COW;
	if (folio_maybe_dma_pinned(folio))
		return ZC_CAUSE_PINNED;
	if (folio_test_writeback(folio) || !folio_trylock(folio))
		return ZC_CAUSE_RACED;
	if (folio->mapping != mapping_of(of)) {
		folio_unlock(folio);
		/*
		 * The first page of its mapping, just now? Else it was inherited by
		 * fork() and is still filed under the parent.
		 */
		return of ? ZC_CAUSE_COW : ZC_CAUSE_RACED;
	}
	return ZC_CAUSE_NONE;
}

/**
 * zc_folio_settle - file a locked folio under its new place, and unlock it
 * @folio: not yet mapped there, or just mapped
 * @to:    the anon_vma of the new place
 * @vma:   the mapping of the new place
 * @addr:  the new place
 */
void zc_folio_settle(struct folio *folio, struct anon_vma *to,
		     const struct vm_area_struct *vma, unsigned long addr)
{
	WRITE_ONCE(folio->mapping, mapping_of(to));
	folio->index = zc_anon_index(vma, addr);
	folio_unlock(folio);
}

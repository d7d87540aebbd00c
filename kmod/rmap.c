// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/build_bug.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/rmap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>

#include "zc.h"
#include "zc_compat.h"

/*
 * An anonymous folio tells where it is mapped by its anon_vma (folio->mapping)
 * and the place within (folio->index). Reclaim, migration, KSM and compaction
 * trust them, and nothing else notices when they are wrong.
 */

#if ZC_RMAP_WALKS_UNLOCKED

/*
 * Only one of two is ever waited for, and none is held meanwhile: mm_take_all_locks()
 * takes all of a process in any order, and two processes that were forked from one
 * another share roots. So a caller that cannot have the second releases the first, waits
 * for the second, and then tries the first: as often as this.
 */
#define ZC_TURNS 16

static bool lock_roots(struct rw_semaphore *first, struct rw_semaphore *second, bool nowait)
{
	unsigned int turn;

	if (nowait && !down_write_trylock(first))
		return false;
	if (!nowait)
		down_write(first);
	if (!second)
		return true;
	for (turn = 0; !down_write_trylock(second); turn++) {
		up_write(first);
		if (nowait || turn == ZC_TURNS || fatal_signal_pending(current))
			return false;
		swap(first, second);
		down_write(first);
	}
	return true;
}

#endif

static bool may_keep(struct zc_walk *w, const struct zc_rmap *rmap);

/**
 * zc_rmap_lock - the anon_vmas of both mappings, none of their folios being walked
 * @rmap: out
 * @w:    the mappings; lets go of another pair that is kept
 *
 * Return: false if they cannot be had both (or, where that is asked for, without waiting
 *         now or when they are let go); nothing is held then.
 */
bool zc_rmap_lock(struct zc_rmap *rmap, struct zc_walk *w)
{
	/* Set once, possibly just now by a fault; never changed under the mmap lock. */
	rmap->a = READ_ONCE(w->vma_a->anon_vma);
	rmap->b = READ_ONCE(w->vma_b->anon_vma);
	if (!may_keep(w, rmap))
		return false;
#if ZC_RMAP_WALKS_UNLOCKED
	if (rmap->a && rmap->b && rmap->a->root != rmap->b->root)
		return lock_roots(&rmap->a->root->rwsem, &rmap->b->root->rwsem, w->nowait);
	if (rmap->a || rmap->b)
		return lock_roots(&(rmap->a ?: rmap->b)->root->rwsem, NULL, w->nowait);
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

/* It is called as it is declared; see prototypes.c. */
static_assert(__same_type(put_nothing, __put_anon_vma));

DEFINE_STATIC_CALL(zc_put_anon_vma, put_nothing);

/* Anon_vmas, near the places that their addresses give; a reference to each is ours. */
struct grave {
	struct grave *next;
	struct anon_vma *of[63];
};

/* How far from its place one may lie. */
#define ZC_NEAR 8

/*
 * One for each processor, as exchanges follow one another closely: a wait for RCU serves
 * all that came before it began, and those that come meanwhile are for the next one.
 */
struct cemetery {
	spinlock_t lock;	/* of what follows */
	struct grave *open;	/* for the next wait */
	struct grave *closed;	/* what is being waited for; NULL: nothing is */
	struct rcu_work work;
};

static DEFINE_PER_CPU(struct cemetery, cemeteries);
static struct workqueue_struct *graves;

static void put(struct anon_vma *anon_vma)
{
	if (anon_vma && atomic_dec_and_test(&anon_vma->refcount))
		static_call(zc_put_anon_vma)(anon_vma);
}

/* Locked: begins the next wait, if there is one to begin. */
static void close_grave(struct cemetery *here)
{
	if (here->closed || !here->open)
		return;
	here->closed = here->open;
	here->open = NULL;
	queue_rcu_work(graves, &here->work);
}

/* Every walk that was there when the wait began has ended. */
static void empty_grave(struct work_struct *work)
{
	struct cemetery *here = container_of(to_rcu_work(work), struct cemetery, work);
	struct grave *grave, *next;
	unsigned int i;

	for (grave = here->closed; grave; grave = next) {
		for (i = 0; i < ARRAY_SIZE(grave->of); i++)
			put(grave->of[i]);
		next = grave->next;
		kfree(grave);
	}
	spin_lock(&here->lock);
	here->closed = NULL;
	close_grave(here);
	spin_unlock(&here->lock);
}

/* Where @anon_vma lies, or may lie; NULL: no room near its place. */
static struct anon_vma **place_in(struct grave *grave, const struct anon_vma *anon_vma)
{
	const unsigned int first = hash_ptr(anon_vma, 32);
	struct anon_vma **place;
	unsigned int i;

	for (i = 0; grave && i < ZC_NEAR; i++) {
		place = &grave->of[(first + i) % ARRAY_SIZE(grave->of)];
		if (!*place || *place == anon_vma)
			return place;
	}
	return NULL;
}

/* Locked: gives our reference away, if there is one, and room near its place. */
static bool lay(struct cemetery *here, struct anon_vma **ours)
{
	struct anon_vma **place;

	if (!*ours)
		return true;
	place = place_in(here->open, *ours);
	if (!place)
		return false;
	swap(*place, *ours);
	/* If it lay there already, one reference is enough; ours is not the last then. */
	if (*ours)
		atomic_dec(&(*ours)->refcount);
	*ours = NULL;
	return true;
}

static bool lay_both(struct cemetery *here, struct zc_rmap *ours)
{
	return lay(here, &ours->a) && lay(here, &ours->b);
}

static struct grave *new_grave(bool nowait)
{
	return kzalloc(sizeof(struct grave),
		       (nowait ? GFP_NOWAIT : GFP_KERNEL) | __GFP_ACCOUNT | __GFP_NOWARN);
}

/*
 * Gives our references away, to be put after a wait that is yet to begin. A caller that
 * may not wait has a spare grave; see may_keep().
 */
static void bury(struct zc_walk *w)
{
	struct cemetery *here = raw_cpu_ptr(&cemeteries);
	bool done;

	spin_lock(&here->lock);
	done = lay_both(here, &w->kept);
	if (!done && !w->spare) {
		spin_unlock(&here->lock);
		w->spare = new_grave(false);
		spin_lock(&here->lock);
		done = lay_both(here, &w->kept);
	}
	if (!done && w->spare) {
		w->spare->next = here->open;
		here->open = w->spare;
		w->spare = NULL;
		done = lay_both(here, &w->kept);
	}
	close_grave(here);
	spin_unlock(&here->lock);
	if (done)
		return;
	/* Our references keep them meanwhile. */
	synchronize_rcu();
	put(w->kept.a);
	put(w->kept.b);
}

static bool same_pair(const struct zc_rmap *x, const struct zc_rmap *y)
{
	return x->a == y->a && x->b == y->b;
}

/*
 * Before the first page goes between a pair. Nothing is left to be waited for after the
 * last one, where that is asked for: if need be, there is a grave of our own.
 */
static bool may_keep(struct zc_walk *w, const struct zc_rmap *rmap)
{
	if (rmap->a == rmap->b || same_pair(&w->kept, rmap))
		return true;
	if (w->kept.a || w->kept.b)
		zc_rmap_let_go(w);
	if (w->nowait && !w->spare)
		w->spare = new_grave(true);
	return !w->nowait || w->spare;
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
	if (rmap->a == rmap->b || same_pair(&w->kept, rmap))
		return;
	w->kept = *rmap;
	if (rmap->a)
		atomic_inc(&rmap->a->refcount);
	if (rmap->b)
		atomic_inc(&rmap->b->refcount);
}

/**
 * zc_rmap_let_go - no more pages go between the pair that is kept
 * @w: remembers it, if there is one
 */
noinline void zc_rmap_let_go(struct zc_walk *w)
{
	if (w->kept.a || w->kept.b)
		bury(w);
	w->kept = (struct zc_rmap){ };
	kfree(w->spare);
	w->spare = NULL;
}

int zc_rmap_init(void)
{
	void *put_anon_vma = zc_symbol("__put_anon_vma");
	struct cemetery *at;
	int cpu;

	if (!put_anon_vma) {
		pr_err("not loaded: this kernel does not tell where __put_anon_vma is (kprobes off?)\n");
		return -ENOENT;
	}
	static_call_update(zc_put_anon_vma, put_anon_vma);
	for_each_possible_cpu(cpu) {
		at = per_cpu_ptr(&cemeteries, cpu);
		spin_lock_init(&at->lock);
		INIT_RCU_WORK(&at->work, empty_grave);
	}
	graves = alloc_workqueue("zc", WQ_UNBOUND, 0);
	return graves ? 0 : -ENOMEM;
}

void zc_rmap_exit(void)
{
	/* The wait that is on, and the one that may follow it. */
	rcu_barrier();
	flush_workqueue(graves);
	rcu_barrier();
	destroy_workqueue(graves);
}

#else

static bool may_keep(struct zc_walk *w, const struct zc_rmap *rmap) { return true; }
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
 * address, as they do when mremap() moves it. Only a pin (FOLL_PIN) relies
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

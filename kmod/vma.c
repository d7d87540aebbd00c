// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hugetlb_inline.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/userfaultfd_k.h>

#include "zc.h"
#include "zc_compat.h"

static enum zc_cause vma_cause(const struct vm_area_struct *vma)
{
	if (is_vm_hugetlb_page((struct vm_area_struct *)vma))
		return ZC_CAUSE_HUGETLB;
	if (vma->vm_flags & (VM_SHARED | VM_MAYSHARE))
		return ZC_CAUSE_SHARED;
	/* The stack moves its lower end by itself, and is where this runs. */
	if (vma->vm_flags & (VM_SPECIAL | VM_GROWSDOWN | VM_SHADOW_STACK | VM_DROPPABLE))
		return ZC_CAUSE_SPECIAL;
	if (!vma_is_anonymous((struct vm_area_struct *)vma))
		return ZC_CAUSE_FILE;
	if ((vma->vm_flags & (VM_READ | VM_WRITE)) != (VM_READ | VM_WRITE))
		return ZC_CAUSE_ACCESS;
	if (vma->vm_flags & (VM_LOCKED | VM_LOCKONFAULT))
		return ZC_CAUSE_LOCKED;
	/*
	 * KSM picks a page by its address, lets go of the mmap lock, and merges it wherever
	 * in its mapping it finds it then; but it files the place by the address it began
	 * with. A page that has moved within its mapping meanwhile, be it by way of another,
	 * could not be found any more.
	 */
	if (vma->vm_flags & VM_MERGEABLE)
		return ZC_CAUSE_COW;
	/* The handler of the faults has been promised to see every page arrive. */
	if (userfaultfd_armed((struct vm_area_struct *)vma))
		return ZC_CAUSE_USERFAULTFD;
	return ZC_CAUSE_NONE;
}

/* Entries change places as they are, so they must mean the same in both. */
static enum zc_cause vma_pair_cause(const struct vm_area_struct *a,
				    const struct vm_area_struct *b)
{
	if (pgprot_val(a->vm_page_prot) != pgprot_val(b->vm_page_prot))
		return ZC_CAUSE_ACCESS;
#ifdef CONFIG_NUMA
	if (a->vm_policy != b->vm_policy)
		return ZC_CAUSE_POLICY;
#endif
	return ZC_CAUSE_NONE;
}

static enum zc_cause find(struct mm_struct *mm, unsigned long addr, struct vm_area_struct **vma)
{
	if (*vma && addr >= (*vma)->vm_start && addr < (*vma)->vm_end)
		return ZC_CAUSE_NONE;
	*vma = vma_lookup(mm, addr);
	return *vma ? vma_cause(*vma) : ZC_CAUSE_UNMAPPED;
}

/**
 * zc_vmas_find - the mappings of the next two pages, if they may take part
 * @w: its vma_a and vma_b are set, to NULL if they may not
 *
 * Those found before are taken again where they still fit, without a look.
 *
 * Return: why they may not
 */
enum zc_cause zc_vmas_find(struct zc_walk *w)
{
	struct vm_area_struct *a = w->vma_a, *b = w->vma_b;
	enum zc_cause cause;

	/*
	 * A device that mirrors the address space would have to be told at
	 * every exchange. Registering one takes the mmap lock for writing.
	 */
	if (mm_has_notifiers(w->mm))
		return ZC_CAUSE_NOTIFIER;
	cause = find(w->mm, w->a, &w->vma_a);
	if (!cause)
		cause = find(w->mm, w->b, &w->vma_b);
	if (!cause && (a != w->vma_a || b != w->vma_b))
		cause = vma_pair_cause(w->vma_a, w->vma_b);
	if (cause) {
		w->vma_a = NULL;
		w->vma_b = NULL;
	}
	return cause;
}

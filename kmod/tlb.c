// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/static_call.h>

#include <asm/tlbflush.h>

#include "zc.h"
#include "zc_compat.h"

/*
 * flush_tlb_mm_range() is not exported. A kprobe knows where it is, though past
 * an ENDBR where there is one, which an indirect call must not jump to: hence the
 * static call, which becomes a direct one. prototypes.c sees to it that the two agree.
 */
void zc_flush_nothing(struct mm_struct *mm, unsigned long start, unsigned long end,
		      unsigned int stride_shift, bool freed_tables)
{
	WARN_ON_ONCE(1);
}

DEFINE_STATIC_CALL(zc_flush_range, zc_flush_nothing);

void *zc_symbol(const char *name)
{
	struct kprobe probe = { .symbol_name = name };
	void *address;

	if (register_kprobe(&probe))
		return NULL;
	address = probe.addr;
	unregister_kprobe(&probe);
	return address;
}

int zc_tlb_init(void)
{
	typeof(zc_flush_nothing) *flush = zc_symbol("flush_tlb_mm_range");

	if (!flush) {
		pr_err("not loaded: this kernel does not tell where flush_tlb_mm_range is (kprobes off?)\n");
		return -ENOENT;
	}
	static_call_update(zc_flush_range, flush);
	return 0;
}

/*
 * From this many pages on, both sides together, one flush of everything costs
 * less than one of each page: the kernel's own default (arch/x86/mm/tlb.c).
 */
#define ZC_FLUSH_SINGLY 33

/**
 * zc_tlb_flush - forget the next pages of both sides on every processor
 * @w:     where they are
 * @pages: of each side
 * @shift: log2 of the page size
 */
void zc_tlb_flush(const struct zc_walk *w, unsigned int pages, unsigned int shift)
{
	unsigned long bytes = (unsigned long)pages << shift;

	if (2 * pages > ZC_FLUSH_SINGLY) {
		static_call(zc_flush_range)(w->mm, 0, TLB_FLUSH_ALL, 0, false);
		return;
	}
	static_call(zc_flush_range)(w->mm, w->a, w->a + bytes, shift, false);
	static_call(zc_flush_range)(w->mm, w->b, w->b + bytes, shift, false);
}

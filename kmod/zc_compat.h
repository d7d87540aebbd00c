/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ZC_COMPAT_H
#define ZC_COMPAT_H

/* What differs between the kernels zc builds for, 6.1 and later; nowhere else. */

#include <linux/io_uring.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/version.h>

/* io_uring_cmd_done() takes its issue_flags since 6.1.21. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 21) || !defined(CONFIG_X86_64)
#error "zc: needs Linux 6.1.21 or later on x86-64"
#endif
#ifndef CONFIG_TRANSPARENT_HUGEPAGE
#error "zc: needs CONFIG_TRANSPARENT_HUGEPAGE"
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#include <linux/leafops.h>
#endif

/*
 * Up to 6.18 the reverse mapping of an anonymous folio may be walked without
 * the folio lock, so a folio changes its anon_vma only under the lock of both.
 * 6.19-rc1 has commit 95b34d66480b ("mm: always call rmap_walk() on locked folios")
 * and, which needed it, cc22b9978509 ("mm/userfaultfd: don't lock anon_vma
 * when performing UFFDIO_MOVE"). tests/run kmod-build looks into the sources.
 */
#define ZC_RMAP_WALKS_UNLOCKED (LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0))

/*
 * Until 6.8 such a walk does not look again, once it has the lock, whether the
 * anon_vma is still the folio's; it only trusts that RCU keeps its memory.
 */
#define ZC_RMAP_TRUSTS_RCU (LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0))

#ifndef FOLIO_MAPPING_ANON
#define FOLIO_MAPPING_ANON PAGE_MAPPING_ANON
#endif

#ifndef VM_DROPPABLE
#define VM_DROPPABLE VM_NONE
#endif
#ifndef VM_SHADOW_STACK
#define VM_SHADOW_STACK VM_NONE
#endif

/* Of a variable that is written before it is read: not to be zeroed in each call. */
#if __has_attribute(__uninitialized__)
#define ZC_UNINITIALIZED __attribute__((__uninitialized__))
#else
#define ZC_UNINITIALIZED
#endif

static inline pmd_t zc_pmd_read(pmd_t *pmd)
{
	return READ_ONCE(*pmd);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#define zc_pte_uffd pte_uffd_wp
#define zc_pmd_uffd pmd_uffd_wp
#else
#define zc_pte_uffd pte_uffd
#define zc_pmd_uffd pmd_uffd
#endif

/*
 * The place within its anon_vma of the page at @addr. Since 7.3 the offset of a private
 * mapping of /dev/zero counts for it no more.
 */
static inline pgoff_t zc_anon_index(const struct vm_area_struct *vma, unsigned long addr)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
	return vma->vm_pgoff + ((addr - vma->vm_start) >> PAGE_SHIFT);
#else
	return vma_start_anon_pgoff(vma) + ((addr - vma->vm_start) >> PAGE_SHIFT);
#endif
}

/* An entry that makes a fault of every touch: MADV_GUARD_INSTALL, since 6.13. */
static inline bool zc_pte_is_guard(pte_t pte)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	return false;
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
	return is_guard_swp_entry(pte_to_swp_entry(pte));
#else
	return softleaf_is_guard_marker(softleaf_from_pte(pte));
#endif
}

static inline bool zc_pte_is_device(pte_t pte)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
	return pte_devmap(pte);
#else
	return false;	/* such pages are ordinary ones since */
#endif
}

static inline const void *zc_uring_payload(struct io_uring_cmd *cmd)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return cmd->cmd;
#else
	return cmd->sqe->cmd;
#endif
}

static inline void zc_uring_done(struct io_uring_cmd *cmd, long result, unsigned int issue_flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
	io_uring_cmd_done(cmd, result, 0, issue_flags);
#else
	io_uring_cmd_done(cmd, result, issue_flags);
#endif
}

#endif /* ZC_COMPAT_H */

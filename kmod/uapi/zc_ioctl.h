/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
#ifndef _UAPI_ZC_IOCTL_H
#define _UAPI_ZC_IOCTL_H

/*
 * /dev/zc - exchange the pages of two ranges of the calling process
 *
 * Both ranges are private anonymous memory. After an exchange every page of
 * the one is found at the same place of the other: no byte is copied, no
 * mapping made, split or removed. See ioctl_zc(2).
 *
 * All structures begin with their size as the caller knows it. A kernel that
 * knows a longer one takes the missing fields as zero; one that knows a
 * shorter one answers E2BIG if a field it does not know is not zero, and
 * leaves the rest of the output untouched.
 */

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * enum zc_cause - why a range was not exchanged to its end
 *
 * Each has its errno, in parentheses. The page named by the first byte not
 * done, on either side, is the one that stopped it.
 */
enum zc_cause {
	ZC_CAUSE_NONE = 0,		/* exchanged to its end */
	ZC_CAUSE_ALIGNMENT = 1,		/* (EINVAL) not page-aligned, or beyond user addresses */
	ZC_CAUSE_OVERLAP = 2,		/* (EADDRINUSE) the two ranges share pages */
	ZC_CAUSE_UNMAPPED = 3,		/* (EFAULT) nothing is mapped there */
	ZC_CAUSE_ACCESS = 4,		/* (EACCES) not readable and writable, or not alike */
	ZC_CAUSE_FILE = 5,		/* (ENODEV) not anonymous memory */
	ZC_CAUSE_SHARED = 6,		/* (ENOTUNIQ) MAP_SHARED */
	ZC_CAUSE_HUGETLB = 7,		/* (EMEDIUMTYPE) hugetlbfs */
	ZC_CAUSE_SPECIAL = 8,		/* (EOPNOTSUPP) stack, device or droppable memory */
	ZC_CAUSE_LOCKED = 9,		/* (EPERM) mlock()ed */
	ZC_CAUSE_USERFAULTFD = 10,	/* (EREMOTE) registered with userfaultfd */
	ZC_CAUSE_POLICY = 11,		/* (EXDEV) mbind()ed differently */
	ZC_CAUSE_COW = 12,		/* (EMLINK) shared since fork(), or KSM may merge it */
	ZC_CAUSE_PINNED = 13,		/* (EBUSY) pinned for a device or the kernel */
	ZC_CAUSE_PAGE_SIZE = 14,	/* (ERANGE) part of a huge page, or huge on one side only */
	ZC_CAUSE_NOTIFIER = 15,		/* (EUSERS) a device or KVM mirrors the address space */
	ZC_CAUSE_RACED = 16,		/* (EAGAIN) page in transit: try again */
	ZC_CAUSE_NO_MEMORY = 17,	/* (ENOMEM) */
	ZC_CAUSE_INTERRUPTED = 18,	/* (EINTR) a signal is pending */
	ZC_CAUSE_POISONED = 19,		/* (EHWPOISON) memory failure */
	ZC_CAUSE_COUNT
};

/**
 * struct zc_range - one pair of ranges
 * @a:      first byte of the one range, page-aligned
 * @b:      first byte of the other
 * @length: bytes of each, a multiple of the page size; 0 is allowed
 * @flags:  must be 0
 * @cause:  out: enum zc_cause
 * @done:   out: bytes exchanged, from the beginning; a multiple of the page size
 */
struct zc_range {
	__aligned_u64 a;
	__aligned_u64 b;
	__aligned_u64 length;
	__u32 flags;
	__u32 cause;
	__aligned_u64 done;
};

/**
 * struct zc_exchange - a vector of ranges, exchanged one after the other
 * @size:       sizeof(struct zc_exchange)
 * @range_size: sizeof(struct zc_range), the distance from one to the next
 * @count:      ranges
 * @flags:      must be 0
 * @ranges:     address of the first struct zc_range
 * @done:       out: bytes exchanged, all in all
 * @stopped:    out: index of the first range that was not exchanged to its end, or @count
 * @cause:      out: its enum zc_cause
 *
 * Ranges before @stopped are exchanged, those after it untouched, with their
 * output fields as they were.
 */
struct zc_exchange {
	__u32 size;
	__u32 range_size;
	__u32 count;
	__u32 flags;
	__aligned_u64 ranges;
	__aligned_u64 done;
	__u32 stopped;
	__u32 cause;
};

/* What struct zc_features::features may say. */
#define ZC_FEATURE_EXCHANGE	(1ULL << 0)	/* ZC_IOC_EXCHANGE */
#define ZC_FEATURE_HUGE		(1ULL << 1)	/* transparent huge pages, whole */
#define ZC_FEATURE_URING	(1ULL << 2)	/* IORING_OP_URING_CMD, cmd_op ZC_URING_EXCHANGE */

/**
 * struct zc_features - what this module does here
 * @size:      sizeof(struct zc_features)
 * @causes:    out: enum zc_cause values below this may occur
 * @features:  out: ZC_FEATURE_*
 * @page_size: out: bytes
 * @huge_size: out: bytes of a huge page exchanged whole, 0 if there is none
 */
struct zc_features {
	__u32 size;
	__u32 causes;
	__aligned_u64 features;
	__u32 page_size;
	__u32 huge_size;
};

#define ZC_IOC_MAGIC	0xBA

#define ZC_IOC_FEATURES	_IOWR(ZC_IOC_MAGIC, 0, struct zc_features)
#define ZC_IOC_EXCHANGE	_IOWR(ZC_IOC_MAGIC, 1, struct zc_exchange)

/*
 * For io_uring: IORING_OP_URING_CMD on a descriptor of /dev/zc with
 * sqe->cmd_op = ZC_URING_EXCHANGE and, in sqe->cmd, this. The completion's
 * res is what the ioctl would have returned: 0 or a negative errno.
 */
#define ZC_URING_EXCHANGE	1u

struct zc_uring_cmd {
	__aligned_u64 exchange;		/* address of a struct zc_exchange */
	__aligned_u64 reserved;		/* 0 */
};

#endif /* _UAPI_ZC_IOCTL_H */

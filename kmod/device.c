// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compat.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "zc.h"
#include "zc_compat.h"

static const int errno_of[ZC_CAUSE_COUNT] = {
	[ZC_CAUSE_NONE] = 0,
	[ZC_CAUSE_ALIGNMENT] = -EINVAL,
	[ZC_CAUSE_OVERLAP] = -EADDRINUSE,
	[ZC_CAUSE_UNMAPPED] = -EFAULT,
	[ZC_CAUSE_ACCESS] = -EACCES,
	[ZC_CAUSE_FILE] = -ENODEV,
	[ZC_CAUSE_SHARED] = -ENOTUNIQ,
	[ZC_CAUSE_HUGETLB] = -EMEDIUMTYPE,
	[ZC_CAUSE_SPECIAL] = -EOPNOTSUPP,
	[ZC_CAUSE_LOCKED] = -EPERM,
	[ZC_CAUSE_USERFAULTFD] = -EREMOTE,
	[ZC_CAUSE_POLICY] = -EXDEV,
	[ZC_CAUSE_COW] = -EMLINK,
	[ZC_CAUSE_PINNED] = -EBUSY,
	[ZC_CAUSE_PAGE_SIZE] = -ERANGE,
	[ZC_CAUSE_NOTIFIER] = -EUSERS,
	[ZC_CAUSE_RACED] = -EAGAIN,
	[ZC_CAUSE_NO_MEMORY] = -ENOMEM,
	[ZC_CAUSE_INTERRUPTED] = -EINTR,
	[ZC_CAUSE_POISONED] = -EHWPOISON,
};

/* The first versions of the structures: what every caller must bring. */
#define ZC_FEATURES_SIZE_1 24
#define ZC_RANGE_SIZE_1 40
#define ZC_EXCHANGE_SIZE_1 40

/* Word by word, for a few words: a third of the instructions of copy_from_user(). */
static __always_inline int get_words(u64 *to, const u64 __user *from, size_t words)
{
	might_fault();
	if (!user_read_access_begin(from, words * sizeof(*from)))
		return -EFAULT;
	while (words--)
		unsafe_get_user(*to++, from++, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* A structure of which the caller knows @size bytes, and we @known. */
static __always_inline int get_known(void *to, size_t known, const void __user *from, size_t size)
{
	BUILD_BUG_ON(known % sizeof(u64));
	if (likely(size == known))
		return get_words(to, from, known / sizeof(u64));
	return copy_struct_from_user(to, known, from, size);
}

/* A structure that begins with its own size. */
static __always_inline int get_struct(void *to, size_t known, size_t least,
				      const void __user *from, u32 *size)
{
	if (get_user(*size, (const u32 __user *)from))
		return -EFAULT;
	if (*size < least)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	return get_known(to, known, from, *size);
}

static long get_features(void __user *user)
{
	struct zc_features f;
	u32 size;
	int err;

	err = get_struct(&f, sizeof(f), ZC_FEATURES_SIZE_1, user, &size);
	if (err)
		return err;
	f = (struct zc_features){
		.size = size,
		.causes = ZC_CAUSE_COUNT,
		.features = ZC_FEATURE_EXCHANGE | ZC_FEATURE_HUGE,
		.page_size = PAGE_SIZE,
		.huge_size = HPAGE_PMD_SIZE,
	};
	if (IS_ENABLED(CONFIG_IO_URING))
		f.features |= ZC_FEATURE_URING;
	return copy_to_user(user, &f, min_t(size_t, size, sizeof(f))) ? -EFAULT : 0;
}

static int put_range_result(struct zc_range __user *user, const struct zc_range *range)
{
	might_fault();
	if (!user_write_access_begin(user, sizeof(*user)))
		return -EFAULT;
	unsafe_put_user(range->cause, &user->cause, fault);
	unsafe_put_user(range->done, &user->done, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

static int put_result(struct zc_exchange __user *user, const struct zc_exchange *x)
{
	might_fault();
	if (!user_write_access_begin(user, sizeof(*user)))
		return -EFAULT;
	unsafe_put_user(x->done, &user->done, fault);
	unsafe_put_user(x->stopped, &user->stopped, fault);
	unsafe_put_user(x->cause, &user->cause, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

/* Would have to wait, and nothing is exchanged yet: to be begun anew where it may. */
static bool to_be_begun_anew(bool nowait, u64 done, u32 cause)
{
	return nowait && !done && cause == ZC_CAUSE_RACED;
}

static long exchange_one(struct zc_range __user *user, u32 range_size, bool nowait, u64 *done,
			 u32 *cause)
{
	struct zc_range range;
	int err;

	err = get_known(&range, sizeof(range), user, range_size);
	if (err)
		return err;
	if (range.flags)
		return -EINVAL;
	*cause = zc_exchange_range(&range, nowait);
	*done += range.done;
	if (to_be_begun_anew(nowait, *done, *cause))
		return -EAGAIN;
	zc_count(&range);
	if (put_range_result(user, &range))
		return -EFAULT;
	return errno_of[*cause];
}

/* A caller that may not wait cannot have more ranges than these, even if they are empty. */
#define ZC_RANGES_AT_ONCE 1024

/* @nowait: in: never sleep; out: nothing was done for that reason, begin anew where one may. */
static long exchange(struct zc_exchange __user *user, bool *nowait)
{
	const bool may_not_wait = *nowait;
	struct zc_exchange x;
	u32 size, i;
	long err;

	*nowait = false;
	err = get_struct(&x, sizeof(x), ZC_EXCHANGE_SIZE_1, user, &size);
	if (err)
		return err;
	if (x.flags || x.range_size < ZC_RANGE_SIZE_1)
		return -EINVAL;
	if (x.range_size > PAGE_SIZE)
		return -E2BIG;
	if (!current->mm)
		return -EFAULT;
	*nowait = may_not_wait && x.count > ZC_RANGES_AT_ONCE;
	if (*nowait)
		return -EAGAIN;

	x.done = 0;
	x.cause = ZC_CAUSE_NONE;
	for (i = 0; i < x.count && !err; i++) {
		if (i && zc_interrupted(may_not_wait)) {
			x.cause = ZC_CAUSE_INTERRUPTED;
			err = -EINTR;
			break;
		}
		err = exchange_one(u64_to_user_ptr(x.ranges + (u64)i * x.range_size),
				   x.range_size, may_not_wait, &x.done, &x.cause);
		*nowait = to_be_begun_anew(may_not_wait, x.done, x.cause);
		if (*nowait)
			return -EAGAIN;
		if (err)
			break;
		cond_resched();
	}
	x.stopped = i;
	return put_result(user, &x) ? -EFAULT : err;
}

static long zc_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	bool nowait = false;

	/* The size within @cmd is the caller's; the structure says it, too. */
	if (_IOC_TYPE(cmd) != ZC_IOC_MAGIC || _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE))
		return -ENOTTY;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(ZC_IOC_FEATURES):
		return get_features(user);
	case _IOC_NR(ZC_IOC_EXCHANGE):
		return exchange(user, &nowait);
	default:
		return -ENOTTY;
	}
}

static int zc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct zc_uring_cmd *payload = zc_uring_payload(cmd);
	u64 address = READ_ONCE(payload->exchange);
	bool nowait = issue_flags & IO_URING_F_NONBLOCK;
	long err;

	if (cmd->cmd_op != ZC_URING_EXCHANGE)
		return -ENOTTY;
	if (READ_ONCE(payload->reserved))
		return -EINVAL;
	err = exchange(u64_to_user_ptr(address), &nowait);
	if (err != -EAGAIN || nowait)
		return err;
	/*
	 * A page in transit, or one that would have to be waited for. Returned, this
	 * would have io_uring begin anew, where it may wait, what is done in part
	 * already. That is for untouched ranges; of these, the caller submits the rest.
	 */
	zc_uring_done(cmd, err, issue_flags);
	return -EIOCBQUEUED;
}

static const struct file_operations zc_file_operations = {
	.owner = THIS_MODULE,	/* an open device keeps the module */
	.open = nonseekable_open,
	.unlocked_ioctl = zc_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = zc_uring_cmd,
};

static struct miscdevice zc_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "zc",
	.fops = &zc_file_operations,
	.mode = 0660,
	.groups = zc_counter_groups,
};

static int __init zc_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct zc_features) != ZC_FEATURES_SIZE_1);
	BUILD_BUG_ON(sizeof(struct zc_range) != ZC_RANGE_SIZE_1);
	BUILD_BUG_ON(sizeof(struct zc_exchange) != ZC_EXCHANGE_SIZE_1);

	err = zc_tlb_init();
	if (err)
		return err;
	err = zc_rmap_init();
	if (err)
		return err;
	zc_counters_init();
	err = misc_register(&zc_device);
	if (err)
		zc_rmap_exit();
	return err;
}

static void __exit zc_exit(void)
{
	misc_deregister(&zc_device);
	zc_rmap_exit();
}

module_init(zc_init);
module_exit(zc_exit);

MODULE_DESCRIPTION("Exchange the pages of two ranges of a process");
MODULE_AUTHOR("The zc developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.2.0");

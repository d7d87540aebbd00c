// SPDX-License-Identifier: GPL-2.0-only
#include <linux/device.h>
#include <linux/sysfs.h>

#include "zc.h"

/*
 * Counters of what the module has done since it was loaded:
 * /sys/class/misc/zc/stats/, one number per file.
 */
DEFINE_PER_CPU(struct zc_counters, zc_counters);

static const char *const name_of[ZC_CAUSE_COUNT] = {
	[ZC_CAUSE_NONE] = "exchanged",
	[ZC_CAUSE_ALIGNMENT] = "alignment",
	[ZC_CAUSE_OVERLAP] = "overlap",
	[ZC_CAUSE_UNMAPPED] = "unmapped",
	[ZC_CAUSE_ACCESS] = "access",
	[ZC_CAUSE_FILE] = "file",
	[ZC_CAUSE_SHARED] = "shared",
	[ZC_CAUSE_HUGETLB] = "hugetlb",
	[ZC_CAUSE_SPECIAL] = "special",
	[ZC_CAUSE_LOCKED] = "locked",
	[ZC_CAUSE_USERFAULTFD] = "userfaultfd",
	[ZC_CAUSE_POLICY] = "policy",
	[ZC_CAUSE_COW] = "cow",
	[ZC_CAUSE_PINNED] = "pinned",
	[ZC_CAUSE_PAGE_SIZE] = "page_size",
	[ZC_CAUSE_NOTIFIER] = "notifier",
	[ZC_CAUSE_RACED] = "raced",
	[ZC_CAUSE_NO_MEMORY] = "no_memory",
	[ZC_CAUSE_INTERRUPTED] = "interrupted",
	[ZC_CAUSE_POISONED] = "poisoned",
};

static struct device_attribute of_cause[ZC_CAUSE_COUNT];

static ssize_t pages_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(&zc_counters, cpu)->pages);
	return sysfs_emit(buf, "%lu\n", sum);
}
static DEVICE_ATTR_RO(pages);

static ssize_t ranges_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const unsigned int cause = attr - of_cause;
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(&zc_counters, cpu)->ranges[cause]);
	return sysfs_emit(buf, "%lu\n", sum);
}

static struct attribute *attributes[1 + ZC_CAUSE_COUNT + 1];

static const struct attribute_group group = {
	.name = "stats",
	.attrs = attributes,
};

const struct attribute_group *zc_counter_groups[] = { &group, NULL };

/** zc_counters_init - before the device is registered */
void zc_counters_init(void)
{
	unsigned int i;

	attributes[0] = &dev_attr_pages.attr;
	for (i = 0; i < ZC_CAUSE_COUNT; i++) {
		of_cause[i] = (struct device_attribute)__ATTR(unused, 0444, ranges_show, NULL);
		of_cause[i].attr.name = name_of[i];
		attributes[1 + i] = &of_cause[i].attr;
	}
}

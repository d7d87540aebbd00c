/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel tells of this process's memory. */
#ifndef ZC_STATUS_H
#define ZC_STATUS_H

#include "check.h"

/* The field @name of @path, which must be there. */
static inline size_t status_field(const char *path, const char *name)
{
    char line[256], format[64];
    size_t value = 0;
    int found = 0;
    FILE *status = fopen(path, "r");
    CHECK(status, "no %s", path);
    snprintf(format, sizeof format, "%s: %%zu", name);
    while (!found && fgets(line, sizeof line, status))
        found = sscanf(line, format, &value) == 1;
    fclose(status);
    CHECK(found, "no %s in %s", name, path);
    return value;
}

/** status_kib - the field @name ("VmHWM") of /proc/self/status, which must be there */
static inline size_t status_kib(const char *name)
{
    return status_field("/proc/self/status", name);
}

/**
 * status_private_kib - memory of this process alone, in its page tables or swapped out. VmRSS is
 * counted by processor and is some hundred KiB late, and it falls where the kernel reclaims pages.
 */
static inline size_t status_private_kib(void)
{
    return status_field("/proc/self/smaps_rollup", "Anonymous") +
           status_field("/proc/self/smaps_rollup", "Swap");
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel tells of this process's memory. */
#ifndef ZC_STATUS_H
#define ZC_STATUS_H

#include "check.h"

/** status_kib - the field @name ("VmHWM") of /proc/self/status, which must be there */
static inline size_t status_kib(const char *name)
{
    char line[256], format[64];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status, "no /proc/self/status");
    snprintf(format, sizeof format, "%s: %%zu", name);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, format, &kib) == 1)
            break;
    fclose(status);
    CHECK(kib > 0, "no %s in /proc/self/status", name);
    return kib;
}

#endif

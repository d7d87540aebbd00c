/* SPDX-License-Identifier: BSD-3-Clause */
#include "unrecorded.h"

#include <errno.h>

static struct zct_table counts; /* struct zct_unrecorded_count, by site and function */

bool zct_unrecorded_init(void)
{
    return zct_table_init(&counts, sizeof(struct zct_unrecorded_count));
}

void zct_unrecorded_count(enum zct_unrecorded what, void *caller, uint64_t bytes, int64_t begin_ns)
{
    if (!begin_ns || !zct.active)
        return;
    const int64_t now = zct_now_after();
    zct_lock();
    const uint32_t site = zct_site_locked(caller);
    const uintptr_t key = (uintptr_t)site * ZCT_NR_UNRECORDED + what;
    struct zct_unrecorded_count *count = zct_table_find(&counts, key);
    if (!count) {
        count = zct_table_insert(&counts, key);
        if (count)
            *count = (struct zct_unrecorded_count){.what = what, .site = site};
        else
            zct.writer.error = ENOMEM;
    }
    if (count) {
        count->calls++;
        count->bytes += bytes;
        count->ns += (uint64_t)(now - begin_ns);
    }
    zct_unlock();
}

void zct_unrecorded_write_locked(void)
{
    for (size_t i = 0; i < (size_t)1 << counts.log2_slots; i++) {
        const uintptr_t *slot = zct_table_slot(&counts, i);
        if (*slot)
            zct_write_unrecorded(&zct.writer,
                                 (const struct zct_unrecorded_count *)(const void *)(slot + 1));
    }
}

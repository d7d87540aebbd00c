/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls that may wait, and the places of the program that make them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

#include "tracer.h"

static uint32_t announce_locked(void *caller)
{
    Dl_info info = {0};
    const uintptr_t address = (uintptr_t)caller;
    /* The call itself lies before the address that it returns to. */
    const bool found = dladdr((char *)caller - 1, &info) != 0;
    const uintptr_t base = found ? (uintptr_t)info.dli_fbase : 0;
    return zct_write_site(&zct.writer, address, address - base,
                          found && info.dli_fname ? info.dli_fname : "",
                          found && info.dli_sname ? info.dli_sname : "");
}

uint32_t zct_site_locked(void *caller)
{
    if (!zct.calls)
        return 0;
    const uintptr_t key = (uintptr_t)caller;
    const uint32_t *known = zct_table_find(&zct.sites, key);
    if (known)
        return *known;
    const uint32_t site = announce_locked(caller);
    uint32_t *entry = zct_table_insert(&zct.sites, key);
    if (entry)
        *entry = site;
    else
        zct.writer.error = ENOMEM;
    return site;
}

void zct_call_ended(enum zct_function function, void *caller, int64_t begin_ns, int64_t end_ns,
                    const uint64_t *sends, size_t nr_sends)
{
    zct_lock();
    const struct zct_call call = {
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .function = function,
        .site = zct_site_locked(caller),
        .sends = sends,
        .nr_sends = nr_sends,
    };
    zct_write_call(&zct.writer, &call);
    zct_unlock();
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls that may wait, and the places of the program that make them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

#include "tracer.h"

uint32_t zct_site_announce_locked(void *caller)
{
    Dl_info info = {0};
    const uintptr_t address = (uintptr_t)caller;
    /* The call itself lies before the address that it returns to. */
    const bool found = dladdr((char *)caller - 1, &info) != 0;
    const uintptr_t base = found ? (uintptr_t)info.dli_fbase : 0;
    const uint32_t site = zct_write_site(&zct.writer, address, address - base,
                                         found && info.dli_fname ? info.dli_fname : "",
                                         found && info.dli_sname ? info.dli_sname : "");
    uint32_t *entry = zct_table_insert(&zct.sites, address);
    if (entry)
        *entry = site;
    else
        zct.writer.error = ENOMEM;
    return site;
}

void zct_call_ended(enum zct_function function, void *caller, int64_t begin_ns, int64_t end_ns)
{
    zct_lock();
    zct_call_ended_locked(function, zct_site_locked(caller), begin_ns, end_ns, NULL, 0);
    zct_unlock();
}

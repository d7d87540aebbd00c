/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls that may wait, and the places of the program that make them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tracer.h"

/* The file that @address is in, in @path or as the dynamic linker names it. That names the program
 * itself as it was called, which may be from another folder than the one that the trace is read in.
 * Where the dynamic linker was called to run the program, /proc/self/exe is the linker. */
static const char *find_module(void *address, Dl_info *info, char *path, size_t capacity)
{
    struct link_map *map = NULL;
    if (!dladdr1(address, info, (void **)&map, RTLD_DL_LINKMAP)) {
        *info = (Dl_info){0};
        return "";
    }
    if (map && !*map->l_name && getauxval(AT_BASE)) {
        const ssize_t n = readlink("/proc/self/exe", path, capacity - 1);
        if (n > 0) {
            path[n] = '\0';
            return path;
        }
    }
    return info->dli_fname ? info->dli_fname : "";
}

uint32_t zct_site_announce_locked(void *caller)
{
    Dl_info info;
    char path[PATH_MAX];
    const uintptr_t address = (uintptr_t)caller;
    /* The call itself lies before the address that it returns to. */
    const char *module = find_module((char *)caller - 1, &info, path, sizeof(path));
    const uint32_t site = zct_write_site(&zct.writer, address, address - (uintptr_t)info.dli_fbase,
                                         module, info.dli_sname ? info.dli_sname : "");
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

bool zct_moved(int code)
{
    int class = MPI_SUCCESS;
    if (ZCT_UNLIKELY(code != MPI_SUCCESS))
        REAL(Error_class)(code, &class);
    return class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE;
}

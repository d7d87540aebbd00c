/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner_calls.h"

struct zct_real zct_real;

/* A library that was opened with RTLD_LOCAL (by an interpreter's MPI module) is
 * not among those after us: it is asked by its handle. */
static void *local_library;

static int find_local_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(base, "libmpi.so", 9) != 0 && strncmp(base, "libmpich.so", 11) != 0)
        return 0;
    local_library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return local_library != NULL;
}

/* Never RTLD_DEFAULT: that would find our own PMPI_X. */
static void *search(const char *name)
{
    return dlsym(local_library ? local_library : RTLD_NEXT, name);
}

static void fail(const char *why)
{
    fprintf(stderr, "zc-trace: %s\n", why);
    _Exit(127);
}

#if ZCT_OPENMPI
/* Variables may have been copied into the program itself (copy relocation): the
 * library's own, which is what comes after us, are not the ones it uses then. */
static void *search_variable(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found ? found : search(name);
}
#endif

static void find_handles(void)
{
#if ZCT_OPENMPI
    zct_real.world = search_variable("ompi_mpi_comm_world");
    zct_real.comm_null = search_variable("ompi_mpi_comm_null");
    zct_real.byte = search_variable("ompi_mpi_byte");
    zct_real.request_null = search_variable("ompi_request_null");
    zct_real.message_null = search_variable("ompi_message_null");
    zct_real.message_no_proc = search_variable("ompi_message_no_proc");
    if (!zct_real.world || !zct_real.comm_null || !zct_real.byte || !zct_real.request_null)
        fail("this Open MPI has not the handles expected");
#else
    zct_real.world = MPI_COMM_WORLD;
    zct_real.comm_null = MPI_COMM_NULL;
    zct_real.byte = MPI_BYTE;
    zct_real.request_null = MPI_REQUEST_NULL;
    zct_real.message_null = MPI_MESSAGE_NULL;
    zct_real.message_no_proc = MPI_MESSAGE_NO_PROC;
#endif
}

static void find_functions(void)
{
    const char *missing = NULL;
#define X(name)                                                                                    \
    *(void **)&zct_real.name = search("PMPI_" #name);                                              \
    if (!zct_real.name)                                                                            \
        missing = "PMPI_" #name;
    ZCT_REAL_FUNCTIONS(X)
#undef X
    if (missing) {
        fprintf(stderr, "zc-trace: the program's MPI library has no %s\n", missing);
        _Exit(127);
    }
    /* These a library of an earlier MPI may lack: then no program calls them. */
#define X(name) *(void **)&zct_real.name = search("PMPI_" #name);
    ZCT_REAL_LARGE_FUNCTIONS(X)
#undef X
}

void zct_real_find(void)
{
    if (zct_real.Init)
        return;
    if (!search("PMPI_Finalize") && !dl_iterate_phdr(find_local_library, NULL))
        fail("cannot find the program's MPI library");
    const bool openmpi = search("ompi_mpi_comm_world") != NULL;
    if (openmpi != ZCT_OPENMPI)
        fail(openmpi ? "the program uses Open MPI: trace it with zc-trace --mpi openmpi"
                     : "the program does not use Open MPI: trace it with zc-trace --mpi mpich");
    find_handles();
    find_functions();
    zct_leave_inner_calls((void *)zct_real.Finalize);
}

/* Most programs are linked with MPI. Others find it in MPI_Init. */
__attribute__((constructor)) static void at_load(void)
{
    if (search("PMPI_Init"))
        zct_real_find();
}

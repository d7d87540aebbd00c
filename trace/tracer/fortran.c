/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fortran's functions are wrappers of the C ones in the MPI library: what calls
 * these is the library. Their own wrappers here keep where the program called
 * them, and pass their arguments on, which are all addresses. There are at most
 * 13; where a function has fewer, the words behind them are passed as well, and
 * are not read.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer.h"

__thread void *zct_fortran_caller __attribute__((tls_model("initial-exec")));

typedef void fortran(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *, void *);

struct sought {
    const char *name;
    void *found;
};

/* A library that was opened with RTLD_LOCAL is not among those after us. */
static int search_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct sought *sought = arg;
    (void)size;
    if (!strstr(info->dlpi_name, "mpi"))
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    sought->found = dlsym(library, sought->name);
    dlclose(library);
    return sought->found != NULL;
}

static fortran *find(const char *name)
{
    struct sought sought = {name, dlsym(RTLD_NEXT, name)};
    if (!sought.found)
        dl_iterate_phdr(search_library, &sought);
    if (!sought.found) {
        fprintf(stderr, "zc-trace: cannot find %s of the program's MPI library\n", name);
        abort();
    }
    fortran *function;
    memcpy(&function, &sought.found, sizeof(function));
    return function;
}

#define NAMED(symbol)                                                                              \
    void symbol(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i,   \
                void *j, void *k, void *l, void *m);                                               \
    void symbol(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i,   \
                void *j, void *k, void *l, void *m)                                                \
    {                                                                                              \
        static fortran *real;                                                                      \
        void *const outer = zct_fortran_caller;                                                    \
        if (ZCT_UNLIKELY(!real))                                                                   \
            real = find(#symbol);                                                                  \
        if (!outer)                                                                                \
            zct_fortran_caller = __builtin_return_address(0);                                      \
        real(a, b, c, d, e, f, g, h, i, j, k, l, m);                                               \
        zct_fortran_caller = outer;                                                                \
    }

/* Of mpif.h and the module mpi, and of mpi_f08: without a buffer, with one in
 * Open MPI, with one in MPICH. */
#define X(name) NAMED(mpi_##name##_) NAMED(mpi_##name##_f08_) NAMED(mpi_##name##_f08ts_)

X(send)
X(ssend)
X(bsend)
X(rsend)
X(isend)
X(issend)
X(ibsend)
X(irsend)
X(recv)
X(irecv)
X(mrecv)
X(imrecv)
X(sendrecv)
X(sendrecv_replace)
X(isendrecv)
X(isendrecv_replace)
X(start)
X(startall)
X(wait)
X(waitall)
X(waitany)
X(waitsome)
X(test)
X(testall)
X(testany)
X(testsome)
X(accumulate)
X(compare_and_swap)
X(fetch_and_op)
X(get)
X(get_accumulate)
X(put)
X(raccumulate)
X(rget)
X(rput)
X(win_complete)
X(win_fence)
X(win_flush)
X(win_flush_all)
X(win_flush_local)
X(win_flush_local_all)
X(win_lock)
X(win_lock_all)
X(win_post)
X(win_start)
X(win_test)
X(win_unlock)
X(win_unlock_all)
X(win_wait)
X(probe)
X(iprobe)
X(mprobe)
X(improbe)
X(barrier)
X(bcast)
X(reduce)
X(allreduce)
X(gather)
X(gatherv)
X(scatter)
X(scatterv)
X(allgather)
X(allgatherv)
X(alltoall)
X(alltoallv)
X(alltoallw)
X(scan)
X(exscan)
X(reduce_scatter)
X(reduce_scatter_block)
X(ibarrier)
X(ibcast)
X(ireduce)
X(iallreduce)
X(igather)
X(igatherv)
X(iscatter)
X(iscatterv)
X(iallgather)
X(iallgatherv)
X(ialltoall)
X(ialltoallv)
X(ialltoallw)
X(iscan)
X(iexscan)
X(ireduce_scatter)
X(ireduce_scatter_block)
X(neighbor_allgather)
X(neighbor_allgatherv)
X(neighbor_alltoall)
X(neighbor_alltoallv)
X(neighbor_alltoallw)
X(ineighbor_allgather)
X(ineighbor_allgatherv)
X(ineighbor_alltoall)
X(ineighbor_alltoallv)
X(ineighbor_alltoallw)

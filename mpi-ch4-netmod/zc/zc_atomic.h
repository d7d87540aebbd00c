/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ATOMIC_H_INCLUDED
#define ZC_ATOMIC_H_INCLUDED

/* UCX does some accumulates itself: those on integers of 4 and 8 bytes, with the processor's own
 * atomic instructions, at the target or from another process.
 *
 * MPI demands that accumulates on one location are atomic towards each other, and those that run as
 * CH4's active messages are not atomic towards UCX's. So all that may meet at a location must be
 * done in the same way, and a window must promise, when it is made, that it needs nothing that UCX
 * cannot do:
 *
 *   which_accumulate_ops        some of sum, band, bor, bxor, replace, no_op, cswap
 *   accumulate_noncontig_dtype  false
 *   accumulate_max_bytes        64 or less: each element is a message of its own
 *
 * A rank that may leave (zc_path.h) cannot keep to one way: what follows while it is away would be
 * messages, which another rank's operation of UCX may meet, and which MPI wants in the order of all
 * accumulates of one origin. So where ranks may leave, all accumulates are messages. (A rank that uses
 * shared memory does not leave.)
 *
 * All processes that use a location at a time use the same type and alignment. Other types and odd
 * addresses keep to active messages. */

#include "zc_impl.h"
#include "zc_win.h"

/* The arguments of an accumulate, but for the window. Without a result it fetches nothing; without
 * a compare it is no compare-and-swap. */
typedef struct {
    const void *origin;         /* not read by MPI_NO_OP */
    int origin_count;
    MPI_Datatype origin_type;
    const void *compare;        /* or NULL */
    void *result;               /* or NULL */
    int result_count;
    MPI_Datatype result_type;
    int target_rank;
    MPI_Aint target_disp;
    int target_count;
    MPI_Datatype target_type;
    MPI_Op op;                  /* MPI_OP_NULL: compare and swap */
} MPIDI_ZC_accumulate_t;

/* Has @win promised that, and are UCX's operations faster? Each member answers for itself, and all
 * have to agree. */
bool MPIDI_ZC_atomics_wanted(MPIR_Win * win);

/* Starts @acc and sets @mpi_errno. False: UCX cannot do it. @req: a place for the request, or
 * NULL. */
bool MPIDI_ZC_atomic_try(const MPIDI_ZC_accumulate_t * acc, MPIR_Win * win, MPIR_Request ** req,
                         int *mpi_errno);

#endif /* ZC_ATOMIC_H_INCLUDED */

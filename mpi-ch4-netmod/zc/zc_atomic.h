/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ATOMIC_H_INCLUDED
#define ZC_ATOMIC_H_INCLUDED

/* Accumulates that UCX does itself: on integers of 4 and 8 bytes, with the processor's
 * own atomic instructions, at the target or from afar.
 *
 * MPI wants accumulates on one location to be atomic towards each other, and those that
 * run as CH4's active messages are not towards UCX's. So whatever may meet must go the
 * same way, and a window must promise, when it is made, that nothing is needed of which
 * UCX is not capable:
 *
 *   which_accumulate_ops        some of sum, band, bor, bxor, replace, no_op, cswap
 *   accumulate_noncontig_dtype  false
 *   accumulate_max_bytes        64 or less: each element is a message of its own
 *
 * What type a location has, and how it is aligned, is the same for all who use it
 * at a time; other types and odd addresses keep to active messages. */

#include "zc_impl.h"
#include "zc_win.h"

/* An accumulate, as far as it is not the target's. Those without a result fetch nothing,
 * those without a compare are no compare-and-swap; no count is that of one element. */
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

/* Has @win promised, and does it pay? Local; its members have to agree. */
bool MPIDI_ZC_atomics_wanted(MPIR_Win * win);

/* Starts @acc and sets @mpi_errno; or, if UCX cannot do it, returns false.
 * @req: where a request is wanted, or NULL. */
bool MPIDI_ZC_atomic_try(const MPIDI_ZC_accumulate_t * acc, MPIR_Win * win, MPIR_Request ** req,
                         int *mpi_errno);

#endif /* ZC_ATOMIC_H_INCLUDED */

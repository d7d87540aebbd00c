/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PT2PT_H_INCLUDED
#define ZC_PT2PT_H_INCLUDED

/* Point-to-point is CH4's own matching over active messages (MPIDIG); only short
 * sends have a path of their own. */

#include "zc_impl.h"
#include "zc_short.h"
#include "netmod_am_fallback_recv.h"
#include "netmod_am_fallback_probe.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_isend(const void *buf, MPI_Aint count,
                                                MPI_Datatype datatype, int rank, int tag,
                                                MPIR_Comm * comm, int context_offset,
                                                MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    if (MPIDI_ZC_send_short(buf, count, datatype, tag, comm, context_offset, addr, MPIR_ERR_NONE,
                            req_p)) {
        return MPI_SUCCESS;
    }
    return MPIDIG_mpi_isend(buf, count, datatype, rank, tag, comm, context_offset, addr, 0, 0,
                            req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_issend(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    return MPIDIG_mpi_issend(buf, count, datatype, rank, tag, comm, context_offset, addr, 0, 0,
                             req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_isend_coll(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p,
                                                 MPIR_Errflag_t * errflag)
{
    if (MPIDI_ZC_send_short(buf, count, datatype, tag, comm, context_offset, addr, *errflag,
                            req_p)) {
        return MPI_SUCCESS;
    }
    return MPIDIG_isend_coll(buf, count, datatype, rank, tag, comm, context_offset, addr, 0, 0,
                             req_p, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_send(MPIR_Request * sreq)
{
    return MPIDIG_mpi_cancel_send(sreq);
}

#endif /* ZC_PT2PT_H_INCLUDED */

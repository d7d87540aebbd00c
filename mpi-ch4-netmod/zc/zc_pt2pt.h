/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PT2PT_H_INCLUDED
#define ZC_PT2PT_H_INCLUDED

/* Point-to-point is CH4's own matching over active messages (MPIDIG). These
 * wrappers only tell the landing thread that the application is here, before
 * they wait for the lock that the thread may hold. */

#include "zc_impl.h"
#include "zc_short.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_isend(const void *buf, MPI_Aint count,
                                                MPI_Datatype datatype, int rank, int tag,
                                                MPIR_Comm * comm, int context_offset,
                                                MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    MPIDI_ZC_note_app_activity();
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
    MPIDI_ZC_note_app_activity();
    return MPIDIG_mpi_issend(buf, count, datatype, rank, tag, comm, context_offset, addr, 0, 0,
                             req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_isend_coll(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p,
                                                 MPIR_Errflag_t * errflag)
{
    MPIDI_ZC_note_app_activity();
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

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_irecv(void *buf, MPI_Aint count, MPI_Datatype datatype,
                                                int rank, int tag, MPIR_Comm * comm,
                                                int context_offset, MPIDI_av_entry_t * addr,
                                                MPIR_Request ** req_p, MPIR_Request * partner)
{
    MPIDI_ZC_note_app_activity();
    return MPIDIG_mpi_irecv(buf, count, datatype, rank, tag, comm, context_offset, 0, req_p, 0,
                            partner);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_imrecv(void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, MPIR_Request * message)
{
    MPIDI_ZC_note_app_activity();
    return MPIDIG_mpi_imrecv(buf, count, datatype, message);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_recv(MPIR_Request * rreq)
{
    return MPIDIG_mpi_cancel_recv(rreq);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_iprobe(int source, int tag, MPIR_Comm * comm,
                                                 int context_offset, MPIDI_av_entry_t * addr,
                                                 int *flag, MPI_Status * status)
{
    MPIDI_ZC_note_app_activity();
    return MPIDIG_mpi_iprobe(source, tag, comm, context_offset, 0, flag, status);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_improbe(int source, int tag, MPIR_Comm * comm,
                                                  int context_offset, MPIDI_av_entry_t * addr,
                                                  int *flag, MPIR_Request ** message_p,
                                                  MPI_Status * status)
{
    MPIDI_ZC_note_app_activity();
    return MPIDIG_mpi_improbe(source, tag, comm, context_offset, 0, flag, message_p, status);
}

#endif /* ZC_PT2PT_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PT2PT_H_INCLUDED
#define ZC_PT2PT_H_INCLUDED

/* Point-to-point is CH4's own matching over active messages (MPIDIG); only eager
 * sends have a path of their own. A communicator's messages go from the VCI that it
 * has at the sender to that of the receiver, which has the same number. */

#include "zc_impl.h"
#include "zc_eager.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_send_vci(MPIR_Comm * comm, int rank, int tag)
{
    return MPIDI_get_vci(SRC_VCI_FROM_SENDER, comm, comm->rank, rank, tag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_ZC_recv_vci(MPIR_Comm * comm, int rank, int tag)
{
    return MPIDI_get_vci(DST_VCI_FROM_RECVER, comm, rank, comm->rank, tag);
}

/* ---- sending ---- */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_isend(const void *buf, MPI_Aint count,
                                                MPI_Datatype datatype, int rank, int tag,
                                                MPIR_Comm * comm, int context_offset,
                                                MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    const int vci = MPIDI_ZC_send_vci(comm, rank, tag);
    bool taken;

    int mpi_errno = MPIDI_ZC_send_eager(buf, count, datatype, tag, comm, context_offset, addr, vci,
                                        MPIR_ERR_NONE, true, req_p, &taken);
    if (unlikely(!taken)) {
        mpi_errno = MPIDIG_mpi_isend(buf, count, datatype, rank, tag, comm, context_offset, addr,
                                     vci, vci, req_p);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_issend(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p)
{
    const int vci = MPIDI_ZC_send_vci(comm, rank, tag);

    return MPIDIG_mpi_issend(buf, count, datatype, rank, tag, comm, context_offset, addr, vci, vci,
                             req_p);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_isend_coll(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** req_p,
                                                 MPIR_Errflag_t * errflag)
{
    const int vci = MPIDI_ZC_send_vci(comm, rank, tag);
    bool taken;

    int mpi_errno = MPIDI_ZC_send_eager(buf, count, datatype, tag, comm, context_offset, addr, vci,
                                        *errflag, false, req_p, &taken);
    if (unlikely(!taken)) {
        mpi_errno = MPIDIG_isend_coll(buf, count, datatype, rank, tag, comm, context_offset, addr,
                                      vci, vci, req_p, errflag);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_send(MPIR_Request * sreq)
{
    return MPIDIG_mpi_cancel_send(sreq);
}

/* ---- receiving ---- */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_irecv(void *buf, MPI_Aint count, MPI_Datatype datatype,
                                                int rank, int tag, MPIR_Comm * comm,
                                                int context_offset, MPIDI_av_entry_t * addr,
                                                MPIR_Request ** req_p, MPIR_Request * partner)
{
    int mpi_errno = MPIDIG_mpi_irecv(buf, count, datatype, rank, tag, comm, context_offset,
                                     MPIDI_ZC_recv_vci(comm, rank, tag), req_p, 0, partner);
    if (MPIDU_device_gate.enabled) {
        MPI_Aint bytes;
        MPIDI_Datatype_check_size(datatype, count, bytes);
        if (unlikely((size_t) bytes >= MPIDI_ZC_global.params.min_threshold) &&
            (!addr || (size_t) bytes >= MPIDI_ZC_lane_threshold(&MPIDI_ZC_AV(addr).lane))) {
            MPIDI_ZC_landing_thread_wanted();
        }
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_imrecv(void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, MPIR_Request * message)
{
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
    return MPIDIG_mpi_iprobe(source, tag, comm, context_offset,
                             MPIDI_ZC_recv_vci(comm, source, tag), flag, status);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_improbe(int source, int tag, MPIR_Comm * comm,
                                                  int context_offset, MPIDI_av_entry_t * addr,
                                                  int *flag, MPIR_Request ** message,
                                                  MPI_Status * status)
{
    return MPIDIG_mpi_improbe(source, tag, comm, context_offset,
                              MPIDI_ZC_recv_vci(comm, source, tag), flag, message, status);
}

#endif /* ZC_PT2PT_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_noinline.h"

/* Processes that are not of this MPI_COMM_WORLD are refused, as by ch4:ucx of
 * the same MPICH: a clear error, no crash. */

static int unsupported(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**zc_dynamic");
    return mpi_errno;
}

int MPIDI_ZC_get_local_upids(MPIR_Comm * comm, int **local_upid_size, char **local_upids)
{
    return unsupported();
}

int MPIDI_ZC_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                            uint64_t * remote_gpids)
{
    return unsupported();
}

int MPIDI_ZC_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size, int timeout)
{
    return unsupported();
}

int MPIDI_ZC_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    return unsupported();
}

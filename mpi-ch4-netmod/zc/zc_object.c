/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_noinline.h"

/* zc adds nothing to these objects: memory, datatypes and operations. */

void *MPIDI_ZC_mpi_alloc_mem(MPI_Aint size, MPIR_Info * info)
{
    return MPIDIG_mpi_alloc_mem(size, info);
}

int MPIDI_ZC_mpi_free_mem(void *ptr)
{
    return MPIDIG_mpi_free_mem(ptr);
}

int MPIDI_ZC_mpi_type_commit_hook(MPIR_Datatype * datatype_p)
{
    return MPI_SUCCESS;
}

int MPIDI_ZC_mpi_type_free_hook(MPIR_Datatype * datatype_p)
{
    return MPI_SUCCESS;
}

int MPIDI_ZC_mpi_op_commit_hook(MPIR_Op * op_p)
{
    return MPI_SUCCESS;
}

int MPIDI_ZC_mpi_op_free_hook(MPIR_Op * op_p)
{
    return MPI_SUCCESS;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PREADY_H_INCLUDED
#define ZC_PREADY_H_INCLUDED

/* Calls on a partitioned request enter zc here. All but its start (zc_part.h) are CH4's own.
 *
 * Only func_table.c includes this file. */

#include "mpidig_part.h"
#include "zc_part.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_part_start(MPIR_Request * request)
{
    return MPIDI_ZC_part_start(request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_pready_range(int partition_low, int partition_high,
                                                       MPIR_Request * request)
{
    return MPIDIG_mpi_pready_range(partition_low, partition_high, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_pready_list(int length, int array_of_partitions[],
                                                      MPIR_Request * request)
{
    return MPIDIG_mpi_pready_list(length, array_of_partitions, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_parrived(MPIR_Request * request, int partition, int *flag)
{
    return MPIDIG_mpi_parrived(request, partition, flag);
}

#endif /* ZC_PREADY_H_INCLUDED */

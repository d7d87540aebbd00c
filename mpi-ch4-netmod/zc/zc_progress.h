/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROGRESS_H_INCLUDED
#define ZC_PROGRESS_H_INCLUDED

#include "zc_impl.h"
#include "zc_arrival.h"

/* Called with the lock of @vci. All of zc's traffic is on VCI 0. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NM_progress(int vci, int blocking)
{
    int mpi_errno = MPI_SUCCESS;

    if (vci == 0) {
        MPIDI_ZC_idle_polled(&MPIDI_ZC_global.idle,
                             ucp_worker_progress(MPIDI_ZC_global.worker));
        if (unlikely(MPIDI_ZC_global.retry_queued)) {
            mpi_errno = MPIDI_ZC_land_queued();
        }
    }
    return mpi_errno;
}

#endif /* ZC_PROGRESS_H_INCLUDED */

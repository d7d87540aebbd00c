/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROGRESS_H_INCLUDED
#define ZC_PROGRESS_H_INCLUDED

#include "zc_impl.h"
#include "zc_arrival.h"

/* Makes progress on @vci, inside its lock. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NM_progress(int vci, int blocking)
{
    MPIDI_ZC_vci_t *zc = &MPIDI_ZC_VCI(vci);

    MPIDI_ZC_progress_vci(zc);
    if (unlikely(MPIDI_ZC_line_moves(zc))) {
        MPIDI_ZC_land_queued(zc);
    }
    return MPI_SUCCESS;
}

#endif /* ZC_PROGRESS_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_vci_locks.h"
#include "zc_impl.h"

void MPIDI_ZC_vci_locks_enter(void)
{
    if (MPIDI_global.n_vcis > 1) {
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
        for (int v = MPIDI_global.n_vcis - 1; v >= 0; v--) {
            MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        }
    }
}

void MPIDI_ZC_vci_locks_exit(void)
{
    for (int v = 1; v < MPIDI_global.n_vcis; v++) {
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WORKER_H_INCLUDED
#define ZC_WORKER_H_INCLUDED

/* The UCX worker of a VCI, and a function for each kind of active message that it receives.
 *
 * Called where no other thread is in MPI. */

#include "zc_impl.h"

/* After an error MPIDI_ZC_worker_close() frees what was made. */
int MPIDI_ZC_worker_open(MPIDI_ZC_vci_t * vci);

/* What is received from here on is dropped. There may be no worker. */
void MPIDI_ZC_worker_close(MPIDI_ZC_vci_t * vci);

#endif /* ZC_WORKER_H_INCLUDED */

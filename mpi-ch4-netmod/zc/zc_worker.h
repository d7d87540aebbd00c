/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WORKER_H_INCLUDED
#define ZC_WORKER_H_INCLUDED

/* Each VCI has a worker of UCX, which calls a function for each kind of active message that it
 * receives.
 *
 * Both functions are called when no other thread is in MPI. */

#include "zc_impl.h"

/* Makes the worker of @vci. After an error MPIDI_ZC_worker_close() frees what was made. */
int MPIDI_ZC_worker_open(MPIDI_ZC_vci_t * vci);

/* Destroys the worker of @vci, if there is one. Messages that it still receives are dropped. */
void MPIDI_ZC_worker_close(MPIDI_ZC_vci_t * vci);

#endif /* ZC_WORKER_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTEXT_H_INCLUDED
#define ZC_CONTEXT_H_INCLUDED

/* All workers of the process are made in one context of UCX, which has its devices and transports.
 *
 * Both functions are called when no other thread is in MPI. */

#include "zc_impl.h"

/* Makes the context, and finds its transports. */
int MPIDI_ZC_context_open(void);

/* Destroys the context, if there is one. It has no worker any more. */
void MPIDI_ZC_context_close(void);

#endif /* ZC_CONTEXT_H_INCLUDED */

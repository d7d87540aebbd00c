/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_POLLING_H_INCLUDED
#define ZCT_POLLING_H_INCLUDED

/*
 * A program that calls MPI_Test or MPI_Iprobe until something is there waits for it, as with
 * MPI_Wait or MPI_Probe. The calls that found nothing are one call with the one that did, as long
 * as at least half of their time is in MPI. One that works, and looks now and then, does not wait:
 * its calls are recorded alone, and what it works between looks that are one call is left out of
 * that, as if it had come before. To be called if zct.calls.
 */

#include <stdint.h>

/** A call that began at @begin_ns has found nothing. */
void zct_polling_failed(int64_t begin_ns);

/** When the waiting began of a call that began at @begin_ns and has found something. */
int64_t zct_polling_began(int64_t begin_ns);

#endif

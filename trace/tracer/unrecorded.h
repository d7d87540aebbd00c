/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_UNRECORDED_H_INCLUDED
#define ZCT_UNRECORDED_H_INCLUDED

/* What the recording has no messages of (enum zct_unrecorded) is counted, by function and call
 * site, if calls are recorded: who reads it shall know what is not there. */

#include "tracer.h"

/** False: no memory. */
bool zct_unrecorded_init(void);

/** When a call begins that may be counted; 0: it is not. */
static inline int64_t zct_unrecorded_begins(void)
{
    return zct.active && zct.calls ? zct_now() : 0;
}

/** Counts a call that began at @begin_ns, unless that is 0. */
void zct_unrecorded_count(enum zct_unrecorded what, void *caller, uint64_t bytes, int64_t begin_ns);

/** Writes the counts: once, at the end. */
void zct_unrecorded_write_locked(void);

#endif

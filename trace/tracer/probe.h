/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_PROBE_H_INCLUDED
#define ZCT_PROBE_H_INCLUDED

#include "tracer.h"

/** A message MPI_Mprobe took out of the queue; in zct.messages. */
struct zct_message {
    uint64_t order;
    uint32_t comm;
};

/** False: no memory. */
bool zct_probe_init(void);

#endif

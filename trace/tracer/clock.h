/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_CLOCK_H_INCLUDED
#define ZCT_CLOCK_H_INCLUDED

#include <stdint.h>

/** What all ranks agree on when a run begins. */
struct zct_beginning {
    uint64_t run;      /* names the run */
    uint64_t start_ns; /* since 1970, by rank 0 */
    int64_t zero_ns;   /* the same moment by this rank's CLOCK_MONOTONIC */
};

/** Collective over the world, in MPI_Init: no message of the program is under way. */
struct zct_beginning zct_clock_agree(int rank, int processes);

#endif

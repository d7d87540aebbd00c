/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_CLOCK_H_INCLUDED
#define ZCT_CLOCK_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

/** What all ranks agree on when a run begins. */
struct zct_beginning {
    uint64_t run;      /* names the run */
    uint64_t start_ns; /* since 1970, by rank 0 */
    int64_t zero_ns;   /* the same moment by this rank's CLOCK_MONOTONIC */
    bool apart;        /* this rank's clock is not rank 0's */
    uint64_t error_ns; /* of zero_ns, if so */
    bool taken;        /* rank 0 must not begin: nothing else is agreed on then */
};

/** Collective over the world, in MPI_Init: no message of the program is under way. @taken: at rank
 * 0, whether the run shall not be traced. @again: the clocks will be compared in MPI_Finalize too.
 */
struct zct_beginning zct_clock_agree(int rank, int processes, bool taken, bool again);

/**
 * zct_clock_compare - compare the clocks again, in MPI_Finalize
 * @zero_ns: as zct_clock_agree gave it
 * @ahead_ns, @error_ns: how far this rank's clock is ahead of rank 0's by now
 *
 * Collective over the world, if zct_clock_agree was told to prepare for it: on
 * a communicator of its own, where no receive of the program can take its
 * messages. True if this rank's clock was compared.
 */
bool zct_clock_compare(int64_t zero_ns, int64_t *ahead_ns, uint64_t *error_ns);

#endif

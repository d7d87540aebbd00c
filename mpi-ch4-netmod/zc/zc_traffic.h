/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TRAFFIC_H_INCLUDED
#define ZC_TRAFFIC_H_INCLUDED

/* Which messages this rank sends to the ranks of its world, for those who decide which ranks are to be
 * on one host. It writes them into memory that its holder has made (holder/include/zch/rank_traffic.h),
 * where they are read while the rank goes on. The memory is a ring: the newest take the place of the
 * oldest, and what is not read in time is lost. Messages of collectives are among them, those to other
 * worlds and to the rank itself are not; nor are active messages of RMA. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the holder has written; @sent is this rank's. */
typedef struct {
    uint32_t magic, entries;    /* a power of two */
    uint32_t rank, world;
    uint64_t job;
    uint64_t sent;              /* messages, ever: the next is in entry @sent modulo @entries */
    uint64_t reserved[4];
    struct {
        uint64_t time_ns;       /* the holder's CLOCK_MONOTONIC, to some milliseconds */
        uint32_t receiver;      /* a rank */
        uint32_t kib;           /* KiB, rounded up; at most 2^32 - 1 */
    } ring[];
} MPIDI_ZC_traffic_t;

/* NULL: this rank does not tell. It changes inside the lock of VCI 0 or inside the gate. */
extern MPIDI_ZC_traffic_t *MPIDI_ZC_traffic;

/* Writes from now on into the memory @fd, which stays the caller's. @clocks: zc_order.h. Returns NULL,
 * or why it does not. */
const char *MPIDI_ZC_traffic_open(int fd, int64_t clocks);

/* Gives the memory up. */
void MPIDI_ZC_traffic_close(void);

/* Writes that @bytes were sent to @receiver. MPIDI_ZC_traffic is not NULL. */
void MPIDI_ZC_traffic_add(int receiver, size_t bytes);

#endif /* ZC_TRAFFIC_H_INCLUDED */

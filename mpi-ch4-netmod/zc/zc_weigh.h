/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WEIGH_H_INCLUDED
#define ZC_WEIGH_H_INCLUDED

/* This file decides whether a message that arrives before its receive lands or is left at its
 * sender.
 *
 *   landed     the receive then waits for the delivery: pages are exchanged, or copied
 *   left       the receive then waits for the transfer, as with any other MPI
 *
 * Both are measured as they happen, by size: the shortest recent time of each, since other
 * processes can only lengthen them. A message stays with its sender if the delivery takes longer:
 * where the network is faster than memory, or pages cannot be exchanged. A message whose size has
 * not been measured yet lands, and is measured. The first deliveries of a size tell little, since
 * they write pages that have not been touched before. So no message is left before
 * MPIDI_ZC_WEIGH_LEAST of its size have been measured.
 *
 * A short time that was measured once is forgotten: it grows by a 64th with each longer one. And
 * of the messages of a size that stay, one in 32 lands nevertheless, to be measured. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes are classified by powers of two. */
enum { MPIDI_ZC_WEIGH_CLASSES = 64, MPIDI_ZC_WEIGH_PROBE = 32, MPIDI_ZC_WEIGH_LEAST = 3 };

typedef struct {
    uint64_t ns[MPIDI_ZC_WEIGH_CLASSES];        /* 0: not measured */
} MPIDI_ZC_times_t;

typedef struct {
    MPIDI_ZC_times_t deliveries;        /* from landing memory */
    uint8_t measured[MPIDI_ZC_WEIGH_CLASSES];   /* deliveries, up to MPIDI_ZC_WEIGH_LEAST */
    uint8_t left[MPIDI_ZC_WEIGH_CLASSES];       /* messages since the last probe */
} MPIDI_ZC_weigh_t;

static inline int MPIDI_ZC_weigh_class(size_t bytes)
{
    return bytes ? 63 - __builtin_clzll(bytes) : 0;
}

/* Takes note that @bytes have taken @ns, which is scaled to the smallest size of their class. */
static inline void MPIDI_ZC_times_saw(MPIDI_ZC_times_t * times, size_t bytes, uint64_t ns)
{
    const int size_class = MPIDI_ZC_weigh_class(bytes);
    uint64_t *known = &times->ns[size_class];
    const double least = (double) (1ULL << size_class);
    const uint64_t scaled = (uint64_t) ((double) ns * least / (double) bytes);
    const uint64_t seen = scaled ? scaled : 1;

    if (*known == 0 || seen <= *known) {
        *known = seen;
    } else {
        const uint64_t grown = *known + *known / 64 + 1;
        *known = grown < seen ? grown : seen;
    }
}

/* Returns the ns that @bytes are expected to take. 0: their size has not been measured. */
static inline uint64_t MPIDI_ZC_times_expect(const MPIDI_ZC_times_t * times, size_t bytes)
{
    const int size_class = MPIDI_ZC_weigh_class(bytes);
    const double least = (double) (1ULL << size_class);
    return (uint64_t) ((double) times->ns[size_class] * (double) bytes / least);
}

/* Takes note that a delivery of @bytes has taken @ns. */
static inline void MPIDI_ZC_weigh_delivered(MPIDI_ZC_weigh_t * weigh, size_t bytes, uint64_t ns)
{
    uint8_t *measured = &weigh->measured[MPIDI_ZC_weigh_class(bytes)];

    MPIDI_ZC_times_saw(&weigh->deliveries, bytes, ns);
    *measured = (uint8_t) (*measured + (*measured < MPIDI_ZC_WEIGH_LEAST));
}

/* Shall a message of @bytes land? @rate: the network's bytes per second, or 0 if they are
 * measured. */
static inline bool MPIDI_ZC_weigh_lands(MPIDI_ZC_weigh_t * weigh,
                                        const MPIDI_ZC_times_t * transfers, size_t rate,
                                        size_t bytes)
{
    const int size_class = MPIDI_ZC_weigh_class(bytes);
    const uint64_t delivery = MPIDI_ZC_times_expect(&weigh->deliveries, bytes);
    const uint64_t transfer = rate ? (uint64_t) ((double) bytes * 1e9 / (double) rate) :
        MPIDI_ZC_times_expect(transfers, bytes);
    uint8_t *left = &weigh->left[size_class];

    if (weigh->measured[size_class] < MPIDI_ZC_WEIGH_LEAST || (transfer == 0 && rate == 0) ||
        delivery <= transfer) {
        return true;
    }
    *left = (uint8_t) ((*left + 1) % MPIDI_ZC_WEIGH_PROBE);
    return *left == 0;
}

#endif /* ZC_WEIGH_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes and contents of messages between processes that leave and come back. Each is a function of
 * the seed, the round, the sender, the receiver, and the number of the message between the two. */
#ifndef ZC_SIZES_H
#define ZC_SIZES_H

#include "check.h"

static const size_t sizes[] = {0,        1,         8,         64,        1000, 4 * KIB, 9 * KIB,
                               64 * KIB, 127 * KIB, 128 * KIB, 300 * KIB, MIB,  4 * MIB};
enum { SIZES = sizeof sizes / sizeof sizes[0], LARGEST = 4 << 20 };

/** size_of - of message @i of @from to @to, in round @round: at most LARGEST */
static inline size_t size_of(int round, int from, int to, int i)
{
    const uint64_t x =
        pattern_mix(check_seed ^ pattern_mix((uint64_t)round << 32 | from << 20 | to << 8 | i));
    /* Most are short, as in most programs. */
    const size_t limit = sizes[x % 8 ? x % 7 : x / 64 % SIZES];
    return x % 3 && limit > 1 ? 1 + (x >> 20) % limit : limit;
}

static inline uint64_t content_of(int round, int from, int to, int i)
{
    return pattern_mix(check_seed + 3 * (uint64_t)round) ^
           ((uint64_t)from << 40 | (uint64_t)to << 20 | i);
}

#endif

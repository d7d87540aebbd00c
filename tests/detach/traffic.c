/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <string.h>

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t seed_of(traffic_name_t name)
{
    uint64_t seed = (uint64_t)name.from << 32 | name.to;
    seed = next(&seed) ^ name.number;
    return next(&seed);
}

size_t traffic_size(traffic_name_t name)
{
    uint64_t state = ~seed_of(name);
    const unsigned kind = next(&state) % 100;
    const size_t most = kind < 70 ? 256 : kind < 90 ? 8192 : kind < 98 ? 65536 : 1 << 20;
    return 1 + next(&state) % most;
}

void traffic_fill(traffic_name_t name, void *data, size_t length)
{
    uint64_t state = seed_of(name);
    for (size_t at = 0; at < length; at += sizeof(state)) {
        const uint64_t word = next(&state);
        const size_t rest = length - at;
        memcpy((char *)data + at, &word, rest < sizeof(word) ? rest : sizeof(word));
    }
}

bool traffic_check(traffic_name_t name, const void *data, size_t length)
{
    uint64_t state = seed_of(name);
    for (size_t at = 0; at < length; at += sizeof(state)) {
        const uint64_t word = next(&state);
        const size_t rest = length - at;
        if (memcmp((const char *)data + at, &word, rest < sizeof(word) ? rest : sizeof(word)) !=
            0) {
            return false;
        }
    }
    return true;
}

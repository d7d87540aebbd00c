/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_HASH_H_INCLUDED
#define ZCP_HASH_H_INCLUDED

#include <bit>
#include <cstdint>

#include "zcp/predictor.h"

namespace zc::predict {

/* Two 64-bit hashes that are equal are taken to be of equal things: the worst a
 * collision can do is a misprediction, which costs time and nothing else. */

/** Folds @value into @seed; order matters, every input bit reaches every output bit. */
constexpr uint64_t mix(uint64_t seed, uint64_t value)
{
    uint64_t h = (seed ^ value) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u; /* any odd constant with well spread bits will do */
    return h ^ (h >> 29);
}

/** A sample of the paper: (sender, size, address). */
constexpr uint64_t sample_hash(const zcp_receive_t &r)
{
    const uint64_t source = static_cast<uint32_t>(r.envelope.source);
    return mix(mix(mix(1, source), r.envelope.bytes), r.addr);
}

/**
 * Sizes that differ by less than a factor of about 1.5 mostly have the same
 * rough size: the leading two bits and how many follow. Scaled, so that powers
 * of two, around which sizes like to vary, are not on an edge.
 */
constexpr uint32_t rough_size(uint64_t bytes)
{
    const uint64_t scaled = bytes / 4 * 5 + (bytes % 4) + 1;
    const auto width = static_cast<uint32_t>(std::bit_width(scaled));
    return width < 4 ? static_cast<uint32_t>(bytes)
                     : width << 8 | static_cast<uint32_t>(scaled >> (width - 2));
}

} // namespace zc::predict

#endif

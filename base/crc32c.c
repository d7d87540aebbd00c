/* SPDX-License-Identifier: BSD-3-Clause */
#include "crc32c.h"

#include <string.h>

/* Reversed polynomial 0x1EDC6F41, four bits at a time: entry n is the remainder
 * of n. Small rather than fast; it runs where the instruction is missing. */
static const uint32_t kNibble[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t crc_portable(uint32_t crc, const uint8_t *data, size_t len)
{
    for (; len; len--) {
        crc ^= *data++;
        crc = (crc >> 4) ^ kNibble[crc & 15];
        crc = (crc >> 4) ^ kNibble[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The instruction takes three cycles, and one can begin in each. So three lanes are summed side by
 * side, and the sums put together: that of A B, of which B has n bits, is A x^n + B. A product of
 * polynomials whose bits are reversed has one bit less than the instruction takes, and that itself
 * multiplies by x^32: what A is multiplied by is x^(n-33), its bits reversed. */
static const size_t kLaneBytes = 1360; /* three and little more are a page */
static const uint32_t kOneLane = 0x3f70cc6f, kTwoLanes = 0x5aa1f3cf;

static inline uint64_t word_at(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *data,
                                                            size_t len)
{
    uint64_t wide = crc;
    for (; len >= 8; len -= 8, data += 8)
        wide = _mm_crc32_u64(wide, word_at(data));
    crc = (uint32_t)wide;
    for (; len; len--)
        crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
}

/** @crc, as if zeros followed: as many as @by stands for. */
__attribute__((target("sse4.2,pclmul"))) static uint32_t shifted(uint64_t crc, uint32_t by)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi32_si128((int)by), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_lanes(uint32_t crc,
                                                                   const uint8_t *data, size_t len)
{
    for (; len >= 3 * kLaneBytes; len -= 3 * kLaneBytes, data += 3 * kLaneBytes) {
        uint64_t first = crc, second = 0, third = 0;
        for (size_t at = 0; at < kLaneBytes; at += 8) {
            first = _mm_crc32_u64(first, word_at(data + at));
            second = _mm_crc32_u64(second, word_at(data + kLaneBytes + at));
            third = _mm_crc32_u64(third, word_at(data + 2 * kLaneBytes + at));
        }
        crc = shifted(first, kTwoLanes) ^ shifted(second, kOneLane) ^ (uint32_t)third;
    }
    return crc_sse42(crc, data, len);
}
#endif

uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len_bytes)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return ~crc_lanes(crc, data, len_bytes);
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(crc, data, len_bytes);
#endif
    return ~crc_portable(crc, data, len_bytes);
}

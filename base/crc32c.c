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
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *data,
                                                            size_t len)
{
    uint64_t wide = crc;
    for (; len >= 8; len -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; len; len--)
        crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
}
#endif

uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len_bytes)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(crc, data, len_bytes);
#endif
    return ~crc_portable(crc, data, len_bytes);
}

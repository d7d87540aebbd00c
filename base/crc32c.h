/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_CRC32C_H_INCLUDED
#define ZC_BASE_CRC32C_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * zc_crc32c - CRC-32C (Castagnoli) of some bytes
 * @crc:  of the bytes before; 0 to begin
 */
uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len_bytes);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message contents that a seed determines. Each 8-byte word belongs to one
 * place of one message, so that a missing, stale, moved or swapped page shows;
 * filling and verifying run at the speed of memory.
 */
#ifndef ZC_PATTERN_H
#define ZC_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* splitmix64, Steele et al., "Fast splittable pseudorandom number generators" (2014) */
static inline uint64_t pattern_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/** pattern_fill - write the content that @seed stands for: words base + i * step */
static inline void pattern_fill(void *buf, size_t bytes, uint64_t seed)
{
    unsigned char *p = buf;
    const uint64_t base = pattern_mix(seed), step = pattern_mix(base) | 1;
    size_t words = bytes / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = base + i * step;
        memcpy(p + 8 * i, &word, 8);
    }
    uint64_t last = base + words * step;
    if (bytes % 8)
        memcpy(p + 8 * words, &last, bytes % 8);
}

/**
 * pattern_find_error_from - like pattern_find_error, for a buffer that holds the content from word
 * @first_word on
 */
static inline size_t pattern_find_error_from(const void *buf, size_t bytes, uint64_t seed,
                                             uint64_t first_word)
{
    const unsigned char *p = buf;
    const uint64_t origin = pattern_mix(seed), step = pattern_mix(origin) | 1;
    const uint64_t base = origin + first_word * step;
    const size_t words = bytes / 8, block = 4096;
    for (size_t first = 0; first < words; first += block) {
        size_t last = first + block < words ? first + block : words;
        uint64_t wrong = 0;
        for (size_t i = first; i < last; i++) {
            uint64_t word;
            memcpy(&word, p + 8 * i, 8);
            wrong |= word ^ (base + i * step);
        }
        if (!wrong)
            continue;
        for (size_t i = first; i < last; i++) {
            uint64_t word;
            memcpy(&word, p + 8 * i, 8);
            if (word != base + i * step)
                return 8 * i;
        }
    }
    uint64_t tail = base + words * step;
    return memcmp(p + 8 * words, &tail, bytes % 8) ? 8 * words : bytes;
}

/** pattern_find_error - offset of the first wrong word or tail, or @bytes if all is right */
static inline size_t pattern_find_error(const void *buf, size_t bytes, uint64_t seed)
{
    return pattern_find_error_from(buf, bytes, seed, 0);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "ballast.h"

#include <stdlib.h>

#include "ucx.h"

enum { PAGE_WORDS = 4096 / sizeof(uint64_t) };

static uint64_t word_of(size_t page, uint64_t round, size_t word)
{
    /* An odd factor: no two of the pages are equal, in this round and others. */
    return (page + (round << 32) + 1) * UINT64_C(0x9e3779b97f4a7c15) + word;
}

static void write_page(ballast_t *ballast, size_t page, uint64_t round)
{
    for (size_t word = 0; word < PAGE_WORDS; word++) {
        ballast->words[page * PAGE_WORDS + word] = word_of(page, round, word);
    }
}

void ballast_fill(ballast_t *ballast, size_t mib)
{
    ballast->pages = mib << 8;
    if (mib > 0 && !(ballast->words = aligned_alloc(4096, mib << 20))) {
        die("no memory");
    }
    for (size_t page = 0; page < ballast->pages; page++) {
        write_page(ballast, page, 0);
    }
}

void ballast_change(ballast_t *ballast, size_t count)
{
    for (; count > 0 && ballast->pages > 0; count--) {
        write_page(ballast, ballast->next, ballast->rounds + 1);
        if (++ballast->next == ballast->pages) {
            ballast->next = 0;
            ballast->rounds++;
        }
    }
}

void ballast_check(const ballast_t *ballast)
{
    for (size_t page = 0; page < ballast->pages; page++) {
        const uint64_t round = ballast->rounds + (page < ballast->next);
        for (size_t word = 0; word < PAGE_WORDS; word++) {
            if (ballast->words[page * PAGE_WORDS + word] != word_of(page, round, word)) {
                die("word %zu of page %zu of the program's memory is not as it was", word, page);
            }
        }
    }
}

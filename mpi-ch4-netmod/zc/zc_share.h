/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SHARE_H_INCLUDED
#define ZC_SHARE_H_INCLUDED

/* This file counts the processors for one rank of several, each of which is bound to some.
 *
 * Each rank needs one processor, out of those that its affinity mask names. So as many ranks as
 * possible are matched with one processor each (by augmenting paths: a rank that is in the way
 * moves to another processor of its mask, if there is one). Then
 *
 *   CROWDED    this rank finds none without taking it from another: they take turns
 *   ENOUGH     it has one
 *   TO_SPARE   it finds a second one that no rank needs, for a thread beside it
 *
 *   8 processors, 4 ranks on all of them       TO_SPARE
 *   16 ranks on 8 of 128 processors each       TO_SPARE
 *   64 ranks on one processor each             ENOUGH
 *   64 ranks on all of 64 processors           ENOUGH, or all of 32: CROWDED
 *   one bound to 0, another to 0 and 1         ENOUGH, and so is the other
 *
 * Other processes, and how much the ranks compute, are not considered: zc_spare.h does that. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Processors 64 * n to 64 * n + 63 are word n of a mask. */
#define MPIDI_ZC_SHARE_WORD 64

typedef enum {
    MPIDI_ZC_SHARE_CROWDED,
    MPIDI_ZC_SHARE_ENOUGH,
    MPIDI_ZC_SHARE_TO_SPARE,
} MPIDI_ZC_share_kind_t;

typedef struct {
    MPIDI_ZC_share_kind_t kind;
    int processors;             /* a fair part of those of all ranks that compete with each other;
                                 * 0: less than one */
    int ranks;                  /* that compete with each other, this one among them */
} MPIDI_ZC_share_t;

typedef struct {
    const uint64_t *masks;      /* of all ranks, one after the other */
    int words;                  /* of each */
    int *holders;               /* by processor: the rank that it is matched with, if it is taken */
    uint64_t *taken;
    uint64_t *tried;
} MPIDI_ZC_share_matching_t;

static inline void MPIDI_ZC_share_add(uint64_t * mask, int processor)
{
    mask[processor / MPIDI_ZC_SHARE_WORD] |= 1ULL << processor % MPIDI_ZC_SHARE_WORD;
}

static inline int MPIDI_ZC_share_count(const uint64_t * mask, int words)
{
    int count = 0;
    for (int w = 0; w < words; w++) {
        count += __builtin_popcountll(mask[w]);
    }
    return count;
}

/* Returns a processor of @rank's mask that is not in @but, or -1. */
static inline int MPIDI_ZC_share_next(const MPIDI_ZC_share_matching_t * m, int rank,
                                      const uint64_t * but)
{
    const uint64_t *mask = m->masks + (size_t) rank * m->words;
    for (int w = 0; w < m->words; w++) {
        const uint64_t left = mask[w] & ~but[w];
        if (left) {
            return w * MPIDI_ZC_SHARE_WORD + __builtin_ctzll(left);
        }
    }
    return -1;
}

/* Gives @rank one more processor, and no other rank less. False: that is not possible. */
static inline bool MPIDI_ZC_share_augment(MPIDI_ZC_share_matching_t * m, int rank)
{
    int processor = MPIDI_ZC_share_next(m, rank, m->taken);
    if (processor >= 0) {
        MPIDI_ZC_share_add(m->taken, processor);
        m->holders[processor] = rank;
        return true;
    }
    while ((processor = MPIDI_ZC_share_next(m, rank, m->tried)) >= 0) {
        MPIDI_ZC_share_add(m->tried, processor);
        if (MPIDI_ZC_share_augment(m, m->holders[processor])) {
            m->holders[processor] = rank;
            return true;
        }
    }
    return false;
}

static inline bool MPIDI_ZC_share_match(MPIDI_ZC_share_matching_t * m, int rank)
{
    memset(m->tried, 0, (size_t) m->words * sizeof(*m->tried));
    return MPIDI_ZC_share_augment(m, rank);
}

/* Returns the processors for each of the ranks that compete with @self for processors, directly or
 * by way of other ranks, and sets *@competitors to how many these are. */
static inline int MPIDI_ZC_share_fair(const uint64_t * masks, int ranks, int words, int self,
                                      uint64_t * reached, bool * counted, int *competitors)
{
    int members = 0;
    memcpy(reached, masks + (size_t) self * words, (size_t) words * sizeof(*reached));
    memset(counted, 0, (size_t) ranks * sizeof(*counted));
    for (bool grew = true; grew;) {
        grew = false;
        for (int rank = 0; rank < ranks; rank++) {
            const uint64_t *mask = masks + (size_t) rank * words;
            bool meets = rank == self;
            for (int w = 0; w < words && !meets; w++) {
                meets = (mask[w] & reached[w]) != 0;
            }
            if (meets && !counted[rank]) {
                counted[rank] = grew = true;
                members++;
                for (int w = 0; w < words; w++) {
                    reached[w] |= mask[w];
                }
            }
        }
    }
    *competitors = members;
    return MPIDI_ZC_share_count(reached, words) / members;
}

/* Finds the share of rank @self. @masks: of @ranks ranks, @words words each, of which none is
 * empty. False: there is no memory. */
static inline bool MPIDI_ZC_share(const uint64_t * masks, int ranks, int words, int self,
                                  MPIDI_ZC_share_t * share)
{
    const size_t set = (size_t) words * sizeof(uint64_t);
    const size_t holders = (size_t) words * MPIDI_ZC_SHARE_WORD * sizeof(int);
    char *memory = (char *) calloc(1, 2 * set + holders + (size_t) ranks * sizeof(bool));
    if (!memory) {
        return false;
    }
    MPIDI_ZC_share_matching_t m = { masks, words, (int *) (memory + 2 * set),
        (uint64_t *) memory, (uint64_t *) (memory + set)
    };

    const int fair = MPIDI_ZC_share_fair(masks, ranks, words, self, m.tried,
                                         (bool *) (memory + 2 * set + holders), &share->ranks);
    for (int rank = 0; rank < ranks; rank++) {
        if (rank != self) {
            (void) MPIDI_ZC_share_match(&m, rank);
        }
    }
    const int own = MPIDI_ZC_share_count(masks + (size_t) self * words, words);
    share->kind = !MPIDI_ZC_share_match(&m, self) ? MPIDI_ZC_SHARE_CROWDED :
        !MPIDI_ZC_share_match(&m, self) ? MPIDI_ZC_SHARE_ENOUGH : MPIDI_ZC_SHARE_TO_SPARE;
    share->processors = share->kind == MPIDI_ZC_SHARE_CROWDED ? 0 : fair < 1 ? 1 :
        fair < own ? fair : own;
    free(memory);
    return true;
}

#endif /* ZC_SHARE_H_INCLUDED */

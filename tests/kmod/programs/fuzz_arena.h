/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_FUZZ_ARENA_H
#define ZC_TESTS_FUZZ_ARENA_H

/*
 * The fuzzer's memory: plots of every kind side by side in one window, with
 * holes; and the oracle (area.h) over all of it.
 *
 *   |small |hole|huge      |locked|none|mixed |shared |...
 */

#include "area.h"
#include "fixture.h"

#include <stdbool.h>

enum { ARENA_PAGES = 4 * 512, ARENA_PLOTS = 48 };

struct plot {
    enum fixture kind;
    size_t first, pages;
};

struct arena {
    struct area area;
    struct plot plots[ARENA_PLOTS];
    size_t plot_count;
    unsigned char open[ARENA_PAGES]; /* can be read */
    uint64_t first_id, end_id;
};

/** Which kinds of memory there are here; in processes of their own, as each may skip. */
void arena_probe(void);

/** A new one. */
void arena_make(struct arena *arena, uint64_t *random);
void arena_release(struct arena *arena);

/** The model follows: @pages pages were exchanged. Outside of the arena nothing can be. */
void arena_exchanged(struct arena *arena, uint64_t a, uint64_t b, uint64_t bytes);

/** Every page is where the model says. @quick: a word of each. */
void arena_check(struct arena *arena, bool quick, const char *when);

/**
 * arena_follow - after a call that could not say what it did
 *
 * Every page must be somewhere, once; the model takes over where.
 */
void arena_follow(struct arena *arena, const char *when);

/** Something else than an exchange: new content, reclaim, a child that comes and goes. */
void arena_disturb(struct arena *arena, uint64_t *random);

#endif

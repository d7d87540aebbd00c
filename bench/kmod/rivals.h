/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_KMOD_RIVALS_H
#define ZC_BENCH_KMOD_RIVALS_H

/*
 * Four ways to bring @pages pages to where they are wanted. All memory is
 * populated and written to before; no call faults.
 *
 *   kmod       exchange a and b                     one call
 *   mremap     exchange a and b by a spare window   three calls, nothing ever unmapped
 *   uffd_move  move a to an empty window            one call; back the next time
 *   memcpy     copy a to b
 */

#include <stdbool.h>
#include <stddef.h>

struct rival {
    const char *name;
    const char *missing; /* why it cannot run here; NULL: it can */
    char *a, *b, *spare;
    bool turned; /* what was in a is in b */
};

enum rival_name { RIVAL_KMOD, RIVAL_MREMAP, RIVAL_UFFD_MOVE, RIVAL_MEMCPY, RIVALS };

/** How the memory lies. */
struct layout {
    size_t pages;
    size_t offset; /* pages between a's and b's places in their 2 MiB */
    bool huge;
};

/** Memory for one of them; sets what is missing. */
void rival_open(struct rival *rival, enum rival_name name, const struct layout *layout);
void rival_close(struct rival *rival, enum rival_name name, const struct layout *layout);

/** The work. Ends the program if it fails. */
void rival_run(struct rival *rival, enum rival_name name, size_t bytes);

/** That it was done: reads the first and the last page. */
void rival_check(const struct rival *rival, enum rival_name name, size_t bytes);

/** /dev/zc; -1 if there is none. */
int device(void);

/** Copies as a memcpy does that keeps to SSE2. QEMU counts every turn of the processor's
 *  string instructions, which glibc prefers, as an instruction of its own. */
void copy(void *to, const void *from, size_t bytes);

#endif

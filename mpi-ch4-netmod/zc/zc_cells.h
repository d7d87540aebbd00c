/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CELLS_H_INCLUDED
#define ZC_CELLS_H_INCLUDED

/* Unexpected messages lie in cells of a few sizes, which are cut from slabs.
 *
 *   chunk (2 MiB, mapped)   | slab | slab | slab | ...         given back when all are empty
 *   slab (64 KiB)           | head | cell | cell | cell | ...  cells of one size
 *
 * New cells of a slab are handed out in the order of their addresses, so messages that wait lie in
 * memory in the order of their arrival. What is longer than the longest cell is malloc'ed. Where
 * there are no addresses for a whole chunk, a chunk is one slab.
 *
 * The allocator follows Bonwick, "The Slab Allocator" (USENIX Summer 1994). It is not thread-safe:
 * each VCI has one of its own. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPIDI_ZC_CELL_MIN 64
#define MPIDI_ZC_CELL_MAX 4096
enum { MPIDI_ZC_CELL_CLASSES = 13 };    /* 64, 96, 128, 192, ... 4096 */

struct MPIDI_ZC_slab;
struct MPIDI_ZC_chunk;

typedef struct {
    struct MPIDI_ZC_slab *with_room[MPIDI_ZC_CELL_CLASSES];
    struct MPIDI_ZC_slab *empty;        /* of any chunk, of no class */
    struct MPIDI_ZC_chunk *chunks;
    unsigned nr_empty_chunks;
    uint64_t mapped;            /* bytes of chunks and of what was malloc'ed */
} MPIDI_ZC_cells_t;

/* Returns the bytes that a cell for @bytes takes. */
static inline size_t MPIDI_ZC_cell_size(size_t bytes)
{
    if (bytes <= MPIDI_ZC_CELL_MIN) {
        return MPIDI_ZC_CELL_MIN;
    }
    if (bytes > MPIDI_ZC_CELL_MAX) {
        return (bytes + 127) & ~(size_t) 63;    /* with what malloc takes for itself */
    }
    const size_t power = (size_t) 1 << (64 - __builtin_clzl(bytes - 1));
    return bytes <= power - power / 4 ? power - power / 4 : power;
}

void MPIDI_ZC_cells_init(MPIDI_ZC_cells_t * cells);

/* Returns a cell of at least @bytes, aligned to 32. NULL: there is no memory. */
void *MPIDI_ZC_cell_new(MPIDI_ZC_cells_t * cells, size_t bytes);

/* Frees @cell, which was made for @bytes. */
void MPIDI_ZC_cell_free(MPIDI_ZC_cells_t * cells, void *cell, size_t bytes);

/* Frees everything but the cells that were malloc'ed. */
void MPIDI_ZC_cells_free(MPIDI_ZC_cells_t * cells);

#ifdef __cplusplus
}
#endif

#endif /* ZC_CELLS_H_INCLUDED */

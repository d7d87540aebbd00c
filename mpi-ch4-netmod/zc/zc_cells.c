/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "zc_cells.h"

#define SLAB_BYTES ((size_t) 1 << 16)
/* A chunk has fewer slabs where there are no addresses, or no memory that may be locked
 * (mlockall(2)), for more. */
#define SLABS_PER_CHUNK 32
#define FEWEST_SLABS 1
/* So many are kept for the next burst: to map and to touch 2 MiB anew takes half a millisecond. */
#define EMPTY_CHUNKS_KEPT 2

typedef struct MPIDI_ZC_chunk {
    struct MPIDI_ZC_chunk *next, *previous;
    char *memory;
    unsigned nr_slabs;
    unsigned used;              /* slabs that have a class */
} chunk_t;

/* The head of a slab lies at the beginning of its memory, which is aligned to its size. */
typedef struct MPIDI_ZC_slab {
    struct MPIDI_ZC_slab *next, *previous;      /* of its class, with room; or empty ones */
    void *free;                 /* cells given back; each begins with a pointer to the next */
    chunk_t *chunk;
    uint32_t size;              /* of a cell */
    uint32_t live;
    uint32_t fresh;             /* offset of the first cell never handed out */
    uint32_t class;
} slab_t;

#define FIRST_CELL 64
_Static_assert(sizeof(slab_t) <= FIRST_CELL, "a slab's head is longer than its room");

static unsigned class_of(size_t size)
{
    const unsigned log = 63 - (unsigned) __builtin_clzl(size);
    /* 64 is 0; 96 is 1: a power of two and half as much again */
    return 2 * (log - 6) + ((size & (size - 1)) != 0);
}

static bool has_room(const slab_t * slab)
{
    return slab->free || slab->fresh + slab->size <= SLAB_BYTES;
}

static void link_slab(slab_t ** list, slab_t * slab)
{
    slab->previous = NULL;
    slab->next = *list;
    if (*list) {
        (*list)->previous = slab;
    }
    *list = slab;
}

static void unlink_slab(slab_t ** list, slab_t * slab)
{
    if (slab->previous) {
        slab->previous->next = slab->next;
    } else {
        *list = slab->next;
    }
    if (slab->next) {
        slab->next->previous = slab->previous;
    }
}

/* ---- chunks ---- */

/* Maps memory that is aligned to a slab's size. NULL: there is none. */
static char *map_slabs(unsigned nr_slabs)
{
    const size_t bytes = nr_slabs * SLAB_BYTES, length = bytes + SLAB_BYTES;
    char *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED) {
        return NULL;
    }
    char *memory = (char *) (((uintptr_t) start + SLAB_BYTES - 1) & ~(SLAB_BYTES - 1));
    if (memory > start) {
        munmap(start, (size_t) (memory - start));
    }
    munmap(memory + bytes, length - bytes - (size_t) (memory - start));
    return memory;
}

static bool new_chunk(MPIDI_ZC_cells_t * cells)
{
    chunk_t *chunk = malloc(sizeof(*chunk));

    if (!chunk) {
        return false;
    }
    chunk->nr_slabs = SLABS_PER_CHUNK;
    chunk->memory = map_slabs(SLABS_PER_CHUNK);
    if (!chunk->memory) {
        chunk->nr_slabs = FEWEST_SLABS;
        chunk->memory = map_slabs(FEWEST_SLABS);
    }
    if (!chunk->memory) {
        free(chunk);
        return false;
    }
    chunk->used = 0;
    chunk->previous = NULL;
    chunk->next = cells->chunks;
    if (chunk->next) {
        chunk->next->previous = chunk;
    }
    cells->chunks = chunk;
    cells->nr_empty_chunks++;
    cells->mapped += chunk->nr_slabs * SLAB_BYTES;
    /* The first slab is the first to be used. */
    for (unsigned i = chunk->nr_slabs; i-- > 0;) {
        slab_t *slab = (slab_t *) (chunk->memory + i * SLAB_BYTES);
        slab->chunk = chunk;
        link_slab(&cells->empty, slab);
    }
    return true;
}

static void free_chunk(MPIDI_ZC_cells_t * cells, chunk_t * chunk)
{
    if (chunk->previous) {
        chunk->previous->next = chunk->next;
    } else {
        cells->chunks = chunk->next;
    }
    if (chunk->next) {
        chunk->next->previous = chunk->previous;
    }
    cells->nr_empty_chunks--;
    cells->mapped -= chunk->nr_slabs * SLAB_BYTES;
    munmap(chunk->memory, chunk->nr_slabs * SLAB_BYTES);
    free(chunk);
}

/* ---- slabs ---- */

static slab_t *new_slab(MPIDI_ZC_cells_t * cells, unsigned class, size_t size)
{
    if (!cells->empty && !new_chunk(cells)) {
        return NULL;
    }
    slab_t *slab = cells->empty;
    unlink_slab(&cells->empty, slab);
    if (slab->chunk->used++ == 0) {
        cells->nr_empty_chunks--;
    }
    slab->free = NULL;
    slab->size = (uint32_t) size;
    slab->live = 0;
    slab->fresh = FIRST_CELL;
    slab->class = class;
    link_slab(&cells->with_room[class], slab);
    return slab;
}

static void free_slab(MPIDI_ZC_cells_t * cells, slab_t * slab)
{
    chunk_t *chunk = slab->chunk;

    unlink_slab(&cells->with_room[slab->class], slab);
    link_slab(&cells->empty, slab);
    if (--chunk->used > 0) {
        return;
    }
    if (++cells->nr_empty_chunks > EMPTY_CHUNKS_KEPT) {
        for (unsigned i = 0; i < chunk->nr_slabs; i++) {
            unlink_slab(&cells->empty, (slab_t *) (chunk->memory + i * SLAB_BYTES));
        }
        free_chunk(cells, chunk);
    }
}

/* ---- cells ---- */

void MPIDI_ZC_cells_init(MPIDI_ZC_cells_t * cells)
{
    memset(cells, 0, sizeof(*cells));
}

void *MPIDI_ZC_cell_new(MPIDI_ZC_cells_t * cells, size_t bytes)
{
    const size_t size = MPIDI_ZC_cell_size(bytes);

    if (size > MPIDI_ZC_CELL_MAX) {
        void *cell = malloc(bytes);
        if (cell) {
            cells->mapped += size;
        }
        return cell;
    }
    const unsigned class = class_of(size);
    slab_t *slab = cells->with_room[class];
    if (!slab) {
        slab = new_slab(cells, class, size);
        if (!slab) {
            return NULL;
        }
    }
    void *cell = slab->free;
    if (cell) {
        slab->free = *(void **) cell;
    } else {
        cell = (char *) slab + slab->fresh;
        slab->fresh += slab->size;
    }
    slab->live++;
    if (!has_room(slab)) {
        unlink_slab(&cells->with_room[class], slab);
    }
    return cell;
}

void MPIDI_ZC_cell_free(MPIDI_ZC_cells_t * cells, void *cell, size_t bytes)
{
    const size_t size = MPIDI_ZC_cell_size(bytes);

    if (size > MPIDI_ZC_CELL_MAX) {
        cells->mapped -= size;
        free(cell);
        return;
    }
    slab_t *slab = (slab_t *) ((uintptr_t) cell & ~(SLAB_BYTES - 1));
    if (!has_room(slab)) {
        link_slab(&cells->with_room[slab->class], slab);
    }
    *(void **) cell = slab->free;
    slab->free = cell;
    /* The last slab of its class with room is kept: the next message may need it. */
    if (--slab->live == 0) {
        if (slab->next || slab->previous) {
            free_slab(cells, slab);
        } else {
            slab->free = NULL;
            slab->fresh = FIRST_CELL;
        }
    }
}

void MPIDI_ZC_cells_free(MPIDI_ZC_cells_t * cells)
{
    while (cells->chunks) {
        chunk_t *chunk = cells->chunks;
        cells->chunks = chunk->next;
        munmap(chunk->memory, chunk->nr_slabs * SLAB_BYTES);
        free(chunk);
    }
    MPIDI_ZC_cells_init(cells);
}

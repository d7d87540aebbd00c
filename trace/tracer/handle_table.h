/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_HANDLE_TABLE_H_INCLUDED
#define ZCT_HANDLE_TABLE_H_INCLUDED

/*
 * Open addressing with linear probing from a handle (MPICH: an int, Open MPI:
 * an address) to a small value. Memory grows with the most handles alive at
 * once, not with their number over time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zct_table {
    uint8_t *slots; /* key and value each; key 0: free */
    size_t slot_bytes;
    unsigned log2_slots;
    size_t nr_used;
};

/* A handle may be 0 (a type of MPI could be); a key in the table is not. */
static inline uintptr_t zct_table_stored(uintptr_t key)
{
    return ~key ? ~key : 1;
}

/* Where a stored key is, unless others are: Fibonacci hashing, Knuth, The Art of Computer
 * Programming 3, 6.4. */
static inline size_t zct_table_home(const struct zct_table *t, uintptr_t stored)
{
    return (size_t)(((uint64_t)stored * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - t->log2_slots));
}

static inline uintptr_t *zct_table_slot(const struct zct_table *t, size_t at)
{
    return (uintptr_t *)(void *)(t->slots + at * t->slot_bytes);
}

/* Goes on where another key is at home. */
void *zct_table_search(const struct zct_table *t, uintptr_t stored);

/** False: no memory. */
bool zct_table_init(struct zct_table *t, size_t value_bytes);

/** The value of a key, or NULL. Valid until the next insert or remove. */
static inline void *zct_table_find(const struct zct_table *t, uintptr_t key)
{
    const uintptr_t stored = zct_table_stored(key);
    uintptr_t *const found = zct_table_slot(t, zct_table_home(t, stored));
    return *found == stored ? found + 1 : zct_table_search(t, stored);
}

/** Room for the value of a key that may be there already; NULL: no memory. */
void *zct_table_insert(struct zct_table *t, uintptr_t key);

void zct_table_remove(struct zct_table *t, uintptr_t key);

/** Removes what was found at @value, not NULL. */
void zct_table_remove_found(struct zct_table *t, void *value);

#endif

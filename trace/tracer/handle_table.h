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
    size_t value_bytes;
    unsigned log2_slots;
    size_t nr_used;
};

/** False: no memory. */
bool zct_table_init(struct zct_table *t, size_t value_bytes);

/** The value of a key, or NULL. Valid until the next insert or remove. */
void *zct_table_find(const struct zct_table *t, uintptr_t key);

/** Room for the value of a key that may be there already; NULL: no memory. */
void *zct_table_insert(struct zct_table *t, uintptr_t key);

void zct_table_remove(struct zct_table *t, uintptr_t key);

#endif

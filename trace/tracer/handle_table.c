/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle_table.h"

#include <stdlib.h>
#include <string.h>

/* A handle may be 0 (a type of MPI could be); a key in the table is not. */
static uintptr_t stored(uintptr_t key)
{
    return ~key ? ~key : 1;
}

static size_t slot_bytes(const struct zct_table *t)
{
    return sizeof(uintptr_t) + t->value_bytes;
}

static uintptr_t *slot(const struct zct_table *t, size_t at)
{
    return (uintptr_t *)(void *)(t->slots + at * slot_bytes(t));
}

/* Fibonacci hashing: Knuth, The Art of Computer Programming 3, 6.4. */
static size_t home(const struct zct_table *t, uintptr_t key)
{
    return (size_t)(((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - t->log2_slots));
}

static size_t mask(const struct zct_table *t)
{
    return ((size_t)1 << t->log2_slots) - 1;
}

bool zct_table_init(struct zct_table *t, size_t value_bytes)
{
    t->value_bytes = (value_bytes + 7) & ~(size_t)7;
    t->log2_slots = 8;
    t->nr_used = 0;
    t->slots = calloc((size_t)1 << t->log2_slots, slot_bytes(t));
    return t->slots != NULL;
}

void *zct_table_find(const struct zct_table *t, uintptr_t key)
{
    key = stored(key);
    for (size_t at = home(t, key);; at = (at + 1) & mask(t)) {
        uintptr_t *found = slot(t, at);
        if (*found == key)
            return found + 1;
        if (!*found)
            return NULL;
    }
}

static bool grow(struct zct_table *t)
{
    struct zct_table larger = *t;
    larger.log2_slots++;
    larger.slots = calloc((size_t)1 << larger.log2_slots, slot_bytes(t));
    if (!larger.slots)
        return false;
    for (size_t i = 0; i <= mask(t); i++) {
        const uintptr_t *from = slot(t, i);
        if (!*from)
            continue;
        size_t at = home(&larger, *from);
        while (*slot(&larger, at))
            at = (at + 1) & mask(&larger);
        memcpy(slot(&larger, at), from, slot_bytes(t));
    }
    free(t->slots);
    *t = larger;
    return true;
}

void *zct_table_insert(struct zct_table *t, uintptr_t key)
{
    void *there = zct_table_find(t, key);
    if (there)
        return there;
    if (t->nr_used * 2 > mask(t) && !grow(t))
        return NULL;
    key = stored(key);
    size_t at = home(t, key);
    while (*slot(t, at))
        at = (at + 1) & mask(t);
    *slot(t, at) = key;
    t->nr_used++;
    return slot(t, at) + 1;
}

void zct_table_remove(struct zct_table *t, uintptr_t key)
{
    uintptr_t *hole = zct_table_find(t, key);
    if (!hole)
        return;
    hole--;
    t->nr_used--;
    /* Pull later entries of the chain back, so that no search ends early. */
    size_t to = (size_t)((uint8_t *)hole - t->slots) / slot_bytes(t);
    for (size_t at = (to + 1) & mask(t); *slot(t, at); at = (at + 1) & mask(t)) {
        const size_t wanted = home(t, *slot(t, at));
        if (((at - wanted) & mask(t)) < ((at - to) & mask(t)))
            continue;
        memcpy(slot(t, to), slot(t, at), slot_bytes(t));
        to = at;
    }
    *slot(t, to) = 0;
}

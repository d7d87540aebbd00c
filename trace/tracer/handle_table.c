/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle_table.h"

#include <stdlib.h>
#include <string.h>

static size_t mask(const struct zct_table *t)
{
    return ((size_t)1 << t->log2_slots) - 1;
}

bool zct_table_init(struct zct_table *t, size_t value_bytes)
{
    t->slot_bytes = sizeof(uintptr_t) + ((value_bytes + 7) & ~(size_t)7);
    t->log2_slots = 8;
    t->nr_used = 0;
    t->slots = calloc((size_t)1 << t->log2_slots, t->slot_bytes);
    return t->slots != NULL;
}

/* The slot that has the key, or could. */
static size_t place_of(const struct zct_table *t, uintptr_t stored)
{
    size_t at = zct_table_home(t, stored);
    while (*zct_table_slot(t, at) && *zct_table_slot(t, at) != stored)
        at = (at + 1) & mask(t);
    return at;
}

void *zct_table_search(const struct zct_table *t, uintptr_t stored)
{
    uintptr_t *found = zct_table_slot(t, place_of(t, stored));
    return *found ? found + 1 : NULL;
}

static bool grow(struct zct_table *t)
{
    struct zct_table larger = *t;
    larger.log2_slots++;
    larger.slots = calloc((size_t)1 << larger.log2_slots, t->slot_bytes);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i <= mask(t); i++) {
        const uintptr_t *from = zct_table_slot(t, i);
        if (!*from)
            continue;
        memcpy(zct_table_slot(&larger, place_of(&larger, *from)), from, t->slot_bytes);
    }
    free(t->slots);
    *t = larger;
    return true;
}

void *zct_table_insert(struct zct_table *t, uintptr_t key)
{
    const uintptr_t stored = zct_table_stored(key);
    uintptr_t *slot = zct_table_slot(t, place_of(t, stored));
    if (*slot)
        return slot + 1;
    if (t->nr_used * 2 > mask(t)) {
        if (!grow(t))
            return NULL;
        slot = zct_table_slot(t, place_of(t, stored));
    }
    *slot = stored;
    t->nr_used++;
    return slot + 1;
}

void zct_table_remove(struct zct_table *t, uintptr_t key)
{
    void *value = zct_table_find(t, key);
    if (value)
        zct_table_remove_found(t, value);
}

void zct_table_remove_found(struct zct_table *t, void *value)
{
    size_t to = place_of(t, ((uintptr_t *)value)[-1]);
    t->nr_used--;
    /* Pull later entries of the chain back, so that no search ends early. */
    for (size_t at = (to + 1) & mask(t); *zct_table_slot(t, at); at = (at + 1) & mask(t)) {
        const size_t wanted = zct_table_home(t, *zct_table_slot(t, at));
        if (((at - wanted) & mask(t)) < ((at - to) & mask(t)))
            continue;
        memcpy(zct_table_slot(t, to), zct_table_slot(t, at), t->slot_bytes);
        to = at;
    }
    *zct_table_slot(t, to) = 0;
}

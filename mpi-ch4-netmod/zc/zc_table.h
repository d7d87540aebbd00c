/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TABLE_H_INCLUDED
#define ZC_TABLE_H_INCLUDED

/* This file has a hash table of entries that have a number each.
 *
 * The numbers are random (zc_upid.h), or counted, so that their lowest bits spread entries evenly.
 * An entry embeds a link, which has its number, and the table owns only its chains. There are at
 * least as many chains as entries, so a search takes the same time however many there are. If there
 * is no memory for more chains the table goes on with those that it has: an entry can always be
 * added. A table that is all zero is empty. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct MPIDI_ZC_link {
    struct MPIDI_ZC_link *next;
    uint64_t number;
} MPIDI_ZC_link_t;

typedef struct {
    MPIDI_ZC_link_t **chains;   /* owned; NULL: `only` is the one chain */
    MPIDI_ZC_link_t *only;
    size_t last;                /* the number of chains, a power of two, less 1 */
    size_t nr;                  /* of entries */
} MPIDI_ZC_table_t;

enum { MPIDI_ZC_TABLE_MIN = 64 };

/* Returns the entry of @type whose member @member is @link, or NULL if that is. */
#define MPIDI_ZC_TABLE_ENTRY(link, type, member)                               \
    ((link) ? (type *) (void *) ((char *) (link) - offsetof(type, member)) : NULL)

static inline MPIDI_ZC_link_t **MPIDI_ZC_table_chain(MPIDI_ZC_table_t * table, uint64_t number)
{
    return table->chains ? &table->chains[number & table->last] : &table->only;
}

/* Returns the link of @number, or NULL. */
static inline MPIDI_ZC_link_t *MPIDI_ZC_table_find(const MPIDI_ZC_table_t * table, uint64_t number)
{
    MPIDI_ZC_link_t *at = table->chains ? table->chains[number & table->last] : table->only;

    while (at && at->number != number) {
        at = at->next;
    }
    return at;
}

/* Doubles the number of chains. */
static inline void MPIDI_ZC_table_grow(MPIDI_ZC_table_t * table)
{
    MPIDI_ZC_table_t larger = {.nr = table->nr };
    const size_t chains = table->chains ? table->last + 1 : 1;
    const size_t wanted = chains < MPIDI_ZC_TABLE_MIN ? (size_t) MPIDI_ZC_TABLE_MIN : 2 * chains;

    larger.chains = (MPIDI_ZC_link_t **) calloc(wanted, sizeof(*larger.chains));
    if (!larger.chains) {
        return;
    }
    larger.last = wanted - 1;
    for (size_t i = 0; i < chains; i++) {
        MPIDI_ZC_link_t *link = table->chains ? table->chains[i] : table->only;
        while (link) {
            MPIDI_ZC_link_t *next = link->next;
            MPIDI_ZC_link_t **chain = MPIDI_ZC_table_chain(&larger, link->number);
            link->next = *chain;
            *chain = link;
            link = next;
        }
    }
    free(table->chains);
    *table = larger;
}

/* Adds @link, whose number is set and not in the table. */
static inline void MPIDI_ZC_table_add(MPIDI_ZC_table_t * table, MPIDI_ZC_link_t * link)
{
    if (++table->nr > (table->chains ? table->last + 1 : 1)) {
        MPIDI_ZC_table_grow(table);
    }
    MPIDI_ZC_link_t **chain = MPIDI_ZC_table_chain(table, link->number);
    link->next = *chain;
    *chain = link;
}

/* Removes @link, if it is in the table. */
static inline void MPIDI_ZC_table_remove(MPIDI_ZC_table_t * table, MPIDI_ZC_link_t * link)
{
    MPIDI_ZC_link_t **at = MPIDI_ZC_table_chain(table, link->number);

    while (*at && *at != link) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = link->next;
        table->nr--;
    }
}

/* Returns the link after @link, in no particular order, or NULL. @link: NULL for the first. */
static inline MPIDI_ZC_link_t *MPIDI_ZC_table_next(const MPIDI_ZC_table_t * table,
                                                   const MPIDI_ZC_link_t * link)
{
    size_t i = link ? (link->number & table->last) + 1 : 0;

    if (link && link->next) {
        return link->next;
    }
    if (!table->chains) {
        return link ? NULL : table->only;
    }
    for (; i <= table->last; i++) {
        if (table->chains[i]) {
            return table->chains[i];
        }
    }
    return NULL;
}

/* Frees what the table owns. It is empty. */
static inline void MPIDI_ZC_table_free(MPIDI_ZC_table_t * table)
{
    free(table->chains);
    *table = (MPIDI_ZC_table_t) { 0 };
}

#endif /* ZC_TABLE_H_INCLUDED */

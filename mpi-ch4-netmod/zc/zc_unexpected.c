/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "zc_unexpected.h"

#define FIRST_BUCKETS 256

typedef MPIDI_ZC_message_t message_t;
typedef MPIDI_ZC_unexpected_t queue_t;

_Static_assert(offsetof(message_t, data) + 8 == MPIDI_ZC_CELL_MIN,
               "a message of 8 bytes no longer fits a cache line");

static bool same_envelope(const queue_t * q, const message_t * m, int source, int32_t masked_tag,
                          uint16_t context)
{
    return m->context == context && m->source == source && (m->tag & q->tag_mask) == masked_tag;
}

static bool fits(const queue_t * q, const message_t * m, int source, int tag, uint16_t context)
{
    return m->context == context &&
        (source == MPIDI_ZC_ANY_SOURCE || source == m->source) &&
        (tag == MPIDI_ZC_ANY_TAG || tag == (m->tag & q->tag_mask));
}

/* ---- the index ---- */

/* The last step is the finalizer of MurmurHash3 (Appleby). */
static message_t **bucket_of(const queue_t * q, int source, int32_t masked_tag, uint16_t context)
{
    uint64_t x = ((uint64_t) (uint32_t) source << 32 | (uint32_t) masked_tag) +
        (uint64_t) context * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return &q->buckets[(x ^ x >> 33) & (q->nr_buckets - 1)];
}

/* Returns the place of the last message of the envelope. It holds NULL if there is none. */
static message_t **last_of(const queue_t * q, int source, int32_t masked_tag, uint16_t context)
{
    message_t **at = bucket_of(q, source, masked_tag, context);

    while (*at && !same_envelope(q, *at, source, masked_tag, context)) {
        at = &(*at)->envelope;
    }
    return at;
}

static message_t **last_like(const queue_t * q, const message_t * m)
{
    return last_of(q, m->source, m->tag & q->tag_mask, m->context);
}

/* Doubles the buckets. Without memory for them the chains only get longer. */
static void widen(queue_t * q)
{
    message_t **old = q->buckets;
    const size_t nr_old = q->nr_buckets;
    message_t **buckets = calloc(2 * nr_old, sizeof(*buckets));

    if (!buckets) {
        return;
    }
    q->buckets = buckets;
    q->nr_buckets = 2 * nr_old;
    for (size_t i = 0; i < nr_old; i++) {
        for (message_t * last = old[i], *next; last; last = next) {
            next = last->envelope;
            message_t **at = bucket_of(q, last->source, last->tag & q->tag_mask, last->context);
            last->envelope = *at;
            *at = last;
        }
    }
    free(old);
}

static void index_append(queue_t * q, message_t * m)
{
    message_t **at = last_like(q, m), *last = *at;

    if (last) {
        m->newer = last->newer;
        m->envelope = last->envelope;
        last->newer = m;
        *at = m;
    } else {
        m->newer = m;
        m->envelope = NULL;
        *at = m;
        if (++q->nr_envelopes > q->nr_buckets) {
            widen(q);
        }
    }
}

/* @m is the first of its envelope. */
static void index_take(queue_t * q, const message_t * m)
{
    message_t **at = last_like(q, m), *last = *at;

    if (last == m) {
        *at = m->envelope;
        q->nr_envelopes--;
    } else {
        last->newer = m->newer;
    }
}

static void index_drop(queue_t * q)
{
    free(q->buckets);
    q->buckets = NULL;
}

static void index_build(queue_t * q)
{
    q->buckets = calloc(FIRST_BUCKETS, sizeof(*q->buckets));
    q->nr_buckets = FIRST_BUCKETS;
    q->nr_envelopes = 0;
    if (q->buckets) {
        for (message_t * m = q->first; m; m = m->next) {
            index_append(q, m);
        }
    }
}

/* ---- messages ---- */

MPIDI_ZC_message_t *MPIDI_ZC_message_new(MPIDI_ZC_unexpected_t * q, size_t room)
{
    message_t *m = MPIDI_ZC_cell_new(&q->cells, sizeof(*m) + room);

    if (m) {
        m->room = (uint32_t) room;
        m->kind = 0;
        m->error_bits = 0;
    }
    return m;
}

void MPIDI_ZC_message_free(MPIDI_ZC_unexpected_t * q, MPIDI_ZC_message_t * m)
{
    MPIDI_ZC_cell_free(&q->cells, m, sizeof(*m) + m->room);
}

/* ---- the queue ---- */

void MPIDI_ZC_unexpected_init(MPIDI_ZC_unexpected_t * q, int32_t tag_mask)
{
    memset(q, 0, sizeof(*q));
    q->tag_mask = tag_mask;
    MPIDI_ZC_cells_init(&q->cells);
}

void MPIDI_ZC_unexpected_append(MPIDI_ZC_unexpected_t * q, MPIDI_ZC_message_t * m)
{
    m->next = NULL;
    m->previous = q->last;
    if (q->last) {
        q->last->next = m;
    } else {
        q->first = m;
    }
    q->last = m;
    q->length++;
    if (q->buckets) {
        index_append(q, m);
    } else if (q->length >= MPIDI_ZC_INDEX_BUILD) {
        index_build(q);
    }
}

MPIDI_ZC_message_t *MPIDI_ZC_unexpected_find(const MPIDI_ZC_unexpected_t * q, int source, int tag,
                                             uint16_t context)
{
    message_t *m = q->first;

    if (!m || fits(q, m, source, tag, context)) {
        return m;
    }
    if (q->buckets && source != MPIDI_ZC_ANY_SOURCE && tag != MPIDI_ZC_ANY_TAG) {
        message_t *last = *last_of(q, source, tag, context);
        return last ? last->newer : NULL;
    }
    do {
        m = m->next;
    } while (m && !fits(q, m, source, tag, context));
    return m;
}

void MPIDI_ZC_unexpected_take(MPIDI_ZC_unexpected_t * q, MPIDI_ZC_message_t * m)
{
    if (q->buckets) {
        index_take(q, m);
    }
    if (m->previous) {
        m->previous->next = m->next;
    } else {
        q->first = m->next;
    }
    if (m->next) {
        m->next->previous = m->previous;
    } else {
        q->last = m->previous;
    }
    if (--q->length <= MPIDI_ZC_INDEX_DROP && q->buckets) {
        index_drop(q);
    }
}

void MPIDI_ZC_unexpected_free(MPIDI_ZC_unexpected_t * q)
{
    index_drop(q);
    MPIDI_ZC_cells_free(&q->cells);
    MPIDI_ZC_unexpected_init(q, q->tag_mask);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_UNEXPECTED_H_INCLUDED
#define ZC_UNEXPECTED_H_INCLUDED

/* Each VCI has a queue of unexpected messages.
 *
 * A message that arrives before its receive waits here, packed as it was sent. It takes no request
 * of MPICH before it is matched: their number is limited, and one takes more than half a kilobyte.
 * A waiting message of 8 bytes takes one cache line.
 *
 *   queue     m1 ⇄ m2 ⇄ m3 ⇄ m4 ⇄ ...              in order of arrival
 *   buckets   hash of an envelope ─▶ envelope ─▶ envelope ...
 *   envelope  its last message ─▶ its first ─▶ second ─▶ ... ─▶ its last     (a ring)
 *
 * The buckets are an index. It is made when the queue has become long, and freed when the queue is
 * short again, since walking a short queue costs less. A receive without wildcards finds the first
 * message of its envelope in the index; one with wildcards walks the queue. The first message of
 * the queue is tried before either, since most programs receive in the order of sending. Without
 * memory for the index, every receive walks the queue.
 *
 * This file uses nothing of MPI: tags are compared under a mask, and the caller decides what a
 * message holds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "zc_cells.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A queue gets an index at this length, and loses it at that. */
#define MPIDI_ZC_INDEX_BUILD 128
#define MPIDI_ZC_INDEX_DROP 32

#define MPIDI_ZC_ANY_SOURCE (-2)        /* MPI_ANY_SOURCE and MPI_ANY_TAG of MPICH */
#define MPIDI_ZC_ANY_TAG (-1)

typedef struct MPIDI_ZC_message {
    struct MPIDI_ZC_message *next, *previous;   /* in order of arrival */
    struct MPIDI_ZC_message *newer;     /* indexed: the next of this envelope, a ring */
    struct MPIDI_ZC_message *envelope;  /* indexed, of the last of an envelope: that of another
                                         * envelope of this bucket */
    uint64_t sender;            /* of the packet it came in */
    int32_t source, tag;
    uint32_t room;              /* bytes at @data */
    uint16_t context;
    uint8_t kind;               /* the caller's; 0 in a new message */
    uint8_t error_bits;
    char data[];
} MPIDI_ZC_message_t;

typedef struct {
    MPIDI_ZC_message_t *first, *last;
    size_t length;
    int32_t tag_mask;           /* bits of a tag that are compared */
    MPIDI_ZC_message_t **buckets;       /* NULL: no index */
    size_t nr_buckets;          /* a power of two */
    size_t nr_envelopes;
    MPIDI_ZC_cells_t cells;
} MPIDI_ZC_unexpected_t;

/* Returns the memory that a message with @bytes of data takes. */
static inline size_t MPIDI_ZC_message_size(size_t bytes)
{
    return MPIDI_ZC_cell_size(offsetof(MPIDI_ZC_message_t, data) + bytes);
}

void MPIDI_ZC_unexpected_init(MPIDI_ZC_unexpected_t * queue, int32_t tag_mask);

/* Makes a message with @room for data, which is not in the queue yet. NULL: there is no memory. */
MPIDI_ZC_message_t *MPIDI_ZC_message_new(MPIDI_ZC_unexpected_t * queue, size_t room);

/* Frees @message, which is not in the queue. */
void MPIDI_ZC_message_free(MPIDI_ZC_unexpected_t * queue, MPIDI_ZC_message_t * message);

/* Appends @message, whose envelope is filled in, to the queue. */
void MPIDI_ZC_unexpected_append(MPIDI_ZC_unexpected_t * queue, MPIDI_ZC_message_t * message);

/* Returns the first message that a receive of this envelope, which may have wildcards, may take.
 * The message stays in the queue. NULL: there is none. */
MPIDI_ZC_message_t *MPIDI_ZC_unexpected_find(const MPIDI_ZC_unexpected_t * queue, int source,
                                             int tag, uint16_t context);

/* Takes @message, which was found, out of the queue. There is no earlier one of its envelope. */
void MPIDI_ZC_unexpected_take(MPIDI_ZC_unexpected_t * queue, MPIDI_ZC_message_t * message);

/* Frees all memory. No message is in the queue. */
void MPIDI_ZC_unexpected_free(MPIDI_ZC_unexpected_t * queue);

#ifdef __cplusplus
}
#endif

#endif /* ZC_UNEXPECTED_H_INCLUDED */

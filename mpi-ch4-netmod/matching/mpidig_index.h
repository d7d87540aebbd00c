/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDIG_INDEX_H_INCLUDED
#define MPIDIG_INDEX_H_INCLUDED

#include "mpidimpl.h"

/* An index of a long queue of receives or unexpected messages.
 *
 * CH4's queues are lists, walked from the front: right for the few entries that most
 * programs keep, hopeless for a hundred thousand. From MPIDIG_INDEX_BUILD entries on
 * an index stands beside the list, until only MPIDIG_INDEX_DROP are left:
 *
 *   list      e1 ⇄ e2 ⇄ e3 ⇄ e4 ...           order of posting or arrival, as before
 *   buckets   (context, source, tag) ─▶ entries of that envelope, in order
 *   wild      posted receives with MPI_ANY_SOURCE or MPI_ANY_TAG, in order
 *
 * An arriving message takes the earlier of the first receive in its bucket and the
 * first wild one that fits. A receive with a wildcard walks the list of unexpected
 * messages. Without memory there is no index, and the list serves alone.
 *
 * The first entry of the list needs no search if it matches, and programs that receive
 * in the order of sending want no other. Hence an entry that leaves the list only
 * empties its node; the node leaves its bucket when a search passes there, or when
 * empty ones are half of all.
 *
 * Each queue of each VCI has its own. Called with the lock of the VCI. */

#define MPIDIG_INDEX_BUILD 128
#define MPIDIG_INDEX_DROP 32
#define MPIDIG_INDEX_PREFETCH 32

/* An entry in the index, as long as the list has it. */
typedef struct MPIDIG_index_node {
    struct MPIDIG_index_node *next;
    MPIR_Request *req;          /* NULL: no longer in the list */
    uint64_t place;             /* grows along the list */
} MPIDIG_index_node_t;

/* Queues that have one lie in MPIDI_per_vci_t, and so does the index. */
#define MPIDIG_INDEX_OF(list, queue, index) \
    (&((MPIDI_per_vci_t *) ((char *) (list) - offsetof(MPIDI_per_vci_t, queue)))->index)

MPL_STATIC_INLINE_PREFIX MPIDIG_index_t *MPIDIG_index_of(MPIR_Request ** list,
                                                         enum MPIDIG_queue_type qtype)
{
    return qtype == MPIDIG_PT2PT_POSTED ? MPIDIG_INDEX_OF(list, posted_list, posted_index) :
        qtype == MPIDIG_PT2PT_UNEXP ? MPIDIG_INDEX_OF(list, unexp_list, unexp_index) : NULL;
}

void MPIDIG_index_build(MPIDIG_index_t * index, MPIR_Request * list);
void MPIDIG_index_append(MPIDIG_index_t * index, MPIR_Request * req);
void MPIDIG_index_drop(MPIDIG_index_t * index);

/* The first entry that matches the envelope of a message (posted receives) or of a
 * receive without wildcards (unexpected messages); NULL: none. */
MPIR_Request *MPIDIG_index_find(MPIDIG_index_t * index, int rank, int tag,
                                MPIR_Context_id_t context_id);

/* @req is now the last of @list. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_index_appended(MPIR_Request ** list,
                                                    enum MPIDIG_queue_type qtype,
                                                    MPIR_Request * req)
{
    MPIDIG_index_t *index = MPIDIG_index_of(list, qtype);
    if (index) {
        index->count++;
        if (unlikely(index->tables)) {
            MPIDIG_index_append(index, req);
        } else if (unlikely(index->count >= MPIDIG_INDEX_BUILD)) {
            MPIDIG_index_build(index, *list);
        }
    }
}

/* @req has been taken from @list. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_index_removed(MPIR_Request ** list,
                                                   enum MPIDIG_queue_type qtype,
                                                   MPIR_Request * req)
{
    MPIDIG_index_t *index = MPIDIG_index_of(list, qtype);
    if (index) {
        index->count--;
        if (unlikely(index->tables)) {
            if (index->count <= MPIDIG_INDEX_DROP) {
                MPIDIG_index_drop(index);
            } else {
                MPIDIG_REQUEST(req, index_node)->req = NULL;
            }
        }
    }
}

/* @req is about to leave @list. If it is the first of many unexpected messages, the next two
 * will probably follow it, and of those few lines are in a cache any more. The one after the
 * next is fetched, and what the next one points to. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_index_prefetch(MPIR_Request ** list,
                                                    enum MPIDIG_queue_type qtype,
                                                    MPIR_Request * req)
{
    if (qtype == MPIDIG_PT2PT_UNEXP && req == *list && req->next &&
        MPIDIG_index_of(list, qtype)->count >= MPIDIG_INDEX_PREFETCH) {
        const char *ext = (const char *) MPIDIG_REQUEST(req->next, req);
        for (size_t at = 0; at < sizeof(MPIDIG_req_ext_t); at += 64) {
            __builtin_prefetch(ext + at, 1);
        }
        const char *after = (const char *) req->next->next;
        for (size_t at = 0; at < sizeof(*req); at += 64) {
            __builtin_prefetch(after + at, 1);
        }
    }
}

#endif /* MPIDIG_INDEX_H_INCLUDED */

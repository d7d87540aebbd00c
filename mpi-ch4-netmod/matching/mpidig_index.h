/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDIG_INDEX_H_INCLUDED
#define MPIDIG_INDEX_H_INCLUDED

#include "mpidimpl.h"

/* A long queue of posted receives has an index.
 *
 * CH4's queue is a list that is walked from the front: that is right for the few entries that most
 * programs have, and too slow for a hundred thousand. From MPIDIG_INDEX_BUILD entries on
 * an index supplements the list, until only MPIDIG_INDEX_DROP are left:
 *
 *   list      e1 ⇄ e2 ⇄ e3 ⇄ e4 ...           order of posting, as before
 *   buckets   (context, source, tag) ─▶ receives of that envelope, in order
 *   wild      receives with MPI_ANY_SOURCE or MPI_ANY_TAG, in order
 *
 * An arriving message takes the earlier of the first receive in its bucket and the
 * first wild one that fits. Without memory there is no index, and the list is walked.
 * (The queue of unexpected messages is the netmod's.)
 *
 * The first entry of the list needs no search if it matches, and programs that send
 * in the order of receiving need no other. Hence an entry that leaves the list only
 * empties its node. The node leaves its bucket when a search passes there, or when
 * half of all nodes are empty.
 *
 * Each queue of each VCI has its own index. All functions are called inside the lock of the VCI. */

#define MPIDIG_INDEX_BUILD 128
#define MPIDIG_INDEX_DROP 32

/* An entry of the list has a node in the index. */
typedef struct MPIDIG_index_node {
    struct MPIDIG_index_node *next;
    MPIR_Request *req;          /* NULL: no longer in the list */
    uint64_t place;             /* grows along the list */
} MPIDIG_index_node_t;

/* A queue that has an index lies in MPIDI_per_vci_t, and so does the index. */
#define MPIDIG_INDEX_OF(list, queue, index) \
    (&((MPIDI_per_vci_t *) ((char *) (list) - offsetof(MPIDI_per_vci_t, queue)))->index)

MPL_STATIC_INLINE_PREFIX MPIDIG_index_t *MPIDIG_index_of(MPIR_Request ** list,
                                                         enum MPIDIG_queue_type qtype)
{
    return qtype == MPIDIG_PT2PT_POSTED ? MPIDIG_INDEX_OF(list, posted_list, posted_index) : NULL;
}

void MPIDIG_index_build(MPIDIG_index_t * index, MPIR_Request * list);
void MPIDIG_index_append(MPIDIG_index_t * index, MPIR_Request * req);
void MPIDIG_index_drop(MPIDIG_index_t * index);

/* Returns the first entry that matches the envelope of a message. NULL: there is none. */
MPIR_Request *MPIDIG_index_find(MPIDIG_index_t * index, int rank, int tag,
                                MPIR_Context_id_t context_id);

/* Is called when @req has been appended to @list. */
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

/* Is called when @req has been taken from @list. */
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

#endif /* MPIDIG_INDEX_H_INCLUDED */

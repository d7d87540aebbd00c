/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpidimpl.h"
#include "mpidig_index.h"

#define NODES_PER_SLAB 1000
#define FIRST_BUCKETS 256u

typedef MPIDIG_index_node_t node_t;

typedef struct {
    node_t *first, *last;
} chain_t;

typedef struct slab {
    struct slab *next;
    node_t nodes[NODES_PER_SLAB];
} slab_t;

typedef struct MPIDIG_index_tables {
    chain_t *buckets;
    unsigned nr_buckets;        /* a power of two */
    unsigned nr_nodes;          /* with the empty ones */
    unsigned max_nodes;         /* until the empty ones are thrown out */
    chain_t wild;
    uint64_t next_place;
    slab_t *slabs;
    node_t *free;
} tables_t;

static int source_of(MPIR_Request * req)
{
    return MPIDIG_REQUEST(req, u.recv.source);
}

static int tag_of(MPIR_Request * req)
{
    return MPIR_TAG_MASK_ERROR_BITS(MPIDIG_REQUEST(req, u.recv.tag));
}

static bool is_wild(MPIR_Request * req)
{
    return source_of(req) == MPI_ANY_SOURCE || MPIDIG_REQUEST(req, u.recv.tag) == MPI_ANY_TAG;
}

static bool fits(MPIR_Request * req, int rank, int tag, MPIR_Context_id_t context_id)
{
    return context_id == MPIDIG_REQUEST(req, u.recv.context_id) &&
        (rank == source_of(req) || source_of(req) == MPI_ANY_SOURCE) &&
        (tag == tag_of(req) || MPIDIG_REQUEST(req, u.recv.tag) == MPI_ANY_TAG);
}

/* The last step is the finalizer of MurmurHash3 (Appleby). */
static chain_t *bucket_of(const tables_t * t, int rank, int tag, MPIR_Context_id_t context_id)
{
    uint64_t x = ((uint64_t) (uint32_t) rank << 32 | (uint32_t) tag) +
        (uint64_t) context_id * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return &t->buckets[(x ^ x >> 33) & (t->nr_buckets - 1)];
}

static chain_t *chain_of(tables_t * t, MPIR_Request * req)
{
    return is_wild(req) ? &t->wild :
        bucket_of(t, source_of(req), tag_of(req), MPIDIG_REQUEST(req, u.recv.context_id));
}

static void link_last(chain_t * chain, node_t * node)
{
    node->next = NULL;
    if (chain->first) {
        chain->last->next = node;
    } else {
        chain->first = node;
    }
    chain->last = node;
}

static node_t *new_node(tables_t * t)
{
    if (!t->free) {
        slab_t *slab = MPL_malloc(sizeof(*slab), MPL_MEM_OTHER);
        if (!slab) {
            return NULL;
        }
        slab->next = t->slabs;
        t->slabs = slab;
        for (int i = 0; i < NODES_PER_SLAB; i++) {
            slab->nodes[i].next = t->free;
            t->free = &slab->nodes[i];
        }
    }
    node_t *node = t->free;
    t->free = node->next;
    return node;
}

static void free_node(tables_t * t, node_t * node)
{
    node->next = t->free;
    t->free = node;
    t->nr_nodes--;
}

/* Moves the nodes that are not empty to their chains, and frees the others. */
static void rehash(tables_t * t, chain_t chain)
{
    for (node_t * node = chain.first, *next; node; node = next) {
        next = node->next;
        if (node->req) {
            link_last(chain_of(t, node->req), node);
        } else {
            free_node(t, node);
        }
    }
}

/* Removes the empty nodes, and doubles the buckets if most nodes are not empty. Without memory for
 * those the chains only get longer. */
static void tidy(tables_t * t, unsigned nr_entries)
{
    chain_t *old = t->buckets;
    const unsigned nr_old = t->nr_buckets;
    chain_t *new = NULL;

    if (nr_entries > nr_old / 2) {
        new = MPL_calloc(2 * (size_t) nr_old, sizeof(*new), MPL_MEM_OTHER);
    }
    if (new) {
        t->buckets = new;
        t->nr_buckets = 2 * nr_old;
    }
    for (unsigned i = 0; i < nr_old; i++) {
        const chain_t chain = old[i];
        if (!new) {
            old[i] = (chain_t) { NULL, NULL };
        }
        rehash(t, chain);
    }
    if (new) {
        MPL_free(old);
    }
    const chain_t wild = t->wild;
    t->wild = (chain_t) { NULL, NULL };
    rehash(t, wild);
    t->max_nodes = MPL_MAX(t->nr_buckets, 2 * nr_entries);
}

void MPIDIG_index_drop(MPIDIG_index_t * index)
{
    tables_t *t = index->tables;

    index->tables = NULL;
    if (t) {
        while (t->slabs) {
            slab_t *slab = t->slabs;
            t->slabs = slab->next;
            MPL_free(slab);
        }
        MPL_free(t->buckets);
        MPL_free(t);
    }
}

void MPIDIG_index_append(MPIDIG_index_t * index, MPIR_Request * req)
{
    tables_t *t = index->tables;
    node_t *node = new_node(t);

    if (!node) {
        MPIDIG_index_drop(index);
        return;
    }
    node->req = req;
    node->place = t->next_place++;
    MPIDIG_REQUEST(req, index_node) = node;
    link_last(chain_of(t, req), node);
    if (++t->nr_nodes > t->max_nodes) {
        tidy(t, index->count);
    }
}

void MPIDIG_index_build(MPIDIG_index_t * index, MPIR_Request * list)
{
    tables_t *t = MPL_calloc(1, sizeof(*t), MPL_MEM_OTHER);

    if (!t) {
        return;
    }
    t->nr_buckets = t->max_nodes = FIRST_BUCKETS;
    t->buckets = MPL_calloc(t->nr_buckets, sizeof(*t->buckets), MPL_MEM_OTHER);
    if (!t->buckets) {
        MPL_free(t);
        return;
    }
    index->tables = t;
    for (MPIR_Request * req = list; req && index->tables; req = req->next) {
        MPIDIG_index_append(index, req);
    }
}

/* Returns the first entry of @chain that fits, and removes empty nodes in front of it. */
static const node_t *first_fit(tables_t * t, chain_t * chain, int rank, int tag,
                               MPIR_Context_id_t context_id)
{
    node_t *previous = NULL;

    for (node_t * node = chain->first, *next; node; node = next) {
        next = node->next;
        if (node->req == NULL) {
            if (previous) {
                previous->next = next;
            } else {
                chain->first = next;
            }
            if (chain->last == node) {
                chain->last = previous;
            }
            free_node(t, node);
        } else if (fits(node->req, rank, tag, context_id)) {
            return node;
        } else {
            previous = node;
        }
    }
    return NULL;
}

MPIR_Request *MPIDIG_index_find(MPIDIG_index_t * index, int rank, int tag,
                                MPIR_Context_id_t context_id)
{
    tables_t *t = index->tables;
    const node_t *exact = first_fit(t, bucket_of(t, rank, tag, context_id), rank, tag, context_id);
    const node_t *wild = first_fit(t, &t->wild, rank, tag, context_id);
    const node_t *found = !wild || (exact && exact->place < wild->place) ? exact : wild;

    return found ? found->req : NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Collective calls, written with the point-to-point messages they stand for
 * (zct/trace.h). What is received is known from the arguments, so all is said
 * when the call has returned, and of a nonblocking one its end later. One that
 * fails took no part in what the other ranks did, and its arguments may be such
 * that the library must not be asked about them.
 */

#include <stdlib.h>

#include "datatype.h"
#include "traced_request.h"

static bool is_root(const struct zct_comm *c, int root)
{
    return c->inter ? root == MPI_ROOT : root == c->rank;
}

/* In an intercommunicator the root's own group but it takes no part. */
static bool has_root(const struct zct_comm *c, int root)
{
    return !is_root(c, root) && root >= 0 && root < c->peers;
}

/* The own rank among the peers, -1 in an intercommunicator. */
static int self(const struct zct_comm *c)
{
    return c->inter ? -1 : c->rank;
}

static void send_run(int first, int count, uint64_t bytes)
{
    const struct zct_run run = {ZCT_RUN_SEND, first, (uint64_t)(count > 0 ? count : 0),
                                bytes,        0,     0};
    zct_write_run(&zct.writer, &run);
}

static void receive_run(int first, int count, uint64_t bytes, uint64_t addr, int64_t stride)
{
    const struct zct_run run = {ZCT_RUN_RECEIVE, first, (uint64_t)(count > 0 ? count : 0),
                                bytes,           addr,  (uint64_t)stride};
    zct_write_run(&zct.writer, &run);
}

/* The same to all but oneself. */
static void send_to_others(const struct zct_comm *c, uint64_t bytes)
{
    if (c->inter) {
        send_run(0, c->peers, bytes);
        return;
    }
    send_run(0, c->rank, bytes);
    send_run(c->rank + 1, c->size - c->rank - 1, bytes);
}

/* The contributions to a result: all into the same place. */
static void receive_from_others(const struct zct_comm *c, uint64_t bytes, uint64_t addr)
{
    if (c->inter) {
        receive_run(0, c->peers, bytes, addr, 0);
        return;
    }
    receive_run(0, c->rank, bytes, addr, 0);
    receive_run(c->rank + 1, c->size - c->rank - 1, bytes, addr, 0);
}

/* The contributions of all ranks go to the first, which is not sent its own. */
static bool sends_to_first(const struct zct_comm *c)
{
    return c->inter || c->rank != 0;
}

/** A collective call has begun. */
struct collecting {
    bool traced;
    MPI_Comm comm;
    void *caller;
    int64_t begin_ns;
    uint64_t order;
    /* With MPI_THREAD_MULTIPLE, what was known of the communicator: when the others are done,
     * another thread may hear of it and free the handle before the call returns. */
    bool knows_comm;
    struct zct_comm known;
};

static void begin(struct collecting *begun, MPI_Comm comm, void *caller)
{
    begun->traced = zct.active && comm != zct_real.comm_null;
    if (!begun->traced)
        return;
    begun->comm = comm;
    begun->caller = caller;
    begun->begin_ns = zct_now();
    zct_lock();
    begun->order = zct_writer_begin(&zct.writer);
    if (zct.threaded) {
        const struct zct_comm *known = zct_table_find(&zct.comms, ZCT_KEY(comm));
        begun->knows_comm = known;
        if (known)
            begun->known = *known;
    }
    zct_unlock();
}

/* A call has returned: under the lock until the runs are written. */
static uint64_t begin_locked(enum zct_kind kind, const struct collecting *begun, int root,
                             struct zct_comm *c)
{
    zct_lock();
    *c = zct.threaded && begun->knows_comm ? begun->known : *zct_comm_get_locked(begun->comm);
    zct.writer.site = zct_site_locked(begun->caller);
    return zct_write_collective(&zct.writer, begun->begin_ns, begun->order, kind, c->id, root);
}

static void ready_unlock(void)
{
    zct_write_collective_ready(&zct.writer);
    zct_unlock();
}

static void ended(const struct collecting *begun, uint64_t call, int64_t now)
{
    zct_lock();
    zct_write_collective_end(&zct.writer, now, call);
    zct_unlock();
    if (zct.calls)
        zct_call_ended(ZCT_FUNCTION_COLLECTIVE, begun->caller, begun->begin_ns, now);
}

static void pending(uint64_t call, const MPI_Request *request)
{
    const struct zct_request r = {.kind = ZCT_REQUEST_COLLECTIVE, .active = true, .order = call};
    zct_lock();
    zct_request_add_locked(*request, &r);
    zct_unlock();
}

/** The ranks a process of a topology sends to and receives from, in its order. */
struct neighbours {
    int nr_sources;
    int nr_dests;
    int *sources;
    int *dests;
    int few[64]; /* both lists, if they are short */
};

static int *room_of(size_t nr_ranks)
{
    int *room = malloc(nr_ranks * sizeof(*room));
    if (!room)
        zct_out_of_memory();
    return room;
}

static bool neighbours_room(struct neighbours *n, int nr_sources, int nr_dests)
{
    const size_t total = (size_t)nr_sources + (size_t)nr_dests;
    n->nr_sources = nr_sources;
    n->nr_dests = nr_dests;
    n->sources = total <= sizeof(n->few) / sizeof(int) ? n->few : room_of(total);
    n->dests = n->sources + nr_sources;
    return n->sources != NULL;
}

static void neighbours_free(struct neighbours *n)
{
    if (n->sources != n->few)
        free(n->sources);
}

static bool cart_neighbours(struct neighbours *n, MPI_Comm comm)
{
    int nr_dims = 0;
    REAL(Cartdim_get)(comm, &nr_dims);
    if (!neighbours_room(n, 2 * nr_dims, 2 * nr_dims))
        return false;
    for (int d = 0; d < nr_dims; d++) {
        int *both = n->sources + (size_t)2 * d;
        REAL(Cart_shift)(comm, d, 1, &both[0], &both[1]);
    }
    for (int i = 0; i < 2 * nr_dims; i++)
        n->dests[i] = n->sources[i];
    return true;
}

static bool graph_neighbours(struct neighbours *n, MPI_Comm comm)
{
    int rank = 0;
    int degree = 0;
    REAL(Comm_rank)(comm, &rank);
    REAL(Graph_neighbors_count)(comm, rank, &degree);
    if (!neighbours_room(n, degree, degree))
        return false;
    REAL(Graph_neighbors)(comm, rank, degree, n->sources);
    REAL(Graph_neighbors)(comm, rank, degree, n->dests);
    return true;
}

static bool dist_graph_neighbours(struct neighbours *n, MPI_Comm comm)
{
    int indegree = 0;
    int outdegree = 0;
    int weighted = 0;
    REAL(Dist_graph_neighbors_count)(comm, &indegree, &outdegree, &weighted);
    int *weights = room_of((size_t)indegree + (size_t)outdegree + 1);
    bool found = weights && neighbours_room(n, indegree, outdegree);
    if (found)
        REAL(Dist_graph_neighbors)
    (comm, indegree, n->sources, weights, outdegree, n->dests, weights + indegree);
    free(weights);
    return found;
}

/* False: no topology, or no memory. */
static bool neighbours_of(struct neighbours *n, MPI_Comm comm)
{
    int topology = MPI_UNDEFINED;
    REAL(Topo_test)(comm, &topology);
    switch (topology) {
    case MPI_CART:
        return cart_neighbours(n, comm);
    case MPI_GRAPH:
        return graph_neighbours(n, comm);
    case MPI_DIST_GRAPH:
        return dist_graph_neighbours(n, comm);
    default:
        return false;
    }
}

/* A wrapper of the blocking and one of the nonblocking function. */
#define PASTE(a, b) a##b
#define EXPANDED_PASTE(a, b) PASTE(a, b)
#define UNWRAP(...) __VA_ARGS__
#define WRAPPER(name, iname, parameters, arguments, note)                                          \
    int EXPANDED_PASTE(MPI_, name)(UNWRAP parameters)                                              \
    {                                                                                              \
        struct collecting begun;                                                                   \
        begin(&begun, comm, ZCT_CALLER);                                                           \
        const int code = REAL(name)(UNWRAP arguments);                                             \
        if (begun.traced && zct_moved(code) && zct.active) {                                       \
            const int64_t now = zct_now_after();                                                   \
            const uint64_t call = note;                                                            \
            if (code == MPI_SUCCESS)                                                               \
                ended(&begun, call, now);                                                          \
        }                                                                                          \
        return code;                                                                               \
    }                                                                                              \
    int EXPANDED_PASTE(MPI_, iname)(UNWRAP parameters, MPI_Request * request)                      \
    {                                                                                              \
        struct collecting begun;                                                                   \
        begin(&begun, comm, ZCT_CALLER);                                                           \
        const int code = REAL(iname)(UNWRAP arguments, request);                                   \
        if (begun.traced && code == MPI_SUCCESS && zct.active)                                     \
            pending(note, request);                                                                \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)                                                                                \
    ZCT_WRAPS(iname)

static uint64_t note_barrier(const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_BARRIER, begun, -1, &c);
    ready_unlock();
    return call;
}

WRAPPER(Barrier, Ibarrier, (MPI_Comm comm), (comm), note_barrier(&begun))

/* All others, for counts of both types. */
#define COUNT int
#define DISPLACEMENT int
#define NAME(x) x
#include "collective_calls.h"
#undef COUNT
#undef DISPLACEMENT
#undef NAME

#if ZCT_LARGE_COUNT
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define NAME(x) x##_c
#include "collective_calls.h"
#endif

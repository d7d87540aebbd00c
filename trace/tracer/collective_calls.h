/* SPDX-License-Identifier: BSD-3-Clause */
/* No guard: collective.c includes it once for counts of each type (COUNT,
 * DISPLACEMENT, NAME). */

/* Blocks of one size, block i for rank i. */
static void NAME(receive_blocks)(int n, void *buffer, COUNT count, MPI_Datatype type)
{
    receive_run(0, n, zct_bytes_locked(count, type), zct_address_locked(buffer, type),
                (int64_t)count * zct_extent_locked(type));
}

static void NAME(receive_parts)(int n, void *buffer, const COUNT *counts,
                                const DISPLACEMENT *displs, MPI_Datatype type)
{
    const uint64_t base = zct_address_locked(buffer, type);
    const int64_t extent = zct_extent_locked(type);
    for (int i = 0; i < n; i++)
        receive_run(i, 1, zct_bytes_locked(counts[i], type), base + (uint64_t)(displs[i] * extent),
                    0);
}

static void NAME(send_parts)(int n, int except, const COUNT *counts, MPI_Datatype type)
{
    for (int i = 0; i < n; i++)
        if (i != except)
            send_run(i, 1, zct_bytes_locked(counts[i], type));
}

static uint64_t NAME(note_bcast)(void *buffer, COUNT count, MPI_Datatype type, int root,
                                 const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_BCAST, begun, root, &c);
    if (is_root(&c, root))
        send_to_others(&c, zct_bytes_locked(count, type));
    else if (has_root(&c, root))
        receive_run(root, 1, zct_bytes_locked(count, type), zct_address_locked(buffer, type), 0);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_reduce)(void *to, COUNT count, MPI_Datatype type, int root,
                                  const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_REDUCE, begun, root, &c);
    if (is_root(&c, root))
        receive_from_others(&c, zct_bytes_locked(count, type), zct_address_locked(to, type));
    else if (has_root(&c, root))
        send_run(root, 1, zct_bytes_locked(count, type));
    ready_unlock();
    return call;
}

static uint64_t NAME(note_allreduce)(void *to, COUNT count, MPI_Datatype type,
                                     const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_ALLREDUCE, begun, -1, &c);
    const uint64_t bytes = zct_bytes_locked(count, type);
    if (sends_to_first(&c))
        send_run(0, 1, bytes);
    else
        send_to_others(&c, bytes);
    receive_run(0, 1, bytes, zct_address_locked(to, type), 0);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_reduce_scatter)(void *to, const COUNT *counts, MPI_Datatype type,
                                          const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_REDUCE_SCATTER, begun, -1, &c);
    int64_t total = 0;
    for (int i = 0; i < c.size; i++)
        total += counts[i];
    if (sends_to_first(&c))
        send_run(0, 1, zct_bytes_locked(total, type));
    else
        NAME(send_parts)(c.size, 0, counts, type);
    receive_run(0, 1, zct_bytes_locked(counts[c.rank], type), zct_address_locked(to, type), 0);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_reduce_scatter_block)(void *to, COUNT count, MPI_Datatype type,
                                                const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_REDUCE_SCATTER_BLOCK, begun, -1, &c);
    if (sends_to_first(&c))
        send_run(0, 1, zct_bytes_locked((int64_t)count * c.size, type));
    else
        send_to_others(&c, zct_bytes_locked(count, type));
    receive_run(0, 1, zct_bytes_locked(count, type), zct_address_locked(to, type), 0);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_scan)(enum zct_kind kind, void *to, COUNT count, MPI_Datatype type,
                                const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(kind, begun, -1, &c);
    if (c.rank + 1 < c.size)
        send_run(c.rank + 1, 1, zct_bytes_locked(count, type));
    if (c.rank > 0)
        receive_run(c.rank - 1, 1, zct_bytes_locked(count, type), zct_address_locked(to, type), 0);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_gather)(COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
                                  MPI_Datatype type, int root, const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_GATHER, begun, root, &c);
    if (is_root(&c, root))
        NAME(receive_blocks)(c.peers, to, count, type);
    else if (has_root(&c, root))
        send_run(root, 1, zct_bytes_locked(nr_sent, sent));
    ready_unlock();
    return call;
}

static uint64_t NAME(note_gatherv)(COUNT nr_sent, MPI_Datatype sent, void *to, const COUNT *counts,
                                   const DISPLACEMENT *displs, MPI_Datatype type, int root,
                                   const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_GATHERV, begun, root, &c);
    if (is_root(&c, root))
        NAME(receive_parts)(c.peers, to, counts, displs, type);
    else if (has_root(&c, root))
        send_run(root, 1, zct_bytes_locked(nr_sent, sent));
    ready_unlock();
    return call;
}

/* The receiving half of a scatter; the root's own part may be in its place already. */
static void NAME(receive_scattered)(const struct zct_comm *c, void *to, COUNT count,
                                    MPI_Datatype type, int root)
{
    if (has_root(c, root) || (is_root(c, root) && !c->inter && to != MPI_IN_PLACE))
        receive_run(root, 1, zct_bytes_locked(count, type), zct_address_locked(to, type), 0);
}

static uint64_t NAME(note_scatter)(COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
                                   MPI_Datatype type, int root, const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_SCATTER, begun, root, &c);
    if (is_root(&c, root))
        send_to_others(&c, zct_bytes_locked(nr_sent, sent));
    NAME(receive_scattered)(&c, to, count, type, root);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_scatterv)(const COUNT *nr_sent, MPI_Datatype sent, void *to, COUNT count,
                                    MPI_Datatype type, int root, const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_SCATTERV, begun, root, &c);
    if (is_root(&c, root))
        NAME(send_parts)(c.peers, self(&c), nr_sent, sent);
    NAME(receive_scattered)(&c, to, count, type, root);
    ready_unlock();
    return call;
}

/* An allgather or an alltoall: a block of one size from each to each. */
static uint64_t NAME(note_all_blocks)(enum zct_kind kind, const void *from, COUNT nr_sent,
                                      MPI_Datatype sent, void *to, COUNT count, MPI_Datatype type,
                                      const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(kind, begun, -1, &c);
    send_to_others(&c, from == MPI_IN_PLACE ? zct_bytes_locked(count, type)
                                            : zct_bytes_locked(nr_sent, sent));
    NAME(receive_blocks)(c.peers, to, count, type);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_allgatherv)(const void *from, COUNT nr_sent, MPI_Datatype sent, void *to,
                                      const COUNT *counts, const DISPLACEMENT *displs,
                                      MPI_Datatype type, const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_ALLGATHERV, begun, -1, &c);
    send_to_others(&c, from == MPI_IN_PLACE ? zct_bytes_locked(counts[c.rank], type)
                                            : zct_bytes_locked(nr_sent, sent));
    NAME(receive_parts)(c.peers, to, counts, displs, type);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_alltoallv)(const void *from, const COUNT *nr_sent, MPI_Datatype sent,
                                     void *to, const COUNT *counts, const DISPLACEMENT *displs,
                                     MPI_Datatype type, const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_ALLTOALLV, begun, -1, &c);
    const bool in_place = from == MPI_IN_PLACE;
    NAME(send_parts)(c.peers, self(&c), in_place ? counts : nr_sent, in_place ? type : sent);
    NAME(receive_parts)(c.peers, to, counts, displs, type);
    ready_unlock();
    return call;
}

static uint64_t NAME(note_alltoallw)(const void *from, const COUNT *nr_sent,
                                     const MPI_Datatype *sent, void *to, const COUNT *counts,
                                     const DISPLACEMENT *displs, const MPI_Datatype *types,
                                     const struct collecting *begun)
{
    struct zct_comm c;
    const uint64_t call = begin_locked(ZCT_ALLTOALLW, begun, -1, &c);
    const bool in_place = from == MPI_IN_PLACE;
    for (int i = 0; i < c.peers; i++) {
        if (i != self(&c))
            send_run(i, 1,
                     in_place ? zct_bytes_locked(counts[i], types[i])
                              : zct_bytes_locked(nr_sent[i], sent[i]));
        receive_run(i, 1, zct_bytes_locked(counts[i], types[i]),
                    zct_address_locked(to, types[i]) + (uint64_t)displs[i], 0);
    }
    ready_unlock();
    return call;
}

/* How the parts of a neighbourhood collective are given: blocks of one size
 * (counts[0]), blocks at displacements in elements, or all by themselves. */
struct NAME(parts) {
    const COUNT *counts;
    const DISPLACEMENT *displs;
    const MPI_Aint *byte_displs;
    const MPI_Datatype *types;
};

static MPI_Datatype NAME(part_type)(const struct NAME(parts) * p, int i)
{
    return p->types[p->byte_displs ? i : 0];
}

static COUNT NAME(part_count)(const struct NAME(parts) * p, int i)
{
    return p->counts[p->displs || p->byte_displs ? i : 0];
}

static uint64_t NAME(part_offset)(const struct NAME(parts) * p, int i)
{
    if (p->byte_displs)
        return (uint64_t)p->byte_displs[i];
    const int64_t at = p->displs ? (int64_t)p->displs[i] : (int64_t)i * p->counts[0];
    return (uint64_t)(at * zct_extent_locked(p->types[0]));
}

static uint64_t NAME(note_neighbours)(enum zct_kind kind, const struct NAME(parts) * sent, void *to,
                                      const struct NAME(parts) * received,
                                      const struct collecting *begun)
{
    struct zct_comm c;
    struct neighbours n;
    const bool known = neighbours_of(&n, begun->comm);
    const uint64_t call = begin_locked(kind, begun, -1, &c);
    for (int i = 0; known && i < n.nr_dests; i++)
        if (n.dests[i] >= 0 && n.dests[i] != c.rank)
            send_run(n.dests[i], 1,
                     zct_bytes_locked(NAME(part_count)(sent, i), NAME(part_type)(sent, i)));
    for (int i = 0; known && i < n.nr_sources; i++) {
        const MPI_Datatype type = NAME(part_type)(received, i);
        if (n.sources[i] >= 0)
            receive_run(n.sources[i], 1, zct_bytes_locked(NAME(part_count)(received, i), type),
                        zct_address_locked(to, type) + NAME(part_offset)(received, i), 0);
    }
    ready_unlock();
    if (known)
        neighbours_free(&n);
    return call;
}

WRAPPER(NAME(Bcast), NAME(Ibcast),
        (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
        (buffer, count, type, root, comm), NAME(note_bcast)(buffer, count, type, root, &begun))

WRAPPER(NAME(Reduce), NAME(Ireduce),
        (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, int root,
         MPI_Comm comm),
        (from, to, count, type, op, root, comm), NAME(note_reduce)(to, count, type, root, &begun))

WRAPPER(NAME(Allreduce), NAME(Iallreduce),
        (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (from, to, count, type, op, comm), NAME(note_allreduce)(to, count, type, &begun))

WRAPPER(NAME(Reduce_scatter), NAME(Ireduce_scatter),
        (const void *from, void *to, const COUNT counts[], MPI_Datatype type, MPI_Op op,
         MPI_Comm comm),
        (from, to, counts, type, op, comm), NAME(note_reduce_scatter)(to, counts, type, &begun))

WRAPPER(NAME(Reduce_scatter_block), NAME(Ireduce_scatter_block),
        (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (from, to, count, type, op, comm), NAME(note_reduce_scatter_block)(to, count, type, &begun))

WRAPPER(NAME(Scan), NAME(Iscan),
        (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (from, to, count, type, op, comm), NAME(note_scan)(ZCT_SCAN, to, count, type, &begun))

WRAPPER(NAME(Exscan), NAME(Iexscan),
        (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (from, to, count, type, op, comm), NAME(note_scan)(ZCT_EXSCAN, to, count, type, &begun))

WRAPPER(NAME(Gather), NAME(Igather),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
         MPI_Datatype type, int root, MPI_Comm comm),
        (from, nr_sent, sent, to, count, type, root, comm),
        NAME(note_gather)(nr_sent, sent, to, count, type, root, &begun))

WRAPPER(NAME(Gatherv), NAME(Igatherv),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, const COUNT counts[],
         const DISPLACEMENT displs[], MPI_Datatype type, int root, MPI_Comm comm),
        (from, nr_sent, sent, to, counts, displs, type, root, comm),
        NAME(note_gatherv)(nr_sent, sent, to, counts, displs, type, root, &begun))

WRAPPER(NAME(Scatter), NAME(Iscatter),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
         MPI_Datatype type, int root, MPI_Comm comm),
        (from, nr_sent, sent, to, count, type, root, comm),
        NAME(note_scatter)(nr_sent, sent, to, count, type, root, &begun))

WRAPPER(NAME(Scatterv), NAME(Iscatterv),
        (const void *from, const COUNT nr_sent[], const DISPLACEMENT displs[], MPI_Datatype sent,
         void *to, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
        (from, nr_sent, displs, sent, to, count, type, root, comm),
        NAME(note_scatterv)(nr_sent, sent, to, count, type, root, &begun))

WRAPPER(NAME(Allgather), NAME(Iallgather),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
         MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, sent, to, count, type, comm),
        NAME(note_all_blocks)(ZCT_ALLGATHER, from, nr_sent, sent, to, count, type, &begun))

WRAPPER(NAME(Allgatherv), NAME(Iallgatherv),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, const COUNT counts[],
         const DISPLACEMENT displs[], MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, sent, to, counts, displs, type, comm),
        NAME(note_allgatherv)(from, nr_sent, sent, to, counts, displs, type, &begun))

WRAPPER(NAME(Alltoall), NAME(Ialltoall),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
         MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, sent, to, count, type, comm),
        NAME(note_all_blocks)(ZCT_ALLTOALL, from, nr_sent, sent, to, count, type, &begun))

WRAPPER(NAME(Alltoallv), NAME(Ialltoallv),
        (const void *from, const COUNT nr_sent[], const DISPLACEMENT from_displs[],
         MPI_Datatype sent, void *to, const COUNT counts[], const DISPLACEMENT displs[],
         MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, from_displs, sent, to, counts, displs, type, comm),
        NAME(note_alltoallv)(from, nr_sent, sent, to, counts, displs, type, &begun))

WRAPPER(NAME(Alltoallw), NAME(Ialltoallw),
        (const void *from, const COUNT nr_sent[], const DISPLACEMENT from_displs[],
         const MPI_Datatype sent[], void *to, const COUNT counts[], const DISPLACEMENT displs[],
         const MPI_Datatype types[], MPI_Comm comm),
        (from, nr_sent, from_displs, sent, to, counts, displs, types, comm),
        NAME(note_alltoallw)(from, nr_sent, sent, to, counts, displs, types, &begun))

#define PARTS(...) (&(const struct NAME(parts)){__VA_ARGS__})

WRAPPER(NAME(Neighbor_allgather), NAME(Ineighbor_allgather),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
         MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, sent, to, count, type, comm),
        NAME(note_neighbours)(ZCT_NEIGHBOR_ALLGATHER, PARTS(&nr_sent, NULL, NULL, &sent), to,
                              PARTS(&count, NULL, NULL, &type), &begun))

WRAPPER(NAME(Neighbor_allgatherv), NAME(Ineighbor_allgatherv),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, const COUNT counts[],
         const DISPLACEMENT displs[], MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, sent, to, counts, displs, type, comm),
        NAME(note_neighbours)(ZCT_NEIGHBOR_ALLGATHERV, PARTS(&nr_sent, NULL, NULL, &sent), to,
                              PARTS(counts, displs, NULL, &type), &begun))

WRAPPER(NAME(Neighbor_alltoall), NAME(Ineighbor_alltoall),
        (const void *from, COUNT nr_sent, MPI_Datatype sent, void *to, COUNT count,
         MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, sent, to, count, type, comm),
        NAME(note_neighbours)(ZCT_NEIGHBOR_ALLTOALL, PARTS(&nr_sent, NULL, NULL, &sent), to,
                              PARTS(&count, NULL, NULL, &type), &begun))

WRAPPER(NAME(Neighbor_alltoallv), NAME(Ineighbor_alltoallv),
        (const void *from, const COUNT nr_sent[], const DISPLACEMENT from_displs[],
         MPI_Datatype sent, void *to, const COUNT counts[], const DISPLACEMENT displs[],
         MPI_Datatype type, MPI_Comm comm),
        (from, nr_sent, from_displs, sent, to, counts, displs, type, comm),
        NAME(note_neighbours)(ZCT_NEIGHBOR_ALLTOALLV, PARTS(nr_sent, from_displs, NULL, &sent), to,
                              PARTS(counts, displs, NULL, &type), &begun))

WRAPPER(NAME(Neighbor_alltoallw), NAME(Ineighbor_alltoallw),
        (const void *from, const COUNT nr_sent[], const MPI_Aint from_displs[],
         const MPI_Datatype sent[], void *to, const COUNT counts[], const MPI_Aint displs[],
         const MPI_Datatype types[], MPI_Comm comm),
        (from, nr_sent, from_displs, sent, to, counts, displs, types, comm),
        NAME(note_neighbours)(ZCT_NEIGHBOR_ALLTOALLW, PARTS(nr_sent, NULL, from_displs, sent), to,
                              PARTS(counts, NULL, displs, types), &begun))

#undef PARTS

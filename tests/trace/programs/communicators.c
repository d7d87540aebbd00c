/* SPDX-License-Identifier: BSD-3-Clause */
/* Every way to make a communicator: the rows name the right members and sources. */
#include "expect.h"

static int in[256], out[256];
static int tag = 1;

/* Around the ring of an intracommunicator. */
static void ring(MPI_Comm comm)
{
    MPI_Group mine, world;
    int me, n;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    int last = (me + n - 1) % n, last_world;
    MPI_Comm_group(comm, &mine);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(mine, 1, &last, world, &last_world);
    MPI_Sendrecv(out, tag, MPI_INT, (me + 1) % n, tag, in, 256, MPI_INT, last, tag, comm,
                 MPI_STATUS_IGNORE);
    p2p(comm, last_world, tag, 4 * (size_t)tag, in);
    MPI_Allreduce(out, in + 7, 1, MPI_INT, MPI_SUM, comm);
    int zero = 0, first;
    MPI_Group_translate_ranks(mine, 1, &zero, world, &first);
    row(comm, first, -1, 4, in + 7, "allreduce", nr_collectives++);
    MPI_Group_free(&mine);
    MPI_Group_free(&world);
}

static void use(MPI_Comm comm)
{
    ring(comm);
    tag++;
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
}

static void plain(void)
{
    MPI_Comm comm, two;
    MPI_Group world, group;
    MPI_Request request;
    ring(MPI_COMM_SELF);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use(comm);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
    use(comm);
    /* Two with the same members at once, used in the other order. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_idup(MPI_COMM_WORLD, &two, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ring(two);
    ring(comm);
    tag++;
    MPI_Comm_free(&two);
    use(comm);
    /* Ranks reversed. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    use(comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : 3, rank, &comm);
    use(comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    use(comm);
    int first[2] = {1, 0};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, first, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
    use(comm);
    if (rank < 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &comm);
        ring(comm);
        MPI_Comm_free(&comm);
    }
    tag++;
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

static void topologies(void)
{
    MPI_Comm comm, line;
    const int dims[2] = {size / 2, 2}, periods[2] = {1, 0}, keep[2] = {1, 0};
    int neighbours[4], nr = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
    for (int d = 0; d < 2; d++) {
        MPI_Cart_shift(comm, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
        nr += 2;
    }
    MPI_Neighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, comm);
    for (int i = 0; i < nr; i++)
        if (neighbours[i] != MPI_PROC_NULL)
            row(comm, neighbours[i], -1, 8, in + 2 * i, "neighbor_alltoall", nr_collectives);
    nr_collectives++;
    MPI_Cart_sub(comm, keep, &line);
    use(line);
    use(comm);

    int index[64], edges[128];
    for (int i = 0; i < size; i++) {
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
        index[i] = 2 * i + 2;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int i = 0; i < 2; i++)
        row(comm, edges[2 * rank + i], -1, 4, in + i, "neighbor_allgather", nr_collectives);
    nr_collectives++;
    use(comm);

    const int from = (rank + size - 1) % size, to = (rank + 1) % size;
    const int count = 3, displacement = 5;
    const MPI_Aint bytes = 20;
    const MPI_Datatype type = MPI_INT;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    MPI_Neighbor_alltoallv(out, &count, &displacement, type, in, &count, &displacement, type, comm);
    row(comm, from, -1, 12, in + 5, "neighbor_alltoallv", nr_collectives++);
    MPI_Neighbor_alltoallw(out, &count, &bytes, &type, in, &count, &bytes, &type, comm);
    row(comm, from, -1, 12, in + 5, "neighbor_alltoallw", nr_collectives++);
    use(comm);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &count, (int[]){to, to, to}, MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 0, &comm);
    use(comm);
}

/* Halves of the world: each sends to its partner in the other. */
static void inter(void)
{
    MPI_Comm half, both, merged;
    const int low = rank < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 42, &both);
    const int me = low ? rank : rank - size / 2;
    const int partner = low ? rank + size / 2 : me;
    MPI_Sendrecv(out, 11, MPI_INT, me, 3, in, 256, MPI_INT, me, 3, both, MPI_STATUS_IGNORE);
    p2p(both, partner, 3, 44, in);

    const int root = low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    MPI_Bcast(in, 4, MPI_INT, root, both);
    if (!low)
        row(both, 0, -1, 16, in, "bcast", nr_collectives);
    nr_collectives++;
    MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, both);
    for (int i = 0; i < size / 2; i++)
        row(both, low ? size / 2 + i : i, -1, 4, in + i, "allgather", nr_collectives);
    nr_collectives++;
    MPI_Intercomm_merge(both, low, &merged); /* the high half comes first */
    use(merged);
    MPI_Comm_free(&both);
    use(half);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (size % 2)
        MPI_Abort(MPI_COMM_WORLD, 1);
    plain();
    topologies();
    inter();
    end();
    return 0;
}

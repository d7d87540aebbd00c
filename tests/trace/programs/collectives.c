/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective as the point-to-point rows it stands for, blocking and not. */
#include "expect.h"

#define MAX 64
static int in[MAX * 8], out[MAX * MAX];
static int counts[MAX], displs[MAX], byte_displs[MAX];
static MPI_Datatype types[MAX];
#define W MPI_COMM_WORLD

static void rows_of_all(const char *kind, const void *to, int bytes, int c)
{
    for (int i = 0; i < size; i++)
        row(W, i, -1, (size_t)bytes, (const char *)to + i * bytes, kind, c);
}

static void rows_of_parts(const char *kind, int c)
{
    for (int i = 0; i < size; i++)
        row(W, i, -1, 4 * (size_t)counts[i], out + displs[i], kind, c);
}

/* In a function that has nonblocking and request. */
#define DO(name, iname, ...)                                                                       \
    if (nonblocking) {                                                                             \
        MPI_##iname(__VA_ARGS__, &request);                                                        \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                     \
    } else {                                                                                       \
        MPI_##name(__VA_ARGS__);                                                                   \
    }

static void rooted(int nonblocking, int root)
{
    MPI_Request request;
    DO(Bcast, Ibcast, out, 9, MPI_INT, root, W);
    if (rank != root)
        row(W, root, -1, 36, out, "bcast", nr_collectives);
    nr_collectives++;

    DO(Reduce, Ireduce, in, out, 3, MPI_DOUBLE, MPI_SUM, root, W);
    for (int i = 0; i < size && rank == root; i++)
        if (i != root)
            row(W, i, -1, 24, out, "reduce", nr_collectives);
    nr_collectives++;

    DO(Gather, Igather, in, 2, MPI_INT, out, 2, MPI_INT, root, W);
    if (rank == root)
        rows_of_all("gather", out, 8, nr_collectives);
    nr_collectives++;

    DO(Gatherv, Igatherv, in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, root, W);
    if (rank == root)
        rows_of_parts("gatherv", nr_collectives);
    nr_collectives++;

    DO(Scatter, Iscatter, out, 2, MPI_INT, in, 2, MPI_INT, root, W);
    row(W, root, -1, 8, in, "scatter", nr_collectives++);

    DO(Scatterv, Iscatterv, out, counts, displs, MPI_INT, in, counts[rank], MPI_INT, root, W);
    row(W, root, -1, 4 * (size_t)counts[rank], in, "scatterv", nr_collectives++);

    DO(Barrier, Ibarrier, W);
    nr_collectives++;
}

static void for_all(int nonblocking)
{
    MPI_Request request;
    DO(Allreduce, Iallreduce, in, out, 5, MPI_INT, MPI_SUM, W);
    row(W, 0, -1, 20, out, "allreduce", nr_collectives++);

    DO(Allgather, Iallgather, in, 3, MPI_INT, out, 3, MPI_INT, W);
    rows_of_all("allgather", out, 12, nr_collectives++);

    DO(Allgatherv, Iallgatherv, in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, W);
    rows_of_parts("allgatherv", nr_collectives++);

    DO(Alltoall, Ialltoall, in, 1, MPI_INT, out, 1, MPI_INT, W);
    rows_of_all("alltoall", out, 4, nr_collectives++);

    /* The pair (i, j) exchanges i + j + 1 numbers. */
    for (int i = 0; i < size; i++)
        counts[i] = rank + i + 1;
    DO(Alltoallv, Ialltoallv, out, counts, displs, MPI_INT, out + MAX * 16, counts, displs, MPI_INT,
       W);
    for (int i = 0; i < size; i++)
        row(W, i, -1, 4 * (size_t)counts[i], out + MAX * 16 + displs[i], "alltoallv",
            nr_collectives);
    nr_collectives++;

    DO(Alltoallw, Ialltoallw, out, counts, byte_displs, types, out + MAX * 16, counts, byte_displs,
       types, W);
    for (int i = 0; i < size; i++)
        row(W, i, -1, 4 * (size_t)counts[i], out + MAX * 16 + displs[i], "alltoallw",
            nr_collectives);
    nr_collectives++;
    for (int i = 0; i < size; i++)
        counts[i] = i + 1;

    DO(Scan, Iscan, in, out, 2, MPI_INT, MPI_SUM, W);
    if (rank > 0)
        row(W, rank - 1, -1, 8, out, "scan", nr_collectives);
    nr_collectives++;

    DO(Exscan, Iexscan, in, out, 2, MPI_INT, MPI_SUM, W);
    if (rank > 0)
        row(W, rank - 1, -1, 8, out, "exscan", nr_collectives);
    nr_collectives++;

    DO(Reduce_scatter, Ireduce_scatter, in, out, counts, MPI_INT, MPI_SUM, W);
    row(W, 0, -1, 4 * (size_t)counts[rank], out, "reduce_scatter", nr_collectives++);

    DO(Reduce_scatter_block, Ireduce_scatter_block, in, out, 2, MPI_INT, MPI_SUM, W);
    row(W, 0, -1, 8, out, "reduce_scatter_block", nr_collectives++);
}

static void in_place(void)
{
    MPI_Allreduce(MPI_IN_PLACE, out, 5, MPI_INT, MPI_SUM, W);
    row(W, 0, -1, 20, out, "allreduce", nr_collectives++);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 3, MPI_INT, W);
    rows_of_all("allgather", out, 12, nr_collectives++);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 2, MPI_INT, W);
    rows_of_all("alltoall", out, 8, nr_collectives++);
    if (rank == 0)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 2, MPI_INT, 0, W);
    else
        MPI_Gather(in, 2, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, W);
    if (rank == 0)
        rows_of_all("gather", out, 8, nr_collectives);
    nr_collectives++;
    if (rank == 0)
        MPI_Scatter(out, 2, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, W);
    else
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, in, 2, MPI_INT, 0, W);
    if (rank != 0)
        row(W, 0, -1, 8, in, "scatter", nr_collectives);
    nr_collectives++;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        displs[i] = 16 * i;
        byte_displs[i] = 4 * displs[i];
        types[i] = MPI_INT;
    }
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        rooted(nonblocking, 0);
        rooted(nonblocking, size - 1);
        for_all(nonblocking);
    }
    in_place();
    end();
    return 0;
}

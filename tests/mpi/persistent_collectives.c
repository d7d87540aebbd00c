/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A persistent collective starts whatever its request was used for before, and until it
 * starts no rank waits for it.
 */
#include "check.h"

enum { DATA = 2, STARTS = 3, RELICS = 8, MOST_RANKS = 8 };

#if MPI_VERSION >= 4

/* Where the algorithms are others. */
static const int blocks[] = {4, 16, 40000};

struct buffers {
    int *send, *receive; /* a block for each rank */
    int block;           /* elements */
    int root;
    int counts[MOST_RANKS], places[MOST_RANKS], bytes[MOST_RANKS];
    MPI_Datatype type, types[MOST_RANKS];
};

enum which {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    COLLECTIVES
};

static void init(enum which which, struct buffers *b, MPI_Request *request)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    const MPI_Info info = MPI_INFO_NULL;
    const int n = b->block, root = b->root;

    switch (which) {
    case BARRIER:
        MPI_Barrier_init(comm, info, request);
        break;
    case BCAST:
        MPI_Bcast_init(check_rank == root ? b->send : b->receive, n, b->type, root, comm, info,
                       request);
        break;
    case GATHER:
        MPI_Gather_init(b->send, n, b->type, b->receive, n, b->type, root, comm, info, request);
        break;
    case GATHERV:
        MPI_Gatherv_init(b->send, n, b->type, b->receive, b->counts, b->places, b->type, root, comm,
                         info, request);
        break;
    case SCATTER:
        MPI_Scatter_init(b->send, n, b->type, b->receive, n, b->type, root, comm, info, request);
        break;
    case SCATTERV:
        MPI_Scatterv_init(b->send, b->counts, b->places, b->type, b->receive, n, b->type, root,
                          comm, info, request);
        break;
    case ALLGATHER:
        MPI_Allgather_init(b->send, n, b->type, b->receive, n, b->type, comm, info, request);
        break;
    case ALLGATHERV:
        MPI_Allgatherv_init(b->send, n, b->type, b->receive, b->counts, b->places, b->type, comm,
                            info, request);
        break;
    case ALLTOALL:
        MPI_Alltoall_init(b->send, n, b->type, b->receive, n, b->type, comm, info, request);
        break;
    case ALLTOALLV:
        MPI_Alltoallv_init(b->send, b->counts, b->places, b->type, b->receive, b->counts, b->places,
                           b->type, comm, info, request);
        break;
    case ALLTOALLW:
        MPI_Alltoallw_init(b->send, b->counts, b->bytes, b->types, b->receive, b->counts, b->bytes,
                           b->types, comm, info, request);
        break;
    case REDUCE:
        MPI_Reduce_init(b->send, b->receive, n, MPI_INT, MPI_SUM, root, comm, info, request);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init(b->send, b->receive, n, MPI_INT, MPI_SUM, comm, info, request);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_init(b->send, b->receive, b->counts, MPI_INT, MPI_SUM, comm, info,
                                request);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block_init(b->send, b->receive, n, MPI_INT, MPI_SUM, comm, info,
                                      request);
        break;
    case SCAN:
        MPI_Scan_init(b->send, b->receive, n, MPI_INT, MPI_SUM, comm, info, request);
        break;
    default:
        MPI_Exscan_init(b->send, b->receive, n, MPI_INT, MPI_SUM, comm, info, request);
        break;
    }
}

/* What rank @rank has in block @block at the start @start. */
static int given(int rank, int block, int start)
{
    return 1000 * rank + 10 * block + start;
}

static int sum(int ranks, int block, int start)
{
    int s = 0;
    for (int rank = 0; rank < ranks; rank++)
        s += given(rank, block, start);
    return s;
}

static void check_result(enum which which, const struct buffers *b, int start)
{
    const int me = check_rank, n = check_ranks;
    int nr_blocks = 1, want[MOST_RANKS] = {0};

    switch (which) {
    case BARRIER:
        nr_blocks = 0;
        break;
    case BCAST:
        nr_blocks = me != b->root;
        want[0] = given(b->root, 0, start);
        break;
    case GATHER:
    case GATHERV:
    case ALLGATHER:
    case ALLGATHERV:
        nr_blocks = me == b->root || which == ALLGATHER || which == ALLGATHERV ? n : 0;
        for (int i = 0; i < n; i++)
            want[i] = given(i, 0, start);
        break;
    case SCATTER:
    case SCATTERV:
        want[0] = given(b->root, me, start);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        nr_blocks = n;
        for (int i = 0; i < n; i++)
            want[i] = given(i, me, start);
        break;
    case REDUCE:
        nr_blocks = me == b->root;
        want[0] = sum(n, 0, start);
        break;
    case ALLREDUCE:
        want[0] = sum(n, 0, start);
        break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
        want[0] = sum(n, me, start);
        break;
    case SCAN:
        want[0] = sum(me + 1, 0, start);
        break;
    default:
        nr_blocks = me > 0;
        want[0] = sum(me, 0, start);
        break;
    }
    for (int i = 0; i < nr_blocks * b->block; i++)
        CHECK(b->receive[i] == want[i / b->block],
              "collective %d, root %d, blocks of %d, start %d, element %d: %d, not %d", which,
              b->root, b->block, start, i, b->receive[i], want[i / b->block]);
}

/* Unexpected messages of nothing but ones leave them in the requests that they used, and the
 * next requests are those. */
static void leave_relics(void)
{
    const int right = (check_rank + 1) % check_ranks;
    const int left = (check_rank + check_ranks - 1) % check_ranks;
    unsigned char ones[64], room[RELICS][64];
    MPI_Request sent[RELICS], received[RELICS];

    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < RELICS; i++)
        MPI_Isend(ones, sizeof ones, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &sent[i]);
    MPI_Waitall(RELICS, sent, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < RELICS; i++)
        MPI_Irecv(room[i], sizeof room[i], MPI_BYTE, left, DATA, MPI_COMM_WORLD, &received[i]);
    MPI_Waitall(RELICS, received, MPI_STATUSES_IGNORE);
}

static void check_empty(const MPI_Status *status, const char *what)
{
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0,
          "%s of what has not started: source %d, tag %d, %d bytes", what, status->MPI_SOURCE,
          status->MPI_TAG, count);
}

/* @inactive has not started, or not again: no rank waits for it, and none takes it. */
static void check_inactive(MPI_Request inactive)
{
    MPI_Status status, statuses[2];
    int done = 0, index = -1, value = 0, many = -1, indices[2];
    MPI_Request requests[2] = {inactive, MPI_REQUEST_NULL};

    MPI_Wait(&requests[0], &status);
    check_empty(&status, "MPI_Wait");
    MPI_Test(&requests[0], &done, &status);
    CHECK(done, "MPI_Test has something to wait for");
    check_empty(&status, "MPI_Test");
    MPI_Request_get_status(requests[0], &done, &status);
    CHECK(done, "MPI_Request_get_status has something to wait for");
    MPI_Waitall(2, requests, statuses);
    check_empty(&statuses[0], "MPI_Waitall");
    MPI_Waitany(2, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany of nothing active: %d", index);
    MPI_Testany(2, requests, &index, &done, &status);
    CHECK(done && index == MPI_UNDEFINED, "MPI_Testany of nothing active: %d", index);
    MPI_Waitsome(2, requests, &many, indices, statuses);
    CHECK(many == MPI_UNDEFINED, "MPI_Waitsome of nothing active: %d", many);
    MPI_Testsome(2, requests, &many, indices, statuses);
    CHECK(many == MPI_UNDEFINED, "MPI_Testsome of nothing active: %d", many);

    MPI_Irecv(&value, 1, MPI_INT, check_rank, DATA, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(&check_rank, 1, MPI_INT, check_rank, DATA, MPI_COMM_WORLD);
    MPI_Waitany(2, requests, &index, &status);
    CHECK(index == 1 && value == check_rank, "MPI_Waitany took %d", index);
    CHECK(requests[0] == inactive, "the request is gone");
}

static void repeat(enum which which, struct buffers *b)
{
    MPI_Request request;

    leave_relics();
    MPI_Type_contiguous(1, MPI_INT, &b->type);
    MPI_Type_commit(&b->type);
    for (int i = 0; i < MOST_RANKS; i++) {
        b->counts[i] = b->block;
        b->places[i] = i * b->block;
        b->bytes[i] = i * b->block * (int)sizeof(int);
        b->types[i] = b->type;
    }
    init(which, b, &request);
    MPI_Type_free(&b->type);
    check_inactive(request);
    for (int start = 0; start < STARTS; start++) {
        MPI_Request before = request;
        for (int i = 0; i < check_ranks * b->block; i++) {
            b->send[i] = given(check_rank, i / b->block, start);
            b->receive[i] = -1;
        }
        if (start % 2)
            MPI_Startall(1, &request);
        else
            MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request == before, "the request is gone");
        check_result(which, b, start);
        check_inactive(request);
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks <= MOST_RANKS, "%d ranks, more than %d", check_ranks, MOST_RANKS);
    for (size_t size = 0; size < sizeof blocks / sizeof blocks[0]; size++) {
        const size_t bytes = (size_t)(check_ranks * blocks[size]) * sizeof(int);
        struct buffers b = {
            .send = check_malloc(bytes),
            .receive = check_malloc(bytes),
            .block = blocks[size],
        };
        for (int which = 0; which < COLLECTIVES; which++) {
            b.root = 0;
            repeat(which, &b);
            b.root = check_ranks - 1;
            repeat(which, &b);
        }
        free(b.send);
        free(b.receive);
    }
    return check_finish();
}

#else

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    check_skip("persistent collectives came with MPI 4");
}

#endif

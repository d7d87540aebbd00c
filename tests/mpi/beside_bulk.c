/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beside_bulk word|answer: what does not have to wait while megabytes go the same way.
 *
 *   word    a short message overtakes the data of a large one that was sent before it
 *   answer  a large message comes although a larger one goes the other way: what fetches it
 *           does not wait behind that
 *
 * What has overtaken is told by order, not by time: the larger one is still on its way.
 */
#include "check.h"
#include "counter.h"

enum { LARGE = 1, WORD = 2, BACK = 3, ROUNDS = 20, IN_TIME = 4 };

static const size_t large = 256 * MIB, back = MIB;

/* The larger message goes from rank 1 to rank 0, which has posted its receive. */
static MPI_Request start(char *buf)
{
    MPI_Request request;
    if (check_rank == 0)
        MPI_Irecv(buf, (int)large, MPI_BYTE, 1, LARGE, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 1)
        MPI_Isend(buf, (int)large, MPI_BYTE, 0, LARGE, MPI_COMM_WORLD, &request);
    return request;
}

static int is_complete(MPI_Request *request)
{
    int flag = 0;
    MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int word(MPI_Request *request, MPI_Comm other)
{
    uint64_t said = 0;
    if (check_rank == 1) {
        said = check_seed;
        MPI_Send(&said, 1, MPI_UINT64_T, 0, WORD, other);
        return 0;
    }
    MPI_Recv(&said, 1, MPI_UINT64_T, 1, WORD, other, MPI_STATUS_IGNORE);
    CHECK(said == check_seed, "%llu", (unsigned long long)said);
    return is_complete(request);
}

static int answer(MPI_Request *request, char *buf, uint64_t seed)
{
    if (check_rank == 0) {
        pattern_fill(buf, back, seed);
        MPI_Send(buf, (int)back, MPI_BYTE, 1, BACK, MPI_COMM_WORLD);
        return 0;
    }
    MPI_Recv(buf, (int)back, MPI_BYTE, 0, BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int late = is_complete(request);
    check_content(buf, back, seed, "message against the stream");
    return late;
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 2, "beside_bulk word|answer");
    char *buf = check_malloc(large), *small = check_malloc(back);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    const struct counter apart = counter_open("bulk_endpoints");
    int late = 0, rounds = 0, in_time = 0;
    for (uint64_t i = 0; i < ROUNDS && in_time < IN_TIME; i++) {
        if (check_rank == 1)
            pattern_fill(buf, large, check_seed + i);
        MPI_Request request = start(buf);
        int behind = strcmp(argv[1], "word") == 0 ? word(&request, other)
                                                  : answer(&request, small, check_seed ^ i);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &behind, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        late += behind;
        in_time += !behind;
        rounds++;
        if (check_rank == 0)
            check_content(buf, large, check_seed + i, "large message");
    }
    /* The first round makes the connections, and a process that does not run for a while, as
     * there are others, is late. */
    CHECK(in_time == IN_TIME, "%d of %d came behind the large message", late, rounds);
    if (check_rank == 1)
        CHECK(counter_read(&apart) > 0, "no connection for bulk");
    printf("rank %d: %d late of %d\n", check_rank, late, rounds);
    free(buf);
    free(small);
    MPI_Comm_free(&other);
    return check_finish();
}

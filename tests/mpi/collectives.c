/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of large contributions, with ranks late at random, give every
 * rank the right bytes.
 */
#include "check.h"

static uint64_t state;
static const size_t block = 384 * 1024 + 24;

static uint64_t seed_of(int round, int from, int to)
{
    return check_seed + (uint64_t)((round * 64 + from) * 64 + to);
}

/* One rank, the same on all, comes late. */
static void be_late(void)
{
    int late = (int)check_random(&state, (uint64_t)check_ranks);
    if (late == check_rank)
        check_sleep_ms(15);
}

static void bcast(int round, char *buf)
{
    const int root = round % check_ranks;
    const size_t bytes = 3 * MIB + (size_t)round;
    if (check_rank == root)
        pattern_fill(buf, bytes, seed_of(round, root, 0));
    be_late();
    MPI_Bcast(buf, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    check_content(buf, bytes, seed_of(round, root, 0), "bcast");
}

static void allreduce(int round)
{
    const int count = 300000;
    double *mine = check_malloc((size_t)count * sizeof *mine);
    double *sum = check_malloc((size_t)count * sizeof *sum);
    for (int i = 0; i < count; i++)
        mine[i] = (double)(check_rank + 1) * (i % 1000 + round);
    be_late();
    MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double all = check_ranks * (check_ranks + 1) / 2.0;
    for (int i = 0; i < count; i++)
        CHECK(sum[i] == all * (i % 1000 + round), "allreduce: element %d is %g", i, sum[i]);
    free(mine);
    free(sum);
}

static void alltoall(int round, char *out, char *in)
{
    for (int to = 0; to < check_ranks; to++)
        pattern_fill(out + (size_t)to * block, block, seed_of(round, check_rank, to));
    be_late();
    MPI_Alltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < check_ranks; from++)
        check_content(in + (size_t)from * block, block, seed_of(round, from, check_rank),
                      "alltoall");
}

static void allgatherv(int round, char *out, char *in)
{
    int counts[64], places[64], end = 0;
    for (int i = 0; i < check_ranks; i++) {
        counts[i] = i == 1 ? 0 : (int)block - 1000 * i;
        places[i] = end;
        end += counts[i] + 64;
    }
    pattern_fill(out, (size_t)counts[check_rank], seed_of(round, check_rank, 1));
    be_late();
    MPI_Allgatherv(out, counts[check_rank], MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < check_ranks; i++)
        check_content(in + places[i], (size_t)counts[i], seed_of(round, i, 1), "allgatherv");
}

static void gather_scatter(int round, char *out, char *in)
{
    const int root = (round + 1) % check_ranks;
    pattern_fill(out, block, seed_of(round, check_rank, 2));
    be_late();
    MPI_Gather(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int i = 0; check_rank == root && i < check_ranks; i++)
        check_content(in + (size_t)i * block, block, seed_of(round, i, 2), "gather");
    memset(out, 0, block);
    MPI_Scatter(in, (int)block, MPI_BYTE, out, (int)block, MPI_BYTE, root, MPI_COMM_WORLD);
    check_content(out, block, seed_of(round, check_rank, 2), "scatter");
}

static void ibcast_beside_messages(int round, char *buf, char *in)
{
    const int right = (check_rank + 1) % check_ranks;
    const int left = (check_rank + check_ranks - 1) % check_ranks;
    MPI_Request request[2];
    char *out = check_malloc(block);
    if (check_rank == 0)
        pattern_fill(buf, MIB, seed_of(round, 0, 3));
    pattern_fill(out, block, seed_of(round, check_rank, 4));
    MPI_Ibcast(buf, (int)MIB, MPI_BYTE, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(out, (int)block, MPI_BYTE, right, round, MPI_COMM_WORLD, &request[1]);
    be_late();
    MPI_Recv(in, (int)block, MPI_BYTE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    check_content(buf, MIB, seed_of(round, 0, 3), "ibcast");
    check_content(in, block, seed_of(round, left, 4), "message beside an ibcast");
    free(out);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks <= 64, "at most 64 ranks");
    state = check_seed;
    const size_t all = (size_t)check_ranks * (block + 64) + 4 * MIB;
    char *out = check_malloc(all), *in = check_malloc(all);
    for (int round = 0; round < 6; round++) {
        bcast(round, in);
        allreduce(round);
        alltoall(round, out, in);
        allgatherv(round, out, in);
        gather_scatter(round, out, in);
        ibcast_beside_messages(round, out, in);
    }
    free(out);
    free(in);
    return check_finish();
}

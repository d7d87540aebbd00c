/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many ranks: everyone sends a large message to everyone, late at random, by
 * MPI_Alltoall and by hand in a different order on each rank.
 */
#include "check.h"

enum { MAX_RANKS = 64 };

static uint64_t seed_of(int round, int from, int to)
{
    return check_seed + (uint64_t)((round * MAX_RANKS + from) * MAX_RANKS + to);
}

static void by_hand(int round, size_t block, char *out, char *in)
{
    MPI_Request request[MAX_RANKS];
    for (int i = 0; i < check_ranks; i++) {
        int to = (check_rank + i) % check_ranks;
        MPI_Isend(out + (size_t)to * block, (int)block, MPI_BYTE, to, round, MPI_COMM_WORLD,
                  &request[i]);
    }
    check_sleep_ms((check_rank * 7 + round * 3) % 20);
    for (int i = 0; i < check_ranks; i++) {
        int from = (check_rank * 3 + i) % check_ranks;
        MPI_Recv(in + (size_t)from * block, (int)block, MPI_BYTE, from, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    MPI_Waitall(check_ranks, request, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks <= MAX_RANKS, "at most %d ranks", MAX_RANKS);
    const size_t block = 256 * KIB;
    char *out = check_malloc((size_t)check_ranks * block);
    char *in = check_malloc((size_t)check_ranks * block);
    for (int round = 0; round < 6; round++) {
        for (int to = 0; to < check_ranks; to++)
            pattern_fill(out + (size_t)to * block, block, seed_of(round, check_rank, to));
        if (round % 2)
            by_hand(round, block, out, in);
        else
            MPI_Alltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < check_ranks; from++)
            check_content(in + (size_t)from * block, block, seed_of(round, from, check_rank),
                          "block");
    }
    free(out);
    free(in);
    return check_finish();
}

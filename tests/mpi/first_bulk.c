/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * first_bulk up|down|both WHAT: when connections for bulk are made, where UCX carries it.
 *
 *   up, down, both   rank 0 sends to rank 1, rank 1 to rank 0, or each to the other
 *
 *   shares   what is announced up to 4 MiB makes none, and the next message does
 *   large    the first message is larger than that, and makes them
 *   apart    with BULK_APART=1, any first message makes them
 *   burst    many are announced at once, so that they are made while messages share the connection
 *            that there is; short ones between them keep their places
 */
#include "check.h"
#include "counter.h"

enum { SHARED = 4, AFTER = 8, BURST = 24, TAG = 1 };

static int sends, receives;
static char *out, *in;

/* @late: the receive is posted when the message has been announced. */
static void exchange(int count, size_t bytes, int late)
{
    for (int i = 0; i < count; i++) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        const uint64_t seed = check_seed + (uint64_t)(2 * i);
        if (sends) {
            pattern_fill(out, bytes, seed + (uint64_t)check_rank);
            MPI_Isend(out, (int)bytes, MPI_BYTE, !check_rank, TAG, MPI_COMM_WORLD, &requests[0]);
        }
        if (receives && late)
            MPI_Probe(!check_rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (receives)
            MPI_Irecv(in, (int)bytes, MPI_BYTE, !check_rank, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (receives)
            check_content(in, bytes, seed + (uint64_t)!check_rank, "message");
    }
}

/* Rank 1 sends a third of what rank 0 does. Each large message is followed by its number, with the
 * same tag. */
static void burst(void)
{
    const int mine = sends ? (check_rank == 0 ? BURST : BURST / 3) : 0;
    const int others = receives ? (check_rank == 1 ? BURST : BURST / 3) : 0;
    MPI_Request requests[2 * BURST];
    int numbers[BURST];
    for (int i = 0; i < mine; i++) {
        char *at = out + (size_t)i * MIB;
        numbers[i] = i;
        pattern_fill(at, MIB, check_seed + (uint64_t)(2 * i + check_rank));
        MPI_Isend(at, (int)MIB, MPI_BYTE, !check_rank, TAG, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(&numbers[i], 1, MPI_INT, !check_rank, TAG, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    for (int i = 0; i < others; i++) {
        int number = -1;
        MPI_Recv(in, (int)MIB, MPI_BYTE, !check_rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_content(in, MIB, check_seed + (uint64_t)(2 * i + !check_rank), "message of many");
        MPI_Recv(&number, 1, MPI_INT, !check_rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(number == i, "number %d at place %d", number, i);
    }
    MPI_Waitall(2 * mine, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 3 && check_ranks == 2, "first_bulk up|down|both shares|large|apart|burst");
    const int both = strcmp(argv[1], "both") == 0;
    sends = both || check_rank == (strcmp(argv[1], "down") == 0);
    receives = both || !sends;
    out = check_malloc(BURST * MIB);
    in = check_malloc(2 * SHARED * MIB);

    const struct counter bulk = counter_open("bulk_endpoints");
    const size_t bytes = strcmp(argv[2], "large") == 0 ? SHARED * MIB + 1 : MIB;
    if (strcmp(argv[2], "shares") == 0) {
        exchange(SHARED / 2, MIB, 0);
        exchange(SHARED / 2, MIB, 1);
        CHECK(counter_read(&bulk) == 0, "%llu connections for the first %d MiB",
              counter_read(&bulk), SHARED);
        MPI_Barrier(MPI_COMM_WORLD); /* no rank announces more before both have looked */
    }
    if (strcmp(argv[2], "burst") == 0)
        burst();
    else
        exchange(1, bytes, 0);
    const unsigned long long made = counter_read(&bulk);
    CHECK(made > 0, "no connection for bulk");
    exchange(AFTER, bytes, 0);
    exchange(AFTER, bytes, 1);
    CHECK(counter_read(&bulk) == made, "%llu connections, and then %llu", made,
          counter_read(&bulk));
    printf("rank %d: %llu connections for bulk\n", check_rank, made);
    free(out);
    free(in);
    return check_finish();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process sends itself a message while it handles one of another process that it keeps.
 *
 * Rank 1 has the lock of rank 0's window, which rank 0 waits for, too. Behind a large message, over
 * the connection for bulk, rank 1 announces a second one; the end of its lock overtakes that. So
 * rank 0 handles both at once: it keeps the announcement, whose receive is not posted, and then
 * tells itself that the window is its own. UCX hands a process its own messages while they are
 * being sent.
 */
#include "check.h"
#include "counter.h"

enum { LARGE = 1, LATE = 2, WORD = 3, ROUNDS = 8, WORDS = 4 };

static const size_t large = 128 * MIB, late = MIB;

/* Back and forth, until the data of the large message is on its way. */
static void exchange_words(void)
{
    for (int i = 0; i < WORDS; i++) {
        int word = i;
        if (check_rank == 1)
            MPI_Send(&word, 1, MPI_INT, 0, WORD, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, 1 - check_rank, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (check_rank == 0)
            MPI_Send(&word, 1, MPI_INT, 1, WORD, MPI_COMM_WORLD);
    }
}

static void hold_and_send(MPI_Win window, const char *first, const char *second)
{
    MPI_Request requests[2];

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(first, (int)large, MPI_BYTE, 0, LARGE, MPI_COMM_WORLD, &requests[0]);
    exchange_words();
    MPI_Isend(second, (int)late, MPI_BYTE, 0, LATE, MPI_COMM_WORLD, &requests[1]);
    MPI_Win_unlock(0, window);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void wait_and_receive(MPI_Win window, char *first, char *second)
{
    MPI_Request request;

    MPI_Irecv(first, (int)large, MPI_BYTE, 1, LARGE, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    exchange_words();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Win_unlock(0, window);
    MPI_Recv(second, (int)late, MPI_BYTE, 1, LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    char *first = check_malloc(large), *second = check_malloc(late);
    int64_t word = 0;
    MPI_Win window;
    MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    const struct counter reordered = counter_open("reordered");

    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (check_rank == 1) {
            pattern_fill(first, large, check_seed + i);
            pattern_fill(second, late, ~check_seed + i);
            hold_and_send(window, first, second);
        } else if (check_rank == 0) {
            wait_and_receive(window, first, second);
            check_content(first, large, check_seed + i, "large message");
            check_content(second, late, ~check_seed + i, "message that waited");
        }
    }
    if (check_rank == 0)
        CHECK(counter_read(&reordered) > 0, "nothing has overtaken anything");
    MPI_Win_free(&window);
    free(first);
    free(second);
    return check_finish();
}

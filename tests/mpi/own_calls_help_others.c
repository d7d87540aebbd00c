/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that only looks after its own affairs (MPI_COMM_SELF) makes progress for
 * others: rank 0 sends it a large message, which only ends when rank 1 takes it, and
 * rank 1 asks for messages to itself that do not come. No landing thread (suite.py).
 */
#include "check.h"

/* Each way has a size of its own: the first message of a size lands, whatever is faster. */
enum { LEAST = 1 << 20, TAG = 5, WAYS = 4 };
static const double SENT_S = 3, ALONE_S = 5;
static const char *const ways[WAYS] = {"MPI_Iprobe", "MPI_Improbe", "MPI_Test",
                                       "MPI_Request_get_status"};

static void ask_oneself(int way)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    int flag = 0, value;
    const double start = MPI_Wtime();

    if (way >= 2)
        MPI_Irecv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
    while (MPI_Wtime() - start < ALONE_S) {
        switch (way) {
        case 0:
            MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Improbe(0, TAG, MPI_COMM_SELF, &flag, &message, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            break;
        case 3:
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
            break;
        }
        CHECK(!flag, "%s found a message that was not sent", ways[way]);
        check_sleep_ms(1);
    }
    if (way >= 2) {
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    char *buf = check_malloc((size_t)LEAST << WAYS);
    for (int way = 0; way < WAYS; way++) {
        const int bytes = LEAST << way;
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            const double start = MPI_Wtime();
            pattern_fill(buf, (size_t)bytes, check_seed + (uint64_t)way);
            MPI_Send(buf, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            const double seconds = MPI_Wtime() - start;
            CHECK(seconds < SENT_S, "sent after %.1f s while the receiver was in %s", seconds,
                  ways[way]);
        } else if (check_rank == 1) {
            ask_oneself(way);
            MPI_Recv(buf, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, (size_t)bytes, check_seed + (uint64_t)way,
                          "message landed meanwhile");
        }
    }
    free(buf);
    return check_finish();
}

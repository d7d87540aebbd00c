/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A synchronous send does not complete before its receive is posted, even when
 * the data has landed long before; afterwards it does.
 */
#include "check.h"

enum { GO = 1, DATA = 2, LATE_MS = 300, WATCH_MS = 200 };

static void watch(MPI_Request *request, size_t bytes)
{
    double end = MPI_Wtime() + WATCH_MS * 1e-3;
    int done = 0;
    while (MPI_Wtime() < end) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        CHECK(!done, "synchronous send of %zu bytes completed before the match", bytes);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void send_nonblocking(void *buf, size_t bytes)
{
    MPI_Request request;
    MPI_Issend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    watch(&request, bytes);
}

static void send_persistent(void *buf, size_t bytes)
{
    MPI_Request request;
    MPI_Ssend_init(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    watch(&request, bytes);
    MPI_Request_free(&request);
}

static void send_blocking(void *buf, size_t bytes)
{
    double begin = MPI_Wtime();
    MPI_Ssend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    double ms = (MPI_Wtime() - begin) * 1e3;
    CHECK(ms > WATCH_MS, "MPI_Ssend of %zu bytes came back after %.0f ms, before the match", bytes,
          ms);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8, 4000, 65536, 8 << 20};
    static void (*const ways[])(void *, size_t) = {send_nonblocking, send_blocking,
                                                   send_persistent};
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int s = 0; s < 4; s++) {
        for (int way = 0; way < 3; way++) {
            const size_t bytes = sizes[s];
            const uint64_t seed = check_seed + (uint64_t)(s * 3 + way);
            char *buf = check_malloc(bytes);
            if (check_rank == 0) {
                MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
                check_sleep_ms(LATE_MS);
                /* Inside MPI, but not matching: completion must still wait. */
                int found = 0;
                MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
                MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                check_content(buf, bytes, seed, "synchronous message");
            } else if (check_rank == 1) {
                pattern_fill(buf, bytes, seed);
                MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                ways[way](buf, bytes);
            }
            free(buf);
        }
    }
    return check_finish();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A synchronous send does not complete before its receive is posted, even when
 * the data has landed long before; afterwards it does.
 */
#include "check.h"

enum { GO = 1, DATA = 2, POSTED = 3, LATE_MS = 300, WATCH_MS = 200 };

/* Of the clock that all processes of this machine have. */
static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Tested at first, then waited for. */
static void watch(MPI_Request *request)
{
    const double end = now_s() + WATCH_MS * 1e-3;
    int done = 0;
    while (!done && now_s() < end)
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void send_nonblocking(void *buf, size_t bytes)
{
    MPI_Request request;
    MPI_Issend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    watch(&request);
}

static void send_persistent(void *buf, size_t bytes)
{
    MPI_Request request;
    MPI_Ssend_init(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    watch(&request);
    MPI_Request_free(&request);
}

static void send_blocking(void *buf, size_t bytes)
{
    MPI_Ssend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
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
            double posted = 0;
            if (check_rank == 0) {
                MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
                check_sleep_ms(LATE_MS);
                /* Inside MPI, but not matching: completion must still wait. */
                int found = 0;
                MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
                posted = now_s();
                MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                check_content(buf, bytes, seed, "synchronous message");
                MPI_Send(&posted, 1, MPI_DOUBLE, 1, POSTED, MPI_COMM_WORLD);
            } else if (check_rank == 1) {
                pattern_fill(buf, bytes, seed);
                MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                ways[way](buf, bytes);
                const double ended = now_s();
                MPI_Recv(&posted, 1, MPI_DOUBLE, 0, POSTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(ended >= posted,
                      "synchronous send of %zu bytes completed %.0f ms before the match", bytes,
                      (posted - ended) * 1e3);
            }
            free(buf);
        }
    }
    return check_finish();
}

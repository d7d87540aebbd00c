/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent requests carry new content each time they are started, in order,
 * with an early and a late receiver.
 */
#include "check.h"

enum { GO = 1, DATA = 2, REQUESTS = 5, STARTS = 12 };
static const size_t sizes[REQUESTS] = {8, 65536, 1 << 20, 300001, 4 << 20};

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    struct guarded g[REQUESTS];
    MPI_Request request[REQUESTS];
    const int peer = 1 - check_rank;
    for (int i = 0; i < REQUESTS; i++) {
        const int count = (int)sizes[i];
        g[i] = guarded_make(sizes[i], 16);
        if (check_rank == 0)
            MPI_Recv_init(g[i].at, count, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &request[i]);
        else if (i % 2)
            MPI_Ssend_init(g[i].at, count, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Send_init(g[i].at, count, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &request[i]);
    }
    for (int start = 0; start < STARTS; start++) {
        const uint64_t seed = check_seed + (uint64_t)(start * REQUESTS);
        if (check_rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, peer, GO, MPI_COMM_WORLD);
            if (start % 2)
                check_sleep_ms(20);
        } else {
            for (int i = 0; i < REQUESTS; i++)
                pattern_fill(g[i].at, sizes[i], seed + (uint64_t)i);
            MPI_Recv(NULL, 0, MPI_BYTE, peer, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Startall(REQUESTS, request);
        MPI_Waitall(REQUESTS, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < REQUESTS; i++) {
            check_content(g[i].at, sizes[i], seed + (uint64_t)i, "persistent message");
            guarded_check(&g[i], "persistent message");
        }
    }
    for (int i = 0; i < REQUESTS; i++) {
        MPI_Request_free(&request[i]);
        guarded_free(&g[i]);
    }
    return check_finish();
}

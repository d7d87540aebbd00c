/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User memory does not change before the match: after a training that makes the
 * prediction certain, the receiver watches its buffer while a message for it
 * lies landed, and finds every byte as it was until it posts the receive.
 */
#include "check.h"

enum { GO = 1, DATA = 2, TRAINING = 10, WATCHED = 8, WATCH_MS = 60 };
static const size_t bytes = 2 << 20;

static void watch(struct guarded *g, uint64_t seed)
{
    double end = MPI_Wtime() + WATCH_MS * 1e-3;
    int rounds = 0;
    while (MPI_Wtime() < end) {
        check_content(g->at, bytes, seed, "memory before its receive was posted");
        guarded_check(g, "memory before its receive was posted");
        /* Inside MPI, where a landed message is seen, but without a match. */
        if (rounds++ % 2) {
            int found;
            MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    struct guarded g = guarded_make(bytes, 16);
    for (int i = 0; i < TRAINING + WATCHED; i++) {
        const uint64_t seed = check_seed + (uint64_t)i;
        if (check_rank == 0) {
            const uint64_t own = ~seed;
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            pattern_fill(g.at, bytes, own);
            if (i < TRAINING)
                check_sleep_ms(10);
            else
                watch(&g, own);
            MPI_Recv(g.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(g.at, bytes, seed, "message");
            guarded_check(&g, "message");
        } else if (check_rank == 1) {
            pattern_fill(g.at, bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(g.at, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        }
    }
    guarded_free(&g);
    return check_finish();
}

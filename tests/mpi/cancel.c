/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive cancelled before anything arrived takes no message: its buffer
 * stays as it was and the message goes to the next receive. A receive cancelled
 * after the message came either took it or left it whole for the next.
 */
#include "check.h"

enum { GO = 1, DATA = 2 };

static void expect_untouched(const struct guarded *g)
{
    for (size_t i = 0; i < g->bytes; i++)
        CHECK(g->at[i] == 0xa5, "byte %zu of a cancelled receive's buffer changed", i);
    guarded_check(g, "cancelled receive");
}

static void cancel_before_arrival(size_t bytes, uint64_t seed)
{
    struct guarded first = guarded_make(bytes, 16), second = guarded_make(bytes, 16);
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(first.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled, "nothing had been sent, yet the receive was not cancelled");
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    check_sleep_ms(10);
    MPI_Recv(second.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &status);
    check_content(second.at, bytes, seed, "message after a cancelled receive");
    guarded_check(&second, "message after a cancelled receive");
    expect_untouched(&first);
    guarded_free(&first);
    guarded_free(&second);
}

static void cancel_after_arrival(size_t bytes, uint64_t seed)
{
    struct guarded first = guarded_make(bytes, 16), second = guarded_make(bytes, 16);
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    check_sleep_ms(20);
    MPI_Irecv(first.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) {
        MPI_Recv(second.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &status);
        check_content(second.at, bytes, seed, "message a cancelled receive left");
        expect_untouched(&first);
    } else {
        check_content(first.at, bytes, seed, "message of a receive too late to cancel");
        guarded_check(&first, "message of a receive too late to cancel");
    }
    guarded_free(&first);
    guarded_free(&second);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {100, 65536, 1 << 20, 4 << 20};
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 24; i++) {
        const size_t bytes = sizes[i % 4];
        const uint64_t seed = check_seed + (uint64_t)i;
        if (check_rank == 0) {
            (i / 4 % 2 ? cancel_after_arrival : cancel_before_arrival)(bytes, seed);
        } else if (check_rank == 1) {
            char *buf = check_malloc(bytes);
            pattern_fill(buf, bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
            free(buf);
        }
    }
    return check_finish();
}

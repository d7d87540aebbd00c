/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive cancelled before anything arrived takes no message: its buffer
 * stays as it was and the message goes to the next receive. A receive cancelled
 * after the message came either took it or left it whole for the next. A send
 * cancelled before its receive is posted comes whole or not at all.
 */
#include "check.h"

enum { GO = 1, DATA = 2, OUTCOME = 3 };

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

/* Whether it is cancelled is known when it is complete, which for one that is held may be when it
 * is received; so it is asked for and told last. */
static void send_and_cancel(size_t bytes, uint64_t seed)
{
    char *buf = check_malloc(bytes);
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    pattern_fill(buf, bytes, seed);
    MPI_Isend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    /* Behind it, and received before it. */
    MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Send(&cancelled, 1, MPI_INT, 0, OUTCOME, MPI_COMM_WORLD);
    free(buf);
}

static void receive_cancelled(size_t bytes, uint64_t seed)
{
    struct guarded in = guarded_make(bytes, 16);
    int there = 0, cancelled = 0;
    MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (there)
        MPI_Recv(in.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&cancelled, 1, MPI_INT, 1, OUTCOME, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(there == !cancelled, "a send %s, and its message %s",
          cancelled ? "was cancelled" : "was not", there ? "was there" : "was not");
    if (there) {
        check_content(in.at, bytes, seed, "message of a send too late to cancel");
        guarded_check(&in, "message of a send too late to cancel");
        MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        CHECK(!there, "it came twice");
    } else {
        expect_untouched(&in);
    }
    guarded_free(&in);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {100, 300, 4000, 65536, 1 << 20, 4 << 20};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 6 * SIZES; i++) {
        const size_t bytes = sizes[i % SIZES];
        const uint64_t seed = check_seed + (uint64_t)i;
        if (check_rank == 0) {
            (i / SIZES % 2 ? cancel_after_arrival : cancel_before_arrival)(bytes, seed);
        } else if (check_rank == 1) {
            char *buf = check_malloc(bytes);
            pattern_fill(buf, bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
            free(buf);
        }
    }
    for (int i = 0; i < 3 * SIZES; i++) {
        const size_t bytes = sizes[i % SIZES];
        const uint64_t seed = check_seed + 1000 + (uint64_t)i;
        if (check_rank == 0)
            receive_cancelled(bytes, seed);
        else if (check_rank == 1)
            send_and_cancel(bytes, seed);
        /* What comes now is of this one. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return check_finish();
}

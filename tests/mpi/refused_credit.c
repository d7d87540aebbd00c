/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short message that UCX refuses to take costs no credit of flow control: neither what was paid
 * for it, nor what it would have told its receiver of.
 *
 *   refused_credit single   messages that leave by themselves
 *   refused_credit burst    messages that wait for each other; environment: they do
 *
 * After refusals of several times what both windows hold, messages that wait to be received are
 * still sent with their data. Environment: a small budget for these. This program stands before
 * one of UCX's functions, which the library calls here, not there.
 */
#include "counter.h"
#include <dlfcn.h>

enum { ROUNDS = 60, MESSAGES = 8, BYTES = 2000, BURST = 24, GO = 1, DATA = 2, LOST = 3 };

static int refusing, refused;

void *ucp_am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                      const void *buffer, size_t count, const void *param)
{
    void *(*next)(void *, unsigned, const void *, size_t, const void *, size_t, const void *);
    *(void **)&next = dlsym(RTLD_NEXT, "ucp_am_send_nbx");
    if (__atomic_load_n(&refusing, __ATOMIC_RELAXED)) {
        refused = 1;
        return (void *)(intptr_t)-4; /* what UCX returns for UCS_ERR_NO_MEMORY */
    }
    return next(ep, id, header, header_length, buffer, count, param);
}

static void refuse(int on)
{
    __atomic_store_n(&refusing, on, __ATOMIC_RELAXED);
}

/* From the other rank; those with data wait to be received until the last is there. */
static void receive_late(int from, uint64_t seed)
{
    char in[BYTES];
    MPI_Recv(NULL, 0, MPI_BYTE, from, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(in, BYTES, MPI_BYTE, from, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_content(in, BYTES, seed + (uint64_t)i, "message that waited");
    }
}

static void send_all(int to, uint64_t seed)
{
    char out[BYTES];
    for (int i = 0; i < MESSAGES; i++) {
        pattern_fill(out, BYTES, seed + (uint64_t)i);
        CHECK(MPI_Send(out, BYTES, MPI_BYTE, to, DATA, MPI_COMM_WORLD) == MPI_SUCCESS,
              "message %d is not sent", i);
    }
    MPI_Send(NULL, 0, MPI_BYTE, to, GO, MPI_COMM_WORLD);
}

/* It tells rank 1 of credit, and is refused. */
static void lose_one(void)
{
    refuse(1);
    const int error = MPI_Send(NULL, 0, MPI_BYTE, 1, LOST, MPI_COMM_WORLD);
    refuse(0);
    CHECK(error != MPI_SUCCESS, "no error is returned for a message that is refused: %s", "single");
}

/* The first one leaves, the others wait for each other, and are refused. */
static void lose_burst(const char *data)
{
    MPI_Request requests[BURST];
    MPI_Status statuses[BURST];
    MPI_Send(NULL, 0, MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
    refuse(1);
    for (int i = 0; i < BURST; i++) {
        requests[i] = MPI_REQUEST_NULL;
        (void)MPI_Isend(data, 300, MPI_BYTE, 1, LOST, MPI_COMM_WORLD, &requests[i]);
    }
    (void)MPI_Waitall(BURST, requests, statuses);
    refuse(0);
}

int main(int argc, char **argv)
{
    static const char data[300];
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int burst = argc > 1 && !strcmp(argv[1], "burst");
    struct counter held = counter_open("senders_held"), bundled = counter_open("bundled");

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t seed = check_seed + (uint64_t)round * 2 * MESSAGES;
        if (check_rank == 0) {
            receive_late(1, seed);
            if (burst)
                lose_burst(data);
            else
                lose_one();
            send_all(1, seed + MESSAGES);
        } else if (check_rank == 1) {
            send_all(0, seed);
            if (burst)
                MPI_Recv(NULL, 0, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            receive_late(0, seed + MESSAGES);
        }
        CHECK(counter_read(&held) == 0, "credit is lost: messages are announced in round %d",
              round);
    }
    CHECK(check_rank != 0 || refused, "no message has been %s", "refused");
    CHECK(check_rank != 0 || !burst || counter_read(&bundled) > ROUNDS * BURST / 2,
          "only %llu messages have waited for each other", counter_read(&bundled));
    counter_close(&bundled);
    counter_close(&held);
    return check_finish();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line [two]: a message that waits in line for landing memory lands as soon as some comes
 * free, although the receiver leaves MPI at once and nothing more comes over the network.
 * two: the two messages are of communicators with VCIs of their own.
 *
 * Needs the landing thread, and landing memory for one of the messages only.
 */
#include "counter.h"

enum { GO = 1, DATA = 2, SECONDS = 10, ROUNDS = 5 };
static const size_t bytes = 3 << 20;

static MPI_Comm comms[2];

static uint64_t seed_of(int round, int message)
{
    return check_seed + (uint64_t)(2 * round + message);
}

static void send_both(int round, char *buf[2])
{
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        pattern_fill(buf[i], bytes, seed_of(round, i));
    for (int i = 0; i < 2; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(buf[i], (int)bytes, MPI_BYTE, 0, DATA, comms[i], &requests[i]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void receive_both(int round, char *buf[2], const struct counter *landed,
                         const struct counter *refused)
{
    MPI_Request request;
    const unsigned long long before = counter_read(landed);
    const unsigned long long refused_before = counter_read(refused);
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    CHECK(counter_await(landed, before + 1, SECONDS), "nothing has landed");
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    CHECK(counter_await(refused, refused_before + 1, SECONDS), "no message waits in line");
    check_sleep_ms(50); /* the landing thread goes to sleep on the network */

    MPI_Irecv(buf[0], (int)bytes, MPI_BYTE, 1, DATA, comms[0], &request);
    CHECK(counter_await(landed, before + 2, SECONDS),
          "the next message is still held while the receiver is outside MPI");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(buf[1], (int)bytes, MPI_BYTE, 1, DATA, comms[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++)
        check_content(buf[i], bytes, seed_of(round, i), "message of a line");
}

int main(int argc, char **argv)
{
    const int two = argc > 1 && !strcmp(argv[1], "two");
    check_init(&argc, &argv, two ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    char *buf[2] = {check_malloc(bytes), check_malloc(bytes)};
    comms[0] = comms[1] = MPI_COMM_WORLD;
    for (int i = 0; i < 2 && two; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    if (check_rank == 0) {
        struct counter landed = counter_open("landed"), refused = counter_open("budget_refusals");
        for (int round = 0; round < ROUNDS; round++)
            receive_both(round, buf, &landed, &refused);
        counter_close(&refused);
        counter_close(&landed);
    } else if (check_rank == 1) {
        for (int round = 0; round < ROUNDS; round++)
            send_both(round, buf);
    }
    for (int i = 0; i < 2 && two; i++)
        MPI_Comm_free(&comms[i]);
    free(buf[0]);
    free(buf[1]);
    return check_finish();
}

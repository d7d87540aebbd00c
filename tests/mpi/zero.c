/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages without bytes keep their place among large ones, early and late,
 * with null buffers, empty types and every kind of send.
 */
#include "check.h"

enum { GO = 1, DATA = 2, MESSAGES = 24 };

static size_t size_of(int i)
{
    return i % 3 == 1 ? MIB : i % 3 == 2 ? 70000 : 0;
}

static void send_all(uint64_t seed, MPI_Datatype empty)
{
    char *buf[MESSAGES];
    MPI_Request request[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        const size_t bytes = size_of(i);
        buf[i] = bytes ? check_malloc(bytes) : NULL;
        pattern_fill(buf[i], bytes, seed + (uint64_t)i);
        if (bytes == 0 && i % 2)
            MPI_Isend(NULL, 5, empty, 0, DATA, MPI_COMM_WORLD, &request[i]);
        else if (i % 4 == 3)
            MPI_Issend(buf[i], (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Isend(buf[i], (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++)
        free(buf[i]);
}

static void receive_all(uint64_t seed)
{
    for (int i = 0; i < MESSAGES; i++) {
        const size_t bytes = size_of(i);
        /* A message without bytes may meet a large buffer, and must not touch it. */
        struct guarded g = guarded_make(bytes ? bytes : 100, 16);
        MPI_Status status;
        int count;
        if (bytes == 0 && i % 2)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &status);
        else
            MPI_Recv(g.at, (int)g.bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK((size_t)count == bytes, "message %d: %d bytes instead of %zu", i, count, bytes);
        check_content(g.at, bytes, seed + (uint64_t)i, "message");
        for (size_t b = bytes; b < g.bytes; b++)
            CHECK(g.at[b] == 0xa5, "message %d of no bytes wrote byte %zu", i, b);
        guarded_check(&g, "message");
        guarded_free(&g);
    }
}

int main(int argc, char **argv)
{
    MPI_Datatype empty;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int round = 0; round < 6; round++) {
        const uint64_t seed = check_seed + (uint64_t)(round * MESSAGES);
        if (check_rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            if (round % 2)
                check_sleep_ms(20);
            receive_all(seed);
        } else if (check_rank == 1) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            send_all(seed, empty);
        }
    }
    MPI_Type_free(&empty);
    return check_finish();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message longer than its receive gives MPI_ERR_TRUNCATE and nothing is
 * written outside the buffer, whether the message had landed, was on its way or
 * met a posted receive; the messages after it are right.
 */
#include "check.h"

enum { GO = 1, DATA = 2 };
enum when { POSTED_FIRST, LATE, LATE_NONBLOCKING, LATE_MATCHED_PROBE, WHENS };

static int error_class(int error)
{
    int class = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    return class;
}

static int receive(enum when when, void *buf, size_t room)
{
    MPI_Request request;
    MPI_Message message;
    if (when == POSTED_FIRST) {
        MPI_Irecv(buf, (int)room, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    check_sleep_ms(15);
    if (when == LATE)
        return MPI_Recv(buf, (int)room, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (when == LATE_MATCHED_PROBE) {
        MPI_Mprobe(1, DATA, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        return MPI_Mrecv(buf, (int)room, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
    int error = MPI_Irecv(buf, (int)room, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    return error != MPI_SUCCESS ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void expect_truncation(enum when when, size_t bytes, size_t room, uint64_t seed)
{
    struct guarded g = guarded_make(room, 16);
    int class = error_class(receive(when, g.at, room));
    CHECK(class == MPI_ERR_TRUNCATE, "%zu bytes into %zu (case %d): error class %d", bytes, room,
          when, class);
    guarded_check(&g, "truncated message");
    guarded_free(&g);

    /* The next message of the same envelope, which arrived meanwhile or not. */
    struct guarded next = guarded_make(bytes, 16);
    int error = MPI_Recv(next.at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(error == MPI_SUCCESS, "the message after a truncated one: error %d", error);
    check_content(next.at, bytes, seed + 1, "message after a truncated one");
    guarded_check(&next, "message after a truncated one");
    guarded_free(&next);
}

static void send_two(size_t bytes, uint64_t seed)
{
    char *buf[2];
    MPI_Request request[2];
    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) {
        buf[i] = check_malloc(bytes);
        pattern_fill(buf[i], bytes, seed + (uint64_t)i);
        MPI_Isend(buf[i], (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request[i]);
    }
    /* An implementation may or may not tell the sender; both are allowed. */
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    free(buf[0]);
    free(buf[1]);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {300, 4000, 65536, 1 << 20, 4 << 20};
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    uint64_t seed = check_seed;
    for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++) {
        const size_t rooms[] = {0, 1, sizes[s] / 2, sizes[s] - 4097 * (sizes[s] > 8192),
                                sizes[s] - 1};
        for (int r = 0; r < 5; r++) {
            if (rooms[r] == sizes[s])
                continue;
            for (int when = 0; when < WHENS; when++, seed += 2) {
                if (check_rank == 0)
                    expect_truncation(when, sizes[s], rooms[r], seed);
                else if (check_rank == 1)
                    send_two(sizes[s], seed);
            }
        }
    }
    return check_finish();
}

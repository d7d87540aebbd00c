/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood [MESSAGES [LIMIT_MIB]]: thousands of unexpected 1 MiB messages meet a
 * receiver that does not post for a while. All arrive, in order and right, and
 * the receiver's memory stays below LIMIT_MIB.
 *
 * All sends are outstanding at once, yet no two messages are alike: message i is
 * the window of 1 MiB that begins i words into one long buffer.
 */
#include "status.h"

enum { GO = 1, DATA = 2 };
static const size_t bytes = 1 << 20;

static void send_all(int messages)
{
    char *buf = check_malloc(bytes + (size_t)messages * 8);
    MPI_Request *request = check_malloc((size_t)messages * sizeof *request);
    pattern_fill(buf, bytes + (size_t)messages * 8, check_seed);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < messages; i++)
        MPI_Isend(buf + (size_t)i * 8, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request[i]);
    MPI_Waitall(messages, request, MPI_STATUSES_IGNORE);
    free(request);
    free(buf);
}

static void receive_all(int messages, size_t limit_mib)
{
    char *buf = check_malloc(bytes);
    memset(buf, 0, bytes);
    const size_t before_kib = status_kib("VmHWM");
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    check_sleep_ms(2000);
    for (int i = 0; i < messages; i++) {
        MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        size_t wrong = pattern_find_error_from(buf, bytes, check_seed, (uint64_t)i);
        CHECK(wrong == bytes, "message %d of %d: wrong at byte %zu (lost or overtaken?)", i,
              messages, wrong);
        /* Now and then let them pile up again. */
        if (i % 1000 == 500)
            check_sleep_ms(50);
    }
    const size_t peak_kib = status_kib("VmHWM");
    printf("peak memory %zu MiB, %zu MiB before the flood\n", peak_kib >> 10, before_kib >> 10);
    CHECK(limit_mib == 0 || peak_kib >> 10 < limit_mib, "peak memory %zu MiB, limit %zu MiB",
          peak_kib >> 10, limit_mib);
    free(buf);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int messages = argc > 1 ? atoi(argv[1]) : 10000;
    if (check_rank == 0)
        receive_all(messages, argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
    else if (check_rank == 1)
        send_all(messages);
    return check_finish();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers go on while a rank is outside MPI (the landing thread is on). Rank 0 begins
 * one and only comes back when it is over, which it learns without MPI: as the receiver
 * from the last byte of its buffer, as the sender from a file that rank 1 writes.
 */
#include "check.h"
#include <sys/stat.h>

enum { GO = 1, DATA = 2, NAME = 3, SIZES = 3, ROUNDS = 3, NAME_MAX_BYTES = 64 };
static const size_t sizes[SIZES] = {200000, 1 << 20, 16 << 20};
static const double PATIENCE_S = 10;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void receive_outside(size_t bytes, char *buf, uint64_t seed)
{
    if (check_rank == 1) {
        pattern_fill(buf, bytes, seed);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        return;
    }
    MPI_Request request;
    pattern_fill(buf, bytes, seed);
    const char expected = buf[bytes - 1];
    memset(buf, ~expected, bytes);
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    const double start = now_s();
    const volatile char *last = buf + bytes - 1;
    while (*last != expected && now_s() - start < PATIENCE_S)
        check_sleep_ms(1);
    CHECK(*last == expected, "%zu bytes have not come while rank 0 was outside MPI", bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_content(buf, bytes, seed, "received outside MPI");
}

static void send_outside(size_t bytes, char *buf, uint64_t seed)
{
    char name[NAME_MAX_BYTES] = "/tmp/zc-outside-XXXXXX";
    MPI_Request request;
    if (check_rank == 1) {
        MPI_Recv(name, sizeof name, MPI_CHAR, 0, NAME, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        FILE *file = fopen(name, "w");
        CHECK(file && fputs("received\n", file) >= 0 && fclose(file) == 0, "cannot write %s", name);
        check_content(buf, bytes, seed, "sent outside MPI");
        return;
    }
    const int fd = mkstemp(name);
    struct stat status = {.st_size = 0};
    CHECK(fd >= 0, "cannot make %s", name);
    pattern_fill(buf, bytes, seed);
    MPI_Send(name, sizeof name, MPI_CHAR, 1, NAME, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    const double start = now_s();
    while (fstat(fd, &status) == 0 && status.st_size == 0 && now_s() - start < PATIENCE_S)
        check_sleep_ms(1);
    CHECK(status.st_size > 0, "%zu bytes have not gone while rank 0 was outside MPI", bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    close(fd);
    unlink(name);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < SIZES; i++) {
        char *buf = check_malloc(sizes[i]);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            receive_outside(sizes[i], buf, check_seed + 2 * round);
            send_outside(sizes[i], buf, check_seed + 2 * round + 1);
        }
        free(buf);
    }
    return check_finish();
}

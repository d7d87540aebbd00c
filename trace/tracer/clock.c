/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real.h"

/* The ping-pong with the shortest way tells most: this many are enough to meet
 * one that nothing delayed. */
#define ROUNDS 16
#define TAG 0x7a63 /* any: each rank exchanges these before it leaves MPI_Init */

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Processes with equal names share CLOCK_MONOTONIC: FNV-1a of the boot's id and
 * of the time namespace. ZC_TRACE_CLOCK=measure: do as if none did. */
static uint64_t clock_name(int rank)
{
    char text[128] = "";
    size_t len = 0;
    const char *how = getenv("ZC_TRACE_CLOCK");
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t n = read(fd, text, 64);
        len = n > 0 ? (size_t)n : 0;
        close(fd);
    }
    const ssize_t n = readlink("/proc/self/ns/time", text + len, sizeof(text) - len);
    len += n > 0 ? (size_t)n : 0;
    uint64_t name = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        name = (name ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return how && strcmp(how, "measure") == 0 ? name + (uint64_t)rank : name;
}

/* Rank 0's side: answer with the time. */
static void answer(int rank)
{
    for (int i = 0; i < ROUNDS; i++) {
        char ask;
        REAL(Recv)(&ask, 1, zct_real.byte, rank, TAG, zct_real.world, MPI_STATUS_IGNORE);
        const int64_t now = read_clock(CLOCK_MONOTONIC);
        REAL(Send)(&now, (int)sizeof(now), zct_real.byte, rank, TAG, zct_real.world);
    }
}

/* How far this rank's clock is ahead of rank 0's. */
static int64_t measure_offset(void)
{
    int64_t offset = 0;
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const char ask = 0;
        int64_t theirs;
        const int64_t before = read_clock(CLOCK_MONOTONIC);
        REAL(Send)(&ask, 1, zct_real.byte, 0, TAG, zct_real.world);
        REAL(Recv)
        (&theirs, (int)sizeof(theirs), zct_real.byte, 0, TAG, zct_real.world, MPI_STATUS_IGNORE);
        const int64_t after = read_clock(CLOCK_MONOTONIC);
        if (after - before < shortest) {
            shortest = after - before;
            offset = before + shortest / 2 - theirs;
        }
    }
    return offset;
}

struct zct_beginning zct_clock_agree(int rank, int processes)
{
    struct {
        struct zct_beginning beginning;
        uint64_t clock;
    } first = {{0, 0, 0}, 0};
    const uint64_t mine = clock_name(rank);
    if (rank == 0) {
        first.clock = mine;
        first.beginning.zero_ns = read_clock(CLOCK_MONOTONIC);
        first.beginning.start_ns = (uint64_t)read_clock(CLOCK_REALTIME);
        first.beginning.run =
            (mine ^ first.beginning.start_ns) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)getpid();
    }
    REAL(Bcast)(&first, (int)sizeof(first), zct_real.byte, 0, zct_real.world);

    char differs = mine != first.clock;
    char *all = rank == 0 ? calloc((size_t)processes, 1) : NULL;
    REAL(Gather)(&differs, 1, zct_real.byte, all, 1, zct_real.byte, 0, zct_real.world);
    for (int i = 1; all && i < processes; i++)
        if (all[i])
            answer(i);
    free(all);
    if (differs)
        first.beginning.zero_ns += measure_offset();
    return first.beginning;
}

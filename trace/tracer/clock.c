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

/* What is kept for the comparison in MPI_Finalize. */
static struct {
    bool prepared;
    bool apart;      /* this rank's clock is another than rank 0's */
    int64_t zero_ns; /* rank 0: the beginning by its clock; its times are since then */
    int processes;   /* rank 0 only */
    char *all;       /* of them, those whose clock differs */
    MPI_Comm comm;
} later;

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
    if (!len && gethostname(text, 64) == 0)
        len = strnlen(text, 64);
    const ssize_t n = readlink("/proc/self/ns/time", text + len, sizeof(text) - len);
    len += n > 0 ? (size_t)n : 0;
    uint64_t name = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        name = (name ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return how && strcmp(how, "measure") == 0 ? name + (uint64_t)rank : name;
}

/* Rank 0's side: answer with the time. */
static void answer(int rank, MPI_Comm comm)
{
    for (int i = 0; i < ROUNDS; i++) {
        char ask;
        REAL(Recv)(&ask, 1, zct_real.byte, rank, TAG, comm, MPI_STATUS_IGNORE);
        const int64_t now = read_clock(CLOCK_MONOTONIC);
        REAL(Send)(&now, (int)sizeof(now), zct_real.byte, rank, TAG, comm);
    }
}

/* How far this rank's clock is ahead of rank 0's. */
static int64_t measure_offset(MPI_Comm comm, uint64_t *error_ns)
{
    int64_t offset = 0;
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const char ask = 0;
        int64_t theirs;
        const int64_t before = read_clock(CLOCK_MONOTONIC);
        REAL(Send)(&ask, 1, zct_real.byte, 0, TAG, comm);
        REAL(Recv)
        (&theirs, (int)sizeof(theirs), zct_real.byte, 0, TAG, comm, MPI_STATUS_IGNORE);
        const int64_t after = read_clock(CLOCK_MONOTONIC);
        if (after - before < shortest) {
            shortest = after - before;
            offset = before + shortest / 2 - theirs;
        }
    }
    *error_ns = (uint64_t)shortest / 2;
    return offset;
}

struct zct_beginning zct_clock_agree(int rank, int processes, bool taken, bool again)
{
    struct {
        struct zct_beginning beginning;
        uint64_t clock;
    } first = {.clock = 0};
    const uint64_t mine = clock_name(rank);
    if (rank == 0) {
        first.clock = mine;
        first.beginning.taken = taken;
        first.beginning.zero_ns = read_clock(CLOCK_MONOTONIC);
        first.beginning.start_ns = (uint64_t)read_clock(CLOCK_REALTIME);
        first.beginning.run =
            (mine ^ first.beginning.start_ns) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)getpid();
    }
    REAL(Bcast)(&first, (int)sizeof(first), zct_real.byte, 0, zct_real.world);
    if (first.beginning.taken)
        return first.beginning;

    char differs = mine != first.clock;
    char *all = rank == 0 ? calloc((size_t)processes, 1) : NULL;
    REAL(Gather)(&differs, 1, zct_real.byte, all, 1, zct_real.byte, 0, zct_real.world);
    for (int i = 1; all && i < processes; i++)
        if (all[i])
            answer(i, zct_real.world);
    first.beginning.apart = differs;
    later.zero_ns = first.beginning.zero_ns;
    if (differs)
        first.beginning.zero_ns += measure_offset(zct_real.world, &first.beginning.error_ns);
    if (again && REAL(Comm_dup)(zct_real.world, &later.comm) == MPI_SUCCESS) {
        later.prepared = true;
        later.apart = differs;
        later.processes = processes;
        later.all = all;
    } else {
        free(all);
    }
    return first.beginning;
}

bool zct_clock_compare(int64_t zero_ns, int64_t *ahead_ns, uint64_t *error_ns)
{
    if (!later.prepared)
        return false;
    later.prepared = false;
    for (int i = 1; later.all && i < later.processes; i++)
        if (later.all[i])
            answer(i, later.comm);
    free(later.all);
    if (later.apart)
        *ahead_ns = measure_offset(later.comm, error_ns) - (zero_ns - later.zero_ns);
    REAL(Comm_free)(&later.comm);
    return later.apart;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include "zc_traffic.h"

#define MAGIC 0x7254635au       /* "ZcTr" */

MPIDI_ZC_traffic_t *MPIDI_ZC_traffic;

static struct {
    size_t length;              /* of the mapping */
    int64_t ahead_ns;           /* the holder's CLOCK_MONOTONIC, less ours */
} told;

static int64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_ours(const MPIDI_ZC_traffic_t * header, size_t length)
{
    const uint64_t entries = header->entries;

    return header->magic == MAGIC && entries > 0 && (entries & (entries - 1)) == 0 &&
        length >= sizeof(*header) + entries * sizeof(header->ring[0]) &&
        (int) header->world == MPIR_Process.size && (int) header->rank == MPIR_Process.rank;
}

const char *MPIDI_ZC_traffic_open(int fd, int64_t clocks)
{
    struct stat found;
    MPIDI_ZC_traffic_t *header;

    MPIDI_ZC_traffic_close();
    if (MPIDI_global.n_vcis > 1) {
        return "it has several VCIs";   /* with a lock each */
    }
    if (fd < 0 || fstat(fd, &found) != 0 || found.st_size < (off_t) sizeof(*header)) {
        return "there is no memory for it";
    }
    header = mmap(NULL, found.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED) {
        return strerror(errno);
    }
    if (!is_ours(header, found.st_size)) {
        munmap(header, found.st_size);
        return "the memory is of another rank, or job";
    }
    told.length = found.st_size;
    told.ahead_ns = ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC) - clocks;
    MPIDI_ZC_traffic = header;
    return NULL;
}

void MPIDI_ZC_traffic_close(void)
{
    if (MPIDI_ZC_traffic) {
        munmap(MPIDI_ZC_traffic, told.length);
        MPIDI_ZC_traffic = NULL;
    }
}

void MPIDI_ZC_traffic_add(int receiver, size_t bytes)
{
    MPIDI_ZC_traffic_t *to = MPIDI_ZC_traffic;
    const uint64_t nth = to->sent;
    const size_t kib = (bytes + 1023) >> 10;

    /* Milliseconds will do, and the fine clock takes ten times as long as all else here. */
    to->ring[nth % to->entries].time_ns =
        (uint64_t) (ns_of(CLOCK_MONOTONIC_COARSE) + told.ahead_ns);
    to->ring[nth % to->entries].receiver = (uint32_t) receiver;
    to->ring[nth % to->entries].kib = kib > UINT32_MAX ? UINT32_MAX : (uint32_t) kib;
    __atomic_store_n(&to->sent, nth + 1, __ATOMIC_RELEASE);
}

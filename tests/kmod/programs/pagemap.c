/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "pagemap.h"

#include "ktap.h"
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

/* Opened anew in every process: the descriptor knows the opener's memory. */
static int pagemap_fd(void)
{
    static int fd = -1, owner = -1;

    if (owner != getpid()) {
        if (fd >= 0)
            close(fd);
        fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            FAIL("/proc/self/pagemap: errno %d", errno);
        owner = getpid();
    }
    return fd;
}

void pagemap_read(const void *at, size_t pages, uint64_t *entries)
{
    ssize_t want = pages * sizeof(*entries);

    if (pread(pagemap_fd(), entries, want, (uintptr_t)at / PAGE_SIZE * sizeof(*entries)) != want)
        FAIL("pagemap of %p: errno %d", at, errno);
}

uint64_t pagemap_of(const void *at)
{
    uint64_t entry;

    pagemap_read(at, 1, &entry);
    return entry;
}

uint64_t pfn_of(const void *at)
{
    uint64_t entry = pagemap_of(at);

    return entry & PM_PRESENT ? entry & PM_PFN : 0;
}

static uint64_t flags_of_frame(uint64_t pfn)
{
    static int fd = -1;
    uint64_t flags = 0;

    if (fd < 0)
        fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
    if (!pfn || pread(fd, &flags, sizeof(flags), pfn * sizeof(flags)) != sizeof(flags))
        return 0;
    return flags;
}

bool page_is(const void *at, int kpf)
{
    return flags_of_frame(pfn_of(at)) >> kpf & 1;
}

static size_t count_entries(const char *at, size_t pages, uint64_t bit)
{
    uint64_t entries[512];
    size_t count = 0;

    for (size_t i = 0; i < pages; i += 512) {
        size_t n = pages - i < 512 ? pages - i : 512;

        pagemap_read(at + i * PAGE_SIZE, n, entries);
        for (size_t k = 0; k < n; k++)
            count += (entries[k] & bit) != 0;
    }
    return count;
}

size_t pages_present(const void *at, size_t pages)
{
    return count_entries(at, pages, PM_PRESENT);
}
size_t pages_swapped(const void *at, size_t pages)
{
    return count_entries(at, pages, PM_SWAP);
}

size_t pages_flagged(const void *at, size_t pages, int kpf)
{
    size_t count = 0;

    for (size_t i = 0; i < pages; i++)
        count += page_is((const char *)at + i * PAGE_SIZE, kpf);
    return count;
}

long huge_kib(const void *at, size_t pages)
{
    uintptr_t from = (uintptr_t)at, end = from + pages * PAGE_SIZE;
    long kib;

    /* A task with a memory policy of its own is not watched, and nothing taken from it anew. */
    syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0UL);
    for (uintptr_t p = from; p < end; p = (p / HUGE_SIZE + 1) * HUGE_SIZE)
        (void)*(const volatile char *)p;
    kib = smaps_kib("AnonHugePages", at, pages * PAGE_SIZE);
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
    return kib;
}

/* Pages the kernel could swap out if its reverse mapping finds them. */
static size_t pages_left(const char *at, size_t pages)
{
    size_t count = 0;

    for (size_t i = 0; i < pages; i++)
        count += pfn_of(at + i * PAGE_SIZE) && !page_is(at + i * PAGE_SIZE, KPF_ZERO_PAGE);
    return count;
}

size_t page_out(void *at, size_t pages)
{
    size_t left = pages;

    for (int i = 0; i < 40 && left; i++) {
        if (i)
            drain_lru();
        if (madvise(at, pages * PAGE_SIZE, MADV_PAGEOUT) && errno != EINVAL)
            FAIL("MADV_PAGEOUT: errno %d", errno);
        left = pages_left(at, pages);
    }
    return left;
}

void need_root(void)
{
    if (!is_root())
        ktap_skip("needs root");
}

void need_swap(void)
{
    need_root();
    if (file_number("/proc/meminfo", "SwapTotal") <= 0)
        ktap_skip("no swap space in this guest");
}

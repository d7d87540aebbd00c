/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "rivals.h"

#include "ktap.h"
#include "pagemap.h"
#include "procfs.h"
#include "uffd.h"
#include "uffd_move.h"
#include "zc_ioctl.h"

#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static int uffd = -1;

int device(void)
{
    static int fd = -2;

    if (fd == -2)
        fd = open("/dev/zc", O_RDWR | O_CLOEXEC);
    return fd;
}

static size_t window_len(const struct layout *layout)
{
    return layout->pages * PAGE_SIZE + 3 * HUGE_SIZE;
}

/* Between inaccessible memory, so that no two windows are one mapping. */
static char *window(const struct layout *layout, size_t offset, bool populate, char content)
{
    char *map = mmap(NULL, window_len(layout), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
         *at;

    NEED(map != MAP_FAILED);
    at = (char *)(((uintptr_t)map + HUGE_SIZE) / HUGE_SIZE * HUGE_SIZE) + offset * PAGE_SIZE;
    NEED(mmap(at, layout->pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    if (layout->huge)
        NEED(!madvise(at, layout->pages * PAGE_SIZE, MADV_HUGEPAGE));
    if (populate)
        for (size_t i = 0; i < layout->pages; i++)
            memset(at + i * PAGE_SIZE, content + i % 7, 64);
    if (layout->huge && populate)
        CHECK(smaps_kib("AnonHugePages", at, layout->pages * PAGE_SIZE) == (long)layout->pages * 4,
              "not huge");
    return at;
}

static void close_window(char *at, const struct layout *layout)
{
    if (at)
        munmap((char *)((uintptr_t)at / HUGE_SIZE * HUGE_SIZE), window_len(layout) - HUGE_SIZE);
}

void rival_open(struct rival *rival, enum rival_name name, const struct layout *layout)
{
    static const char *const names[] = {"kmod", "mremap", "uffd_move", "memcpy"};
    const size_t len = layout->pages * PAGE_SIZE;

    *rival = (struct rival){.name = names[name]};
    if (name == RIVAL_KMOD && device() < 0) {
        rival->missing = "no /dev/zc";
        return;
    }
    if (name == RIVAL_UFFD_MOVE && uffd < 0) {
        uffd = uffd_open(MOVE_FEATURE);
        if (uffd < 0) {
            rival->missing = "no UFFDIO_MOVE (Linux 6.8)";
            return;
        }
    }
    rival->a = window(layout, 0, true, 'a');
    rival->b = window(layout, layout->offset, name != RIVAL_UFFD_MOVE, 'n');
    if (name == RIVAL_MREMAP)
        rival->spare = window(layout, 0, false, 0);
    if (name == RIVAL_UFFD_MOVE)
        NEED(!uffd_register(uffd, rival->a, len, UFFDIO_REGISTER_MODE_MISSING) &&
             !uffd_register(uffd, rival->b, len, UFFDIO_REGISTER_MODE_MISSING));
}

void rival_close(struct rival *rival, enum rival_name name, const struct layout *layout)
{
    (void)name;
    close_window(rival->a, layout);
    close_window(rival->b, layout);
    close_window(rival->spare, layout);
}

void copy(void *to, const void *from, size_t bytes)
{
    __m128i *t = to;
    const __m128i *f = from;

    for (size_t i = 0; i < bytes / sizeof(*t); i += 8) {
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            _mm_storeu_si128(t + i + k, _mm_loadu_si128(f + i + k));
    }
}

static void exchange(char *a, char *b, size_t bytes)
{
    struct zc_range range = {.a = (uintptr_t)a, .b = (uintptr_t)b, .length = bytes};
    struct zc_exchange x = {
        .size = sizeof(x), .range_size = sizeof(range), .count = 1, .ranges = (uintptr_t)&range};

    if (ioctl(device(), ZC_IOC_EXCHANGE, &x))
        FAIL("exchange of %zu bytes: cause %u after %llu: errno %d", bytes, x.cause,
             (unsigned long long)x.done, errno);
}

static void shift(char *from, char *to, size_t bytes)
{
    if (syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                to) != (long)to)
        FAIL("mremap: errno %d", errno);
}

static void move(char *from, char *to, size_t bytes)
{
    struct move m = {.to = (uintptr_t)to, .from = (uintptr_t)from, .len = bytes};

    while (ioctl(uffd, MOVE_IOCTL, &m)) {
        if (errno != EAGAIN)
            FAIL("UFFDIO_MOVE: errno %d", errno);
        if (m.moved > 0) {
            m.to += m.moved;
            m.from += m.moved;
            m.len -= m.moved;
        }
    }
}

void rival_run(struct rival *rival, enum rival_name name, size_t bytes)
{
    switch (name) {
    case RIVAL_KMOD:
        exchange(rival->a, rival->b, bytes);
        break;
    case RIVAL_MREMAP:
        shift(rival->a, rival->spare, bytes);
        shift(rival->b, rival->a, bytes);
        shift(rival->spare, rival->b, bytes);
        break;
    case RIVAL_UFFD_MOVE:
        if (rival->turned)
            move(rival->b, rival->a, bytes);
        else
            move(rival->a, rival->b, bytes);
        break;
    default:
        copy(rival->b, rival->a, bytes);
    }
    rival->turned = !rival->turned;
}

void rival_check(const struct rival *rival, enum rival_name name, size_t bytes)
{
    const size_t last = bytes / PAGE_SIZE - 1;
    const bool swaps = name == RIVAL_KMOD || name == RIVAL_MREMAP;
    const char *first_at = name == RIVAL_MEMCPY || rival->turned ? rival->b : rival->a;

    CHECK(first_at[0] == 'a' && first_at[last * PAGE_SIZE] == (char)('a' + last % 7),
          "%s: not where it should be", rival->name);
    if (swaps) {
        const char *other_at = rival->turned ? rival->a : rival->b;

        CHECK(other_at[0] == 'n' && other_at[last * PAGE_SIZE] == (char)('n' + last % 7),
              "%s: the other side is not where it should be", rival->name);
    }
}

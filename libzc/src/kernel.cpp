/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace zc {

namespace {

/* syscall(2) and not mremap(3): communication libraries patch libc's mremap to
 * watch for changes, and at least UCX 1.13's hook drops the fifth argument. */
int real_move(addr_t from, addr_t to, std::size_t len)
{
    constexpr unsigned long kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    return syscall(SYS_mremap, from, len, len, kFlags, to) == -1 ? -errno : 0;
}

/* Kernels before 5.14 do not know MADV_POPULATE_WRITE. Writing back the byte
 * read is safe: the range is the library's own and not yet in use. */
void populate_by_touching(range r)
{
    for (addr_t page = r.begin; page < r.end; page += kPage) {
        auto *byte = static_cast<volatile char *>(as_pointer(page));
        *byte = *byte;
    }
}

int real_populate(range r)
{
    while (madvise(as_pointer(r.begin), r.size(), MADV_POPULATE_WRITE) == -1) {
        if (errno == EINVAL) {
            populate_by_touching(r);
            return 0;
        }
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 0;
}

/* What mlockall(2) has locked since is not given up before it is unlocked. */
int real_discard(range r)
{
    if (madvise(as_pointer(r.begin), r.size(), MADV_DONTNEED) == 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    unlock(r);
    return madvise(as_pointer(r.begin), r.size(), MADV_DONTNEED) == -1 ? -errno : 0;
}

int real_open_device()
{
    int device = open("/dev/zc", O_RDWR | O_CLOEXEC);
    return device < 0 ? -errno : device;
}

int real_control(int device, unsigned long request, void *argument)
{
    return ioctl(device, request, argument) == -1 ? -errno : 0;
}

std::uint64_t real_now()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

/** Reads a small file of the kernel's; "" if it cannot be read. */
std::array<char, 128> read_small(const char *path)
{
    std::array<char, 128> text{};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return text;
    ssize_t n = read(fd, text.data(), text.size() - 1);
    close(fd);
    if (n < 0)
        text[0] = '\0';
    return text;
}

/* "0", "0-1,3" */
std::size_t real_memory_nodes()
{
    auto text = read_small("/sys/devices/system/node/has_memory");
    std::size_t count = 0;
    for (const char *at = text.data(); *at >= '0' && *at <= '9';) {
        char *end = nullptr;
        unsigned long first = std::strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = std::strtoul(end + 1, &end, 10);
        count += last - first + 1;
        at = *end == ',' ? end + 1 : end;
    }
    return std::max<std::size_t>(count, 1);
}

int real_nodes_of(std::size_t count, void **pages, int *nodes)
{
    return syscall(SYS_move_pages, 0, count, pages, nullptr, nodes, 0) == -1 ? -errno : 0;
}

/* The policy of the thread, not of the mapping: that would move on to the user together
 * with the pages. */
int real_populate_on(range r, int node)
{
    constexpr unsigned long kMostNodes = 1024, kBits = 8 * sizeof(unsigned long);
    constexpr int kPreferred = 1;
    std::array<unsigned long, kMostNodes / kBits> before{}, wanted{};
    int mode = 0;
    auto bit = static_cast<unsigned long>(node);
    if (bit >= kMostNodes ||
        syscall(SYS_get_mempolicy, &mode, before.data(), kMostNodes + 1, nullptr, 0) == -1)
        return real_populate(r);
    wanted[bit / kBits] = 1ul << bit % kBits;
    bool changed = syscall(SYS_set_mempolicy, kPreferred, wanted.data(), kMostNodes + 1) == 0;
    int err = real_populate(r);
    if (changed)
        (void)syscall(SYS_set_mempolicy, mode, before.data(), kMostNodes + 1);
    return err;
}

} // namespace

const kernel_calls kernel_calls_real = {
    real_move,
    real_populate,
    real_discard,
    real_open_device,
    real_control,
    real_now,
    true,
    real_memory_nodes,
    real_nodes_of,
    real_populate_on,
    "/proc/misc",
    "/proc/driver/nvidia",
    "/proc/sys/kernel/tainted",
};
kernel_calls kernel = kernel_calls_real;

thp_mode kernel_thp_mode()
{
    auto text = read_small("/sys/kernel/mm/transparent_hugepage/enabled");
    if (std::strstr(text.data(), "[always]"))
        return thp_mode::always;
    return std::strstr(text.data(), "[madvise]") ? thp_mode::madvise : thp_mode::never;
}

bool kernel_has_middle_folios()
{
    for (std::size_t kib = 2 * kPage / 1024; kib < kHuge / 1024; kib *= 2) {
        std::array<char, 96> path;
        std::snprintf(path.data(), path.size(),
                      "/sys/kernel/mm/transparent_hugepage/hugepages-%zukB/enabled", kib);
        auto text = read_small(path.data());
        if (text[0] != '\0' && !std::strstr(text.data(), "[never]"))
            return true;
    }
    return false;
}

std::size_t kernel_max_map_count()
{
    constexpr std::size_t kDefault = 65530;
    auto text = read_small("/proc/sys/vm/max_map_count");
    std::size_t count = 0;
    return std::sscanf(text.data(), "%zu", &count) == 1 && count > 0 ? count : kDefault;
}

std::size_t mapped_bytes()
{
    auto text = read_small("/proc/self/statm");
    return std::strtoul(text.data(), nullptr, 10) * kPage;
}

/* Not munlock(3), which sanitizers turn into nothing. */
void unlock(range r)
{
    (void)syscall(SYS_munlock, r.begin, r.size());
}

void advise(range r, int advice)
{
    if (!r.empty())
        (void)madvise(as_pointer(r.begin), r.size(), advice);
}

bool is_mapped(range r)
{
    /* mincore() answers ENOMEM as soon as it meets a hole. */
    std::array<unsigned char, 512> pages;
    while (!r.empty()) {
        std::size_t len = std::min(r.size(), pages.size() * kPage);
        if (mincore(as_pointer(r.begin), len, pages.data()) == -1)
            return false;
        r.begin += len;
    }
    return true;
}

} // namespace zc

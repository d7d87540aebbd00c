/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_KERNEL_H_INCLUDED
#define ZC_KERNEL_H_INCLUDED

#include "page.h"

namespace zc {

/**
 * The system calls that change mappings, each returning 0 or -errno, and the
 * clock. They go through pointers so that tests can make the n-th one fail, or
 * pretend that the kernel is old or has the module; nothing else replaces them.
 */
struct kernel_calls {
    /** Moves the pages of [from, from + len) to @to, replacing what was
     *  mapped there in one step; the old range stays mapped and empty. */
    int (*move)(addr_t from, addr_t to, std::size_t len);
    /** Backs every page of the range with writable memory. */
    int (*populate)(range r);
    /** Returns the range's pages to the system; it stays mapped. */
    int (*discard)(range r);
    /** Opens /dev/zc. Return: a descriptor, for close(2), or -errno. */
    int (*open_device)();
    /** ioctl(2) on it. */
    int (*control)(int device, unsigned long request, void *argument);
    /** CLOCK_MONOTONIC in nanoseconds. */
    std::uint64_t (*now)();
    /** May ioctls newer than Linux 6.1 be used, where they exist? */
    bool newer_ioctls;
    /** How many NUMA nodes have memory. */
    std::size_t (*memory_nodes)();
    /** The nodes that @count pages are on; negative where there is none. */
    int (*nodes_of)(std::size_t count, void **pages, int *nodes);
    /** Like populate, from @node as long as that has memory. */
    int (*populate_on)(range r, int node);
    /** The list of small drivers, what exists where NVIDIA's is loaded, and what the kernel
     *  has been through. */
    const char *misc_drivers;
    const char *nvidia_driver;
    const char *taint;
};

extern kernel_calls kernel;

inline std::uint64_t now_ns()
{
    return kernel.now();
}

/** The real calls, for tests to put back. */
extern const kernel_calls kernel_calls_real;

/** Setting of transparent huge pages, re-read at each call. */
enum class thp_mode { never, madvise, always };
thp_mode kernel_thp_mode();

/** May anonymous memory come in folios between a page and a huge page? */
bool kernel_has_middle_folios();

/** vm.max_map_count; its default where it cannot be read. */
std::size_t kernel_max_map_count();

/** madvise() whose failure only costs time, e.g. on kernels built without THP. */
void advise(range r, int advice);

/** Frees the range from mlockall(2). */
void unlock(range r);

/** Of the whole process, as RLIMIT_AS counts them. */
std::size_t mapped_bytes();

/** Is every address of the range mapped? */
bool is_mapped(range r);

} // namespace zc

#endif /* ZC_KERNEL_H_INCLUDED */

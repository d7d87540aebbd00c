/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROC_IOCTL_H_INCLUDED
#define ZC_PROC_IOCTL_H_INCLUDED

#include <cstdint>
#include <sys/ioctl.h>

/* Two ioctls of /proc/PID newer than the headers we must build with (Linux
 * 6.1). The layouts are the kernel's ABI, include/uapi/linux/fs.h. */

namespace zc {

/** /proc/PID/maps: describes the mapping that covers an address (6.11). */
struct procmap_query {
    std::uint64_t size;
    std::uint64_t query_flags;
    std::uint64_t query_addr;
    std::uint64_t vma_start;
    std::uint64_t vma_end;
    std::uint64_t vma_flags;
    std::uint64_t vma_page_size;
    std::uint64_t vma_offset;
    std::uint64_t inode;
    std::uint32_t dev_major;
    std::uint32_t dev_minor;
    std::uint32_t vma_name_size;
    std::uint32_t build_id_size;
    std::uint64_t vma_name_addr;
    std::uint64_t build_id_addr;
};
static_assert(sizeof(procmap_query) == 104);

inline constexpr unsigned long kProcmapQuery = _IOWR('f', 17, procmap_query);
inline constexpr std::uint64_t kVmaReadable = 1, kVmaWritable = 2, kVmaExecutable = 4,
                               kVmaShared = 8;

/** /proc/PID/pagemap: finds pages by category (6.7). */
struct pagemap_scan {
    std::uint64_t size;
    std::uint64_t flags;
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t walk_end;
    std::uint64_t vec;
    std::uint64_t vec_len;
    std::uint64_t max_pages;
    std::uint64_t category_inverted;
    std::uint64_t category_mask;
    std::uint64_t category_anyof_mask;
    std::uint64_t return_mask;
};
static_assert(sizeof(pagemap_scan) == 96);

struct pagemap_region {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t categories;
};

inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, pagemap_scan);
inline constexpr std::uint64_t kPageIsTracked = 1u << 0; /* PAGE_IS_WPALLOWED */
inline constexpr std::uint64_t kPageIsHuge = 1u << 6;

} // namespace zc

#endif /* ZC_PROC_IOCTL_H_INCLUDED */

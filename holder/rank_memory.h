/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_RANK_MEMORY_H_INCLUDED
#define ZC_HOLDER_RANK_MEMORY_H_INCLUDED

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"

namespace zc::holder {

/** Whole pages of an address space. */
struct page_range {
    std::uint64_t begin, end;
};

/** The pages of a process that stands still, all of them. The caller may trace it. Throws error. */
void read_pages(pid_t pid, const page_range &what, std::string &pages);

/** What a child of the process @pid finds zeros in: MADV_WIPEONFORK of madvise(2). Throws error. */
std::vector<page_range> wiped_on_fork(pid_t pid);

/**
 * The memory of a process that runs, as far as it is its own: private pages that are not those of a
 * file, and that are there (those in swap would be fetched). What changes while it is read is read
 * as it is then, or not at all: all that is said of it is what its pages once were. The caller may
 * trace the process (ptrace(2)).
 */
class rank_memory {
  public:
    static constexpr std::size_t kAtOnce = 1 << 20; /* bytes of the address space */

    explicit rank_memory(pid_t pid) : pid_(pid) {}
    /** From the beginning: the mappings as they are now. */
    void rewind();
    /** The next pages, whole, in order of their addresses; maybe none of the next MiB. False: there
     * are no more, or the process is gone. */
    bool read(std::string &pages);

  private:
    std::vector<page_range> find_present(std::uint64_t begin, std::uint64_t end) const;
    pid_t pid_;
    descriptor pagemap_;
    std::vector<page_range> mappings_;
    std::size_t at_ = 0;
};

} // namespace zc::holder

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_RANK_MEMORY_H_INCLUDED
#define ZC_HOLDER_RANK_MEMORY_H_INCLUDED

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"
#include "page_range.h"
#include "unchanged_pages.h"

namespace zc::holder {

/** The pages of a process that stands still, all of them, in this order. The caller may trace it.
 * Throws error. */
void read_pages(pid_t pid, const std::vector<page_range> &what, std::string &pages);

/** Pages that were read, and where: as many. */
struct read_memory {
    std::string pages;
    std::vector<page_range> ranges;
};

/** What a child of the process @pid finds zeros in: MADV_WIPEONFORK of madvise(2). Throws error. */
std::vector<page_range> wiped_on_fork(pid_t pid);

/** Whether an entry of proc_pid_pagemap(5) is of a page that is there, and of no file. */
bool is_own_page(std::uint64_t entry);

/** Bytes of what of its memory is of no file, and is there: RssAnon of proc_pid_status(5). 0 if
 * that cannot be told. */
std::uint64_t anonymous_bytes(pid_t pid);

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
    pid_t pid() const noexcept { return pid_; }
    /** From the beginning: the mappings as they are now. */
    void rewind();
    /** Those of its mappings that are of no file, as of the last rewind(). */
    const std::vector<page_range> &anonymous() const noexcept { return anonymous_; }
    /** Those that can be read, as of the last rewind(), in order. */
    const std::vector<page_range> &mappings() const noexcept { return mappings_; }
    /** All below that has been read since then, or was not there. */
    std::uint64_t position() const noexcept;
    /** The next pages, whole, in order of their addresses; maybe none of the next MiB. Those that
     * are among @unchanged, if it is not nullptr, are left out. False: there are no more, or the
     * process is gone. */
    bool read(read_memory &next, const unchanged_pages *unchanged = nullptr);

  private:
    std::vector<page_range> find_present(const page_range &where,
                                         const unchanged_pages *unchanged) const;
    void read_present(const std::vector<page_range> &present, read_memory &next) const;
    pid_t pid_;
    descriptor pagemap_;
    std::vector<page_range> mappings_, anonymous_;
    std::size_t mapping_ = 0;
    std::uint64_t at_ = 0; /* 0: at the beginning of the mapping */
};

} // namespace zc::holder

#endif

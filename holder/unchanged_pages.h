/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_UNCHANGED_PAGES_H_INCLUDED
#define ZC_HOLDER_UNCHANGED_PAGES_H_INCLUDED

#include <bitset>
#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"
#include "page_range.h"
#include "write_tracker.h"

namespace zc::holder {

/**
 * Pages of a process that need not be read again, since nothing has written to them.
 *
 * A page counts as one if it was protected (write_tracker) while nothing that had looked it up was
 * about to write to it, was read afterwards, and is unwritten still. What looks it up later in
 * order to write to it takes the protection away. So it has to be protected while all threads of
 * the process stand still, none of them in a system call (stopped_process.h), and only if nothing
 * else may write (direct_writes.h). That takes some milliseconds for a GiB, and never more than
 * kLongest. If it cannot be done, pages that were protected before stay what they are.
 *
 *   of a page: NOT_PROTECTED ── protect() ──▶ PROTECTED ── note() ──▶ READ ── protect(), as it
 *                                                 ▲                           was written ─┐
 *                                                 └────────────────────────────────────────┘
 */
class unchanged_pages {
  public:
    /** Of the process @pid, which has opened @userfault. Throws error if this kernel cannot do it.
     */
    unchanged_pages(pid_t pid, descriptor userfault);
    /** Protects what was written. @mappings: private ones of no file, since of a file's the kernel
     * does not tell a page that was given back. Returns why it could not, or not all; empty: it
     * could. */
    std::string protect(const std::vector<page_range> &mappings);
    /** The page at @address has just been read. */
    void note(std::uint64_t address);
    /** Those of @where that are not unchanged, or not known to be. */
    std::vector<page_range> changed(const page_range &where) const;

  private:
    static constexpr std::uint64_t kPage = 4096, kChunk = 256 * kPage;
    static constexpr std::chrono::milliseconds kLongest{200};
    struct chunk { /* of pages */
        std::bitset<kChunk / kPage> protected_once, read;
    };

    void arm(const page_range &where);
    bool protect_while_stopped();
    pid_t pid_;
    write_tracker tracker_;
    std::unordered_map<std::uint64_t, chunk> chunks_; /* by address / kChunk */
};

} // namespace zc::holder

#endif

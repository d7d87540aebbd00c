/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_WRITE_TRACKER_H_INCLUDED
#define ZC_HOLDER_WRITE_TRACKER_H_INCLUDED

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"
#include "page_range.h"

namespace zc::holder {

/**
 * The kernel's own knowledge of which pages a process writes: write protection that it takes away
 * at the first write, without a word to anybody (UFFD_FEATURE_WP_ASYNC of userfaultfd(2)), and
 * PAGEMAP_SCAN, which tells from which pages it has been taken: Linux 6.7 and later,
 * Documentation/admin-guide/mm/pagemap.rst. The first write to a page takes some microsecond more.
 *
 *   not tracked ── follow(), protect() ──▶ UNWRITTEN ── the first write ──▶ WRITTEN
 *        ▲                          │  ▲                             │
 *        └── unmapped, or moved by ─┴──┼────── mremap(2) ────────────┤
 *                                      └─────── protect() ───────────┘
 *
 * It knows of what is written through the page table. A device, or a system call under way, that
 * has looked the page up before it was protected is not seen: direct_writes.h.
 *
 * All ends with this object: no page is protected any more.
 */
class write_tracker {
  public:
    using time_point = std::chrono::steady_clock::time_point;

    /** Throws error if this kernel cannot do it. It looks once. */
    static void check_kernel();
    /** @userfault: of the process @pid, which alone can open it; new, so that nothing else is known
     * of it. Throws error if this kernel cannot do it. */
    write_tracker(pid_t pid, descriptor userfault);
    /** Tracks those of @mappings that the kernel lets it track: not what something else tracks. */
    void follow(const std::vector<page_range> &mappings);
    /** The pages of what it follows that are there are UNWRITTEN from now on; those that were not
     * are given to @each. Returns false if it has left some out, as it would take longer than until
     * @until. Throws error. */
    bool protect(const std::function<void(const page_range &)> &each, time_point until);
    /** The pages of @where that are UNWRITTEN now, and there; fewer if the kernel does not tell.
     * Any thread may call this, several at once. */
    std::vector<page_range> unwritten(const page_range &where) const;

  private:
    descriptor userfault_, pagemap_;
    std::vector<page_range> followed_;
};

} // namespace zc::holder

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_SAMPLE_H_INCLUDED
#define ZC_HOLDER_PAGE_SAMPLE_H_INCLUDED

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include <sys/types.h>

namespace zc::holder {

/**
 * Of the pages of a process that were read: the share that has been written since, as found by
 * some of them. Which ones is drawn by address, so each page has the same chance, and a page that
 * is read again is judged by what it was then. With n of them the standard error of a share s is
 * sqrt(s (1 - s) / n): 0.011 at most with kMost.
 */
class page_sample {
  public:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::uint64_t kMost = 2048; /* pages, of as much memory as was said */
    static constexpr std::uint64_t kOneOf = 16;  /* pages at most, of little memory */

    /** Of @bytes of memory. */
    explicit page_sample(std::uint64_t bytes);
    /** The page at @address was read, and has been @page. Throws std::bad_alloc. */
    void note(std::uint64_t address, std::string_view page);
    /** The share, from 0 to 1, of those that are another now; what the process @pid has no more
     * does not count. Takes some milliseconds. The caller may trace the process (ptrace(2)). */
    double changed(pid_t pid);
    std::size_t size() const noexcept { return sums_.size(); }

  private:
    std::uint64_t key_, below_; /* pages with a hash below that are looked at */
    std::unordered_map<std::uint64_t, std::uint32_t> sums_; /* CRC-32C, by address */
};

} // namespace zc::holder

#endif

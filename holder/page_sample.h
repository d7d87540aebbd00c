/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_SAMPLE_H_INCLUDED
#define ZC_HOLDER_PAGE_SAMPLE_H_INCLUDED

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "page_range.h"

namespace zc::holder {

/**
 * Of the pages of a process: the share that has been written, as found by some of them. Of so
 * many pages one is looked at, always the same, from a place on that is drawn: the number is
 * odd, so that what a program does with each page at a power of two is found in its share. A page
 * is judged by what it was when it was noted last. With n of them the standard error of a share s
 * is sqrt(s (1 - s) / n): 0.011 at most with kMost.
 */
class page_sample {
  public:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::uint64_t kMost = 2048; /* pages, of as much memory as was said */
    static constexpr std::uint64_t kOneOf = 15;  /* pages at most, of little memory */

    /** Of @bytes of memory. */
    explicit page_sample(std::uint64_t bytes);
    /** Notes what is there of @mappings, of the process @pid; nothing, if so little of them is that
     * looking for it would take long. */
    void note_all(pid_t pid, const std::vector<page_range> &mappings);
    /** The page at @address was read, and has been @page. If there is more memory than was said,
     * two of three are forgotten in time. Throws std::bad_alloc. */
    void note(std::uint64_t address, std::string_view page);
    struct shares {
        double below, above; /* from 0 to 1; 0 if there are none */
    };
    /** Of those below @address and of the others, the shares that are another now; what the
     * process @pid has no more does not count. Takes some milliseconds, and fetches what is in
     * swap. The caller may trace the process (ptrace(2)). */
    shares changed(pid_t pid, std::uint64_t address);
    std::size_t size() const noexcept { return sums_.size(); }

  private:
    std::vector<std::uint64_t> there(pid_t pid, const std::vector<page_range> &mappings) const;
    std::uint64_t one_of_, first_;                          /* pages */
    std::unordered_map<std::uint64_t, std::uint32_t> sums_; /* CRC-32C, by address */
};

} // namespace zc::holder

#endif

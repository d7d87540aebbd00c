/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SPLITS_H_INCLUDED
#define ZC_SPLITS_H_INCLUDED

#include "page.h"

#include <mutex>
#include <span>
#include <unordered_set>

namespace zc {

/**
 * splits - keeps rebinding away from vm.max_map_count
 *
 * An exchange leaves VMAs that end where the exchanged range ended, in the
 * user's buffer and in the landing slot. Two VMAs can only meet at an address
 * where some exchange began or ended, hence
 *
 *     mappings added by rebinding <= |boundaries|
 *
 * Boundaries may heal unseen, when pages return to where they came from; so
 * when the set is full the real mappings are read and the healed ones dropped.
 *
 * Any thread.
 */
class splits {
  public:
    splits(std::size_t max_splits, std::size_t max_map_count);

    /** Room for these boundaries? Remembers them if so. */
    bool admit(std::span<const addr_t> boundaries);
    /** After a move failed for want of memory: is it the number of mappings?
     *  Then admits nothing for a while. */
    bool at_limit() noexcept;
    std::size_t count() const;

  private:
    bool recount();

    /* Counting tens of thousands of mappings takes as many microseconds, so
     * after a count in vain this many refusals follow without another. */
    static constexpr std::size_t kRefusalsPerCount = 1024;
    /* The kernel refuses a move this close to the limit. */
    static constexpr std::size_t kMargin = 8;

    const std::size_t max_;
    const std::size_t max_map_count_;
    mutable std::mutex mutex_;
    std::unordered_set<addr_t> boundaries_;
    std::size_t refusals_left_ = 0;
};

} // namespace zc

#endif /* ZC_SPLITS_H_INCLUDED */

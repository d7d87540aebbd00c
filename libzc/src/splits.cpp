/* SPDX-License-Identifier: BSD-3-Clause */
#include "splits.h"

#include "vma.h"

namespace zc {

splits::splits(std::size_t max_splits, std::size_t max_map_count)
    : max_(max_splits), max_map_count_(max_map_count)
{
}

bool splits::admit(std::span<const addr_t> boundaries)
{
    std::lock_guard lock(mutex_);
    if (refusals_left_ > 0) {
        refusals_left_--;
        return false;
    }
    std::size_t added = 0;
    for (addr_t b : boundaries)
        added += !boundaries_.contains(b);
    if (boundaries_.size() + added > max_) {
        if (!recount() || boundaries_.size() + boundaries.size() > max_) {
            refusals_left_ = kRefusalsPerCount;
            return false;
        }
    }
    boundaries_.insert(boundaries.begin(), boundaries.end());
    return true;
}

bool splits::at_limit() noexcept
try {
    if (mapping_starts().size() + kMargin < max_map_count_)
        return false;
    std::lock_guard lock(mutex_);
    refusals_left_ = kRefusalsPerCount;
    return true;
} catch (const std::bad_alloc &) {
    return false; /* it is memory that is wanting */
}

std::size_t splits::count() const
{
    std::lock_guard lock(mutex_);
    return boundaries_.size();
}

/* Drops the healed boundaries. Worth going on only if that made noticeable
 * room, and if the process itself has not come near its limit meanwhile. */
bool splits::recount()
{
    std::vector<addr_t> starts = mapping_starts();
    if (starts.empty() || starts.size() > max_map_count_ / 4 * 3)
        return false;
    std::unordered_set<addr_t> real;
    for (addr_t start : starts)
        if (boundaries_.contains(start))
            real.insert(start);
    boundaries_ = std::move(real);
    return boundaries_.size() <= max_ / 4 * 3;
}

} // namespace zc

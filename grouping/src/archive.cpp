/* SPDX-License-Identifier: BSD-3-Clause */
#include "archive.h"

namespace zc::groups {

archive::archive(size_t bytes, std::pmr::memory_resource *memory)
    : shelf_(bytes, memory), samples_(reserved<catalogue>(kSamples, memory))
{
}

void archive::add(const catalogue &sample)
{
    while (!samples_.empty() &&
           (samples_.size() == kSamples || shelf_.limit() - shelf_.used() < sample.bytes()))
        samples_.erase(samples_.begin());
    samples_.emplace_back(sample, &shelf_);
}

std::optional<archive::successor> archive::after(size_t i, size_t pattern) const
{
    const catalogue &sample = samples_[i];
    const catalogue::pattern p = sample[pattern];
    const size_t end = p.offsets.back() + p.symbols.size();
    if (!sample.ended_with(pattern)) {
        const auto next = sample.next(end);
        if (next)
            return successor{sample[next->pattern], next->offset - end};
    }
    if (i + 1 == samples_.size())
        return std::nullopt;
    const catalogue &following = samples_[i + 1];
    const auto first = following.next(0);
    if (!first)
        return std::nullopt;
    /* A round may reach beyond its sample by a don't-care. */
    return successor{following[first->pattern],
                     std::max(sample.length(), end) - end + first->offset};
}

} // namespace zc::groups

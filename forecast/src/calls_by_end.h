/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_CALLS_BY_END_H_INCLUDED
#define ZCF_CALLS_BY_END_H_INCLUDED

#include <algorithm>
#include <numeric>
#include <vector>

#include "message.h"

namespace zc::forecast {

/** Finds a rank's call by its end: it completed the receives and collectives that are done then. A
 * number for each call, since a run has millions. */
class calls_by_end {
  public:
    explicit calls_by_end(const std::vector<zct::call> &calls) : calls_(calls), order_(calls.size())
    {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto earlier = [&](std::size_t a, std::size_t b) {
            return calls_[a].end_ns < calls_[b].end_ns;
        };
        /* Only those of several threads may not be. */
        if (!std::is_sorted(order_.begin(), order_.end(), earlier))
            std::stable_sort(order_.begin(), order_.end(), earlier);
    }

    /** Its place among the calls, of several the last one's; kNoCall if there is none. */
    std::size_t at(std::int64_t end_ns) const
    {
        const auto after = std::upper_bound(
            order_.begin(), order_.end(), end_ns,
            [&](std::int64_t end, std::size_t call) { return end < calls_[call].end_ns; });
        if (after == order_.begin() || calls_[*(after - 1)].end_ns != end_ns)
            return kNoCall;
        return *(after - 1);
    }

  private:
    const std::vector<zct::call> &calls_;
    std::vector<std::size_t> order_;
};

} // namespace zc::forecast

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace zc {

namespace {

/** Where the most is; 0 where there is nothing. */
template <typename A>
std::size_t place_of_most(const A &bytes)
{
    return static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin());
}

} // namespace

static_assert(ZC_MEANS_COPY == 0 && ZC_REASON_NONE == 0);

zc_delivery_t tally::summary(std::size_t len) const
{
    std::size_t moved = std::accumulate(rebound.begin(), rebound.end(), std::size_t{0});
    return {moved, len - moved, static_cast<zc_means_t>(place_of_most(rebound)),
            static_cast<zc_reason_t>(place_of_most(copied))};
}

void counters::add(const tally &parts, const zc_delivery_t &summary)
{
    std::lock_guard lock(mutex_);
    sum_.deliveries++;
    sum_.bytes_rebound += summary.bytes_rebound;
    sum_.bytes_copied += summary.bytes_copied;
    if (summary.bytes_rebound > 0)
        sum_.rebound_by_means[summary.means]++;
    for (std::size_t i = 0; i < parts.rebound.size(); i++)
        sum_.bytes_rebound_by_means[i] += parts.rebound[i];
    if (summary.reason == ZC_REASON_NONE)
        return;
    for (std::size_t i = 0; i < parts.copied.size(); i++) {
        sum_.copied_by_reason[i] += parts.copied[i] > 0;
        sum_.bytes_copied_by_reason[i] += parts.copied[i];
    }
}

void counters::report(zc_stats_t &out) const
{
    std::lock_guard lock(mutex_);
    out.deliveries = sum_.deliveries;
    out.bytes_rebound = sum_.bytes_rebound;
    out.bytes_copied = sum_.bytes_copied;
    std::ranges::copy(sum_.rebound_by_means, std::begin(out.rebound_by_means));
    std::ranges::copy(sum_.bytes_rebound_by_means, std::begin(out.bytes_rebound_by_means));
    std::ranges::copy(sum_.copied_by_reason, std::begin(out.copied_by_reason));
    std::ranges::copy(sum_.bytes_copied_by_reason, std::begin(out.bytes_copied_by_reason));
}

} // namespace zc

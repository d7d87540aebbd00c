/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <algorithm>
#include <iterator>

namespace zc {

void counters::add(const zc_delivery_t &d)
{
    std::lock_guard lock(mutex_);
    sum_.deliveries++;
    sum_.bytes_rebound += d.bytes_rebound;
    sum_.bytes_copied += d.bytes_copied;
    if (d.reason == ZC_REASON_NONE) {
        if (d.bytes_rebound > 0)
            sum_.rebound_by_means[d.means]++;
    } else {
        sum_.copied_by_reason[d.reason]++;
        sum_.bytes_copied_by_reason[d.reason] += d.bytes_copied;
    }
}

void counters::report(zc_stats_t &out) const
{
    std::lock_guard lock(mutex_);
    out.deliveries = sum_.deliveries;
    out.bytes_rebound = sum_.bytes_rebound;
    out.bytes_copied = sum_.bytes_copied;
    std::ranges::copy(sum_.rebound_by_means, std::begin(out.rebound_by_means));
    std::ranges::copy(sum_.copied_by_reason, std::begin(out.copied_by_reason));
    std::ranges::copy(sum_.bytes_copied_by_reason, std::begin(out.bytes_copied_by_reason));
}

} // namespace zc

/* SPDX-License-Identifier: BSD-3-Clause */
#include "agreement.h"

#include <algorithm>

#include "forecaster.h"

namespace zc::groups {

constexpr float kDecay = 0.75f;

static double share(double common, double sum)
{
    const double either = sum - common;
    return either > 0 ? common / either : 0;
}

void agreement::tally::expected(const flow &f, double scale, const flow *found)
{
    const double bytes = scale * weight(f);
    common_bytes += found ? std::min(bytes, weight(*found)) : 0;
    all_bytes += bytes;
    if (scale * static_cast<double>(f.messages) >= static_cast<double>(kLikelyMessages)) {
        common_pairs += found ? 1 : 0;
        all_pairs += 1;
    }
}

void agreement::tally::came(const flow &f)
{
    all_bytes += weight(f);
    all_pairs += 1;
}

float agreement::tally::score() const
{
    return static_cast<float>((share(common_bytes, all_bytes) + share(common_pairs, all_pairs)) /
                              2);
}

void agreement::score(const flow_table &forecast, double scale, const flow_table &actual)
{
    tally all;
    for (const flow &f : forecast.flows()) {
        const flow *found = actual.find(f.src, f.dst);
        tallies_[f.src].expected(f, scale, found);
        all.expected(f, scale, found);
    }
    for (const flow &f : actual.flows()) {
        tallies_[f.src].came(f);
        all.came(f);
    }
    for (size_t sender = 0; sender < scores_.size(); sender++) {
        if (tallies_[sender].all_bytes > 0)
            scores_[sender] = kDecay * scores_[sender] + (1 - kDecay) * tallies_[sender].score();
        tallies_[sender] = {};
    }
    if (all.all_bytes > 0)
        overall_ = kDecay * overall_ + (1 - kDecay) * all.score();
}

} // namespace zc::groups

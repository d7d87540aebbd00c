/* SPDX-License-Identifier: BSD-3-Clause */
#include "experience.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace zc {

namespace {

constexpr double kMost = 4;     /* and 1/4 at least */
constexpr double kSurprise = 2; /* a sample counts as at most this times the factor */
constexpr unsigned kMemory = 8; /* samples */

} // namespace

void experience::learn(zc_means_t means, double predicted_ns, double measured_ns)
{
    /* A clock too coarse, or costs that are not known. */
    if (!(predicted_ns > 0) || !(measured_ns > 0) || !std::isfinite(predicted_ns))
        return;
    lesson &l = lessons_[means];
    double sample =
        std::clamp(measured_ns / predicted_ns, l.factor / kSurprise, l.factor * kSurprise);
    l.samples = std::min(l.samples + 1, kMemory);
    l.factor += (sample - l.factor) / l.samples;
    l.factor = std::clamp(l.factor, 1 / kMost, kMost);
}

zc_costs_t experience::applied(zc_costs_t costs) const
{
    for (double *cost :
         {&costs.copy_ns_fixed, &costs.copy_ns_per_byte, &costs.copy_ns_per_byte_long})
        *cost *= factor(ZC_MEANS_COPY);
    for (double *cost :
         {&costs.mremap_ns_fixed, &costs.mremap_ns_per_page, &costs.mremap_ns_per_2m})
        *cost *= factor(ZC_MEANS_MREMAP);
    for (double *cost : {&costs.kmod_ns_fixed, &costs.kmod_ns_per_page, &costs.kmod_ns_per_2m})
        *cost *= factor(ZC_MEANS_KMOD);
    return costs;
}

bool tries_the_other(std::uint64_t nth)
{
    constexpr std::uint64_t kFirst = 8, kEvery = 64;
    return nth % kEvery == 0 || (nth >= kFirst && nth < kEvery && std::has_single_bit(nth));
}

} // namespace zc

/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"

#include <cmath>
#include <limits>

namespace zc {

namespace {

constexpr std::size_t kLong = std::size_t{4} << 20;

} // namespace

const zc_costs_t kCostsUnmeasured = {
    .size = sizeof(zc_costs_t),
    .copy_ns_fixed = 100,
    .copy_ns_per_byte = 0.08,
    .copy_ns_per_byte_long = 0.08,
    .mremap_ns_fixed = 50'000,
    .mremap_ns_per_page = 40,
    .mremap_ns_per_2m = 2'000,
    .kmod_ns_fixed = 0,
    .kmod_ns_per_page = 0,
    .kmod_ns_per_2m = 0,
};

double copy_ns(const zc_costs_t &costs, std::size_t len)
{
    if (len == 0)
        return 0;
    std::size_t bulk = std::min(len, kLong);
    return costs.copy_ns_fixed + costs.copy_ns_per_byte * static_cast<double>(bulk) +
           costs.copy_ns_per_byte_long * static_cast<double>(len - bulk);
}

double delivery_ns(const zc_costs_t &costs, zc_means_t means, std::size_t len,
                   std::size_t rebindable, bool tables)
{
    double fixed = 0, per_page = 0, per_2m = 0;
    switch (means) {
    case ZC_MEANS_COPY:
        return copy_ns(costs, len);
    case ZC_MEANS_MREMAP:
        fixed = costs.mremap_ns_fixed;
        per_page = costs.mremap_ns_per_page;
        per_2m = costs.mremap_ns_per_2m;
        break;
    case ZC_MEANS_KMOD:
        fixed = costs.kmod_ns_fixed;
        per_page = costs.kmod_ns_per_page;
        per_2m = costs.kmod_ns_per_2m;
        break;
    default:
        break;
    }
    if (fixed <= 0 || rebindable == 0 || rebindable > len)
        return std::numeric_limits<double>::infinity();
    std::size_t whole = tables ? round_down(rebindable, kHuge) : 0;
    return fixed + per_2m * static_cast<double>(whole / kHuge) +
           per_page * static_cast<double>((rebindable - whole) / kPage) +
           copy_ns(costs, len - rebindable);
}

bool costs_plausible(const zc_costs_t &c)
{
    for (double value : {c.copy_ns_fixed, c.copy_ns_per_byte, c.copy_ns_per_byte_long,
                         c.mremap_ns_fixed, c.mremap_ns_per_page, c.mremap_ns_per_2m,
                         c.kmod_ns_fixed, c.kmod_ns_per_page, c.kmod_ns_per_2m})
        if (!std::isfinite(value) || value < 0)
            return false;
    return true;
}

} // namespace zc

extern "C" zc_means_t zc_cheapest(const zc_costs_t *costs, size_t len, size_t rebindable,
                                  int tables, uint32_t means) noexcept
{
    if (!costs)
        return ZC_MEANS_COPY;
    zc_means_t best = ZC_MEANS_COPY;
    double least = zc::copy_ns(*costs, len);
    for (zc_means_t other : {ZC_MEANS_MREMAP, ZC_MEANS_KMOD}) {
        if (!(means & zc::means_bit(other)))
            continue;
        double cost = zc::delivery_ns(*costs, other, len, rebindable, tables != 0);
        if (cost < least) {
            best = other;
            least = cost;
        }
    }
    return best;
}

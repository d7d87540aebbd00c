/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"

#include <array>
#include <cmath>
#include <limits>

namespace zc {

namespace {

constexpr std::size_t kLong = std::size_t{4} << 20;
constexpr double kNever = std::numeric_limits<double>::infinity();

/* Where several cost the same, the first is taken. */
constexpr std::array<way, 4> kWays = {{
    {ZC_MEANS_COPY, ZC_MEANS_COPY},
    {ZC_MEANS_MREMAP, ZC_MEANS_MREMAP},
    {ZC_MEANS_KMOD, ZC_MEANS_KMOD},
    {ZC_MEANS_MREMAP, ZC_MEANS_KMOD},
}};

double per_unit(double cost, std::size_t bytes, std::size_t unit)
{
    const std::size_t whole = bytes / unit;
    return cost * static_cast<double>(whole);
}

/** Two moves suffice for one VMA on either side; each further one takes one. */
double mremap_ns(const zc_costs_t &c, std::size_t units, std::size_t pages, std::size_t moves)
{
    if (c.mremap_ns_fixed <= 0)
        return kNever;
    return c.mremap_ns_fixed * static_cast<double>(moves) / 2 +
           per_unit(c.mremap_ns_per_2m, units, kHuge) +
           per_unit(c.mremap_ns_per_page, pages, kPage);
}

/** The module goes by pages where they are small, congruent or not. */
double kmod_ns(const zc_costs_t &c, std::size_t units, std::size_t pages, bool huge)
{
    if (c.kmod_ns_fixed <= 0)
        return kNever;
    return c.kmod_ns_fixed +
           (huge ? per_unit(c.kmod_ns_per_2m, units, kHuge)
                 : per_unit(c.kmod_ns_per_page, units, kPage)) +
           per_unit(c.kmod_ns_per_page, pages, kPage);
}

double exchange_ns(const zc_costs_t &c, const extent &e, way w)
{
    std::size_t pages = e.rebindable - e.in_units;
    if (w.units == w.pages)
        return w.units == ZC_MEANS_MREMAP ? mremap_ns(c, e.in_units, pages, e.moves)
                                          : kmod_ns(c, e.in_units, pages, e.huge);
    if (e.in_units == 0 || pages == 0)
        return kNever;
    /* The pages are at two ends, which are two calls of the module. */
    return mremap_ns(c, e.in_units, 0, e.moves) + kmod_ns(c, 0, pages, false) + c.kmod_ns_fixed;
}

/** The cheapest way that is not @excluded; @otherwise if there is none. */
way cheapest_but(const zc_costs_t &costs, const extent &e, std::uint32_t means, const way *excluded,
                 way otherwise)
{
    way best = otherwise;
    double least = kNever;
    for (way w : kWays) {
        double ns = excluded && w == *excluded ? kNever : way_ns(costs, e, w, means);
        if (ns < least) {
            best = w;
            least = ns;
        }
    }
    return best;
}

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

zc_costs_t with_kmod_guessed(zc_costs_t costs)
{
    if (costs.kmod_ns_fixed <= 0) {
        costs.kmod_ns_fixed = 4'000;
        costs.kmod_ns_per_page = 60;
        costs.kmod_ns_per_2m = 8'000;
    }
    return costs;
}

double copy_ns(const zc_costs_t &costs, std::size_t len)
{
    if (len == 0)
        return 0;
    std::size_t bulk = std::min(len, kLong);
    return costs.copy_ns_fixed + costs.copy_ns_per_byte * static_cast<double>(bulk) +
           costs.copy_ns_per_byte_long * static_cast<double>(len - bulk);
}

double way_ns(const zc_costs_t &costs, const extent &e, way w, std::uint32_t means)
{
    if (!(means & means_bit(w.units)) || !(means & means_bit(w.pages)))
        return kNever;
    if (!w.exchanges())
        return copy_ns(costs, e.len);
    if (e.rebindable == 0 || e.rebindable > e.len)
        return kNever;
    return exchange_ns(costs, e, w) + copy_ns(costs, e.len - e.rebindable);
}

way cheapest_way(const zc_costs_t &costs, const extent &e, std::uint32_t means)
{
    return cheapest_but(costs, e, means, nullptr, {});
}

way second_way(const zc_costs_t &costs, const extent &e, std::uint32_t means, way best)
{
    return cheapest_but(costs, e, means, &best, best);
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
    zc::extent e{len, rebindable};
    e.in_units = tables ? zc::round_down(rebindable, zc::kHuge) : 0;
    e.huge = tables > 1;
    zc::way w = zc::cheapest_way(*costs, e, means | zc::means_bit(ZC_MEANS_COPY));
    return e.in_units > rebindable / 2 ? w.units : w.pages;
}

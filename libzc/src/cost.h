/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_COST_H_INCLUDED
#define ZC_COST_H_INCLUDED

#include "page.h"
#include "zc/zc.h"

namespace zc {

constexpr std::uint32_t means_bit(zc_means_t means)
{
    return 1u << means;
}

inline constexpr std::uint32_t kAllMeans = (1u << ZC_MEANS_COUNT) - 1;
inline constexpr std::uint32_t kRebindingMeans =
    means_bit(ZC_MEANS_MREMAP) | means_bit(ZC_MEANS_KMOD);

/** Used until the machine has been measured: a slow kernel and a fast memory,
 *  so that an unmeasured machine copies rather than loses. Without the module. */
extern const zc_costs_t kCostsUnmeasured;

/** @costs with the like for the module, if it says nothing about it. */
zc_costs_t with_kmod_guessed(zc_costs_t costs);

/** What there is to deliver. */
struct extent {
    std::size_t len;          /* of the message */
    std::size_t rebindable;   /* bytes of whole pages in it */
    std::size_t in_units = 0; /* of these, bytes in 2 MiB units that are whole on both sides */
    bool huge = false;        /* the units are huge pages */
    std::size_t moves = 2;    /* calls of mremap it takes: VMAs on both sides */
};

/** A way to deliver it: the means that exchanges the whole units, and the one for the
 *  pages before and behind them. Mostly both are the same means, or none. */
struct way {
    zc_means_t units = ZC_MEANS_COPY;
    zc_means_t pages = ZC_MEANS_COPY;

    bool exchanges() const { return pages != ZC_MEANS_COPY; }
    bool uses(zc_means_t means) const { return units == means || pages == means; }
    friend constexpr bool operator==(way, way) = default;
};

/** Nanoseconds to copy @len bytes. */
double copy_ns(const zc_costs_t &costs, std::size_t len);

/** Nanoseconds to deliver @e by @w; infinite if it takes means that are not
 *  among @means or have no cost, i.e. are not available. */
double way_ns(const zc_costs_t &costs, const extent &e, way w, std::uint32_t means = kAllMeans);

/** The cheapest way by @means; to copy, if there is none. */
way cheapest_way(const zc_costs_t &costs, const extent &e, std::uint32_t means);
/** The cheapest but for @best; @best, if there is no other. */
way second_way(const zc_costs_t &costs, const extent &e, std::uint32_t means, way best);

/** Finite and not negative? */
bool costs_plausible(const zc_costs_t &costs);

class address_space;
class exchanger;

/** Measures the costs inside this process. @allowed: ZC_FLAG_ALLOW_*.
 *  Return: 0 or -ENOMEM. */
int calibrate(address_space &space, exchanger &device, std::uint32_t allowed, zc_costs_t &out);

/** Reads or writes a cost file (JSON). Return: 0, -EBADMSG, or -errno. */
int load_costs(const char *path, zc_costs_t &out);
int save_costs(const char *path, const zc_costs_t &costs);

} // namespace zc

#endif /* ZC_COST_H_INCLUDED */

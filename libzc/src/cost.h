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

/** Used until the machine has been measured: a slow kernel and a fast memory,
 *  so that an unmeasured machine copies rather than loses. */
extern const zc_costs_t kCostsUnmeasured;

/** Nanoseconds to copy @len bytes. */
double copy_ns(const zc_costs_t &costs, std::size_t len);

/** Nanoseconds to deliver @len bytes of which @rebindable are exchanged;
 *  infinite for means without a cost, i.e. not available. */
double delivery_ns(const zc_costs_t &costs, zc_means_t means, std::size_t len,
                   std::size_t rebindable, bool tables);

/** Finite and not negative? */
bool costs_plausible(const zc_costs_t &costs);

class address_space;

/** Measures the costs inside this process. Return: 0 or -ENOMEM. */
int calibrate(address_space &space, bool allow_pinned, zc_costs_t &out);

/** Reads or writes a cost file (JSON). Return: 0, -EBADMSG, or -errno. */
int load_costs(const char *path, zc_costs_t &out);
int save_costs(const char *path, const zc_costs_t &costs);

} // namespace zc

#endif /* ZC_COST_H_INCLUDED */

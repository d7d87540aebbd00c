/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <algorithm>

namespace zc::forecast {

double zc_model::transfer_ns(const message &m, const network &n) const
{
    const network::path &path = n.of(m);
    return path.latency_ns + static_cast<double>(m.bytes) / (path.*rate);
}

double zc_model::delivery_ns(const message &m) const
{
    const double copy = deliver_ns + static_cast<double>(m.bytes) / copy_rate;
    if (m.bytes < announced_from(m))
        return copy;
    return hit_rate * std::min(rebind_ns, copy) + (1 - hit_rate) * copy;
}

zc_model cautious_model(double hit_rate)
{
    zc_model model = likely_model(hit_rate);
    model.overlap_bytes = UINT64_MAX;
    model.rebind_ns = 170'000;
    model.copy_rate = 5;
    model.rate = &network::path::slow;
    return model;
}

zc_model likely_model(double hit_rate)
{
    zc_model model;
    model.hit_rate = hit_rate;
    return model;
}

zc_model hopeful_model()
{
    zc_model model;
    model.rebind_ns = 120'000;
    model.rate = &network::path::fast;
    model.apart_both_ways = true;
    return model;
}

} // namespace zc::forecast

/* SPDX-License-Identifier: BSD-3-Clause */
#include "links.h"

#include <algorithm>
#include <limits>

namespace zc::forecast {

namespace {

double append(std::map<std::size_t, double> &free, std::size_t host, double now, double taken_ns)
{
    const auto link = free.try_emplace(host, -std::numeric_limits<double>::infinity()).first;
    link->second = std::max(now, link->second) + taken_ns;
    return link->second;
}

} // namespace

double links::carry(const message &m, double now, double taken_ns)
{
    if (m.one_host)
        return now + taken_ns;
    const double out = append(out_free_, m.send.host, now, taken_ns);
    return std::max(out, append(in_free_, m.receive.host, now, taken_ns));
}

} // namespace zc::forecast

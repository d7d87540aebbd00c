/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <algorithm>

namespace zc::forecast {

namespace {

constexpr std::uint64_t kLargeBytes = 64 << 10;
constexpr std::uint64_t kSmallBytes = 4096;
/* A quarter of them needs not be an accident. */
constexpr std::size_t kLeastSamples = 4;

double quantile(std::vector<double> &values, double share)
{
    const auto nth = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(nth),
                     values.end());
    return values[nth];
}

void measure(const std::vector<message> &messages, bool one_host, network::path &path)
{
    std::vector<double> small;
    std::vector<double> rates;
    for (const message &m : messages) {
        const std::int64_t begin = std::max(m.send.waiting_ns, m.receive.waiting_ns);
        const bool waited = m.receive.call != kNoCall && m.send.call != kNoCall;
        const auto taken = static_cast<double>(m.receive.done_ns - begin);
        if (m.one_host != one_host || !waited || taken <= 0)
            continue;
        if (m.bytes >= kLargeBytes && !m.surely_eager())
            rates.push_back(static_cast<double>(m.bytes) / taken);
        else if (m.bytes < kSmallBytes && !m.unexpected())
            small.push_back(taken);
    }
    if (small.size() >= kLeastSamples)
        path.latency_ns = quantile(small, 0.5);
    if (rates.size() < kLeastSamples)
        return;
    path.slow = quantile(rates, 0.25);
    path.usual = quantile(rates, 0.5);
    path.fast = quantile(rates, 0.75);
    path.samples = rates.size();
}

} // namespace

network measure_network(const std::vector<message> &messages)
{
    network n;
    measure(messages, false, n.remote);
    measure(messages, true, n.local);
    return n;
}

} // namespace zc::forecast

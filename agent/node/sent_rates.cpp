/* SPDX-License-Identifier: BSD-3-Clause */
#include "sent_rates.h"

namespace zc::agent {
namespace {

constexpr double kWeight = 0.3; /* of the newest reading */
constexpr double kNothing =
    0.01; /* messages in a second: below that, and without any, it is forgotten
           */

void blend(double &mean, double now)
{
    mean += kWeight * (now - mean);
}

} // namespace

void sent_rates::add(std::uint64_t now_ns, std::span<const zcp_event_t> events,
                     std::uint64_t missed)
{
    if (events.empty() && missed > 0)
        return; /* many, and to whom is not known */
    const double passed = at_ns_ == 0 ? 0 : static_cast<double>(now_ns - at_ns_) / 1e9;
    at_ns_ = now_ns;
    if (passed <= 0)
        return;
    const double seen = static_cast<double>(events.size());
    const double share = events.empty() ? 0 : (seen + static_cast<double>(missed)) / seen / passed;
    std::map<rank_id, flow> now;
    for (const zcp_event_t &each : events) {
        now[each.dst].bytes_per_s += share * static_cast<double>(each.bytes);
        now[each.dst].messages_per_s += share;
    }
    for (const auto &[receiver, rate] : now)
        rates_[receiver].peer = receiver;
    for (auto &[receiver, mean] : rates_) {
        const auto found = now.find(receiver);
        blend(mean.bytes_per_s, found == now.end() ? 0 : found->second.bytes_per_s);
        blend(mean.messages_per_s, found == now.end() ? 0 : found->second.messages_per_s);
    }
    std::erase_if(rates_, [&](const auto &each) {
        return each.second.messages_per_s < kNothing && !now.contains(each.first);
    });
}

std::vector<flow> sent_rates::flows() const
{
    std::vector<flow> all;
    for (const auto &[receiver, rate] : rates_)
        all.push_back(rate);
    return all;
}

} // namespace zc::agent

/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <algorithm>
#include <cmath>

namespace zc::agent::sim {
namespace {

constexpr std::uint32_t kPartners = 4; /* ranks talk within groups of so many */
constexpr int kPhaseMessages = 10;     /* per second and rank */

} // namespace

world::world(const options &given)
    : o(given), end(from_seconds(o.seconds)), calm_from(from_seconds(o.seconds * (1 - o.calm))),
      nodes(o.nodes)
{
}

nanos world::local(std::uint32_t n) const
{
    return nodes[n].offset + static_cast<nanos>(static_cast<double>(now) * (1 + nodes[n].drift));
}

nanos world::global(std::uint32_t n, nanos at) const
{
    return static_cast<nanos>(
        std::ceil(static_cast<double>(at - nodes[n].offset) / (1 + nodes[n].drift)));
}

bool world::in_phase_a(nanos at, double before_end) const
{
    double place = std::fmod(to_seconds(at), o.phase_a + o.phase_b);
    return place < o.phase_a && (before_end <= 0 || place >= o.phase_a - before_end);
}

rank_id world::partner(const job &j, rank_id rank, nanos at) const
{
    rank_id other = j.seat[rank] ^ (in_phase_a(at, 0) ? 2u : 1u);
    return static_cast<rank_id>(std::find(j.seat.begin(), j.seat.end(), other) - j.seat.begin());
}

std::vector<zcp_event_t> world::traffic(job &j, rank_profile &p, std::uint32_t n) const
{
    std::vector<zcp_event_t> events;
    rank_id self = p.key.rank;
    if (o.phase_a > 0) {
        p.flows.push_back({partner(j, self, now), 1e6, kPhaseMessages});
        for (int i = kPhaseMessages - 1; i >= 0; i--) {
            nanos at = now - i * (kSecond / kPhaseMessages);
            if (at < 0)
                continue;
            rank_id other = partner(j, self, at);
            events.push_back({self, other, 100'000, static_cast<std::uint64_t>(at), 0, 0});
            if (!j.at_the_end)
                continue;
            j.after.bytes += 100'000;
            j.after.across += j.where[other] != n ? 100'000 : 0;
        }
        return events;
    }
    rank_id first = self / kPartners * kPartners;
    for (rank_id other = first; other < std::min<std::size_t>(first + kPartners, j.where.size());
         other++) {
        if (other == self)
            continue;
        p.flows.push_back({other, 1e6, 10});
        events.push_back({self, other, 100'000, static_cast<std::uint64_t>(now), 0, 0});
    }
    return events;
}

double world::node_pace(std::uint32_t n) const
{
    const node &it = nodes[n];
    return pace(it.others + static_cast<double>(it.ranks.size()), it.cpus, it.speed);
}

double world::true_pace(const job &j) const
{
    double slowest = 0;
    for (std::uint32_t n : j.where)
        slowest = std::max(slowest, node_pace(n));
    return slowest;
}

balance_sheet world::measure() const
{
    balance_sheet sheet;
    double sum = 0, squares = 0;
    for (const node &it : nodes) {
        double load = (it.others + static_cast<double>(it.ranks.size())) / (it.cpus * it.speed);
        sum += load;
        squares += load * load;
    }
    auto count = static_cast<double>(nodes.size());
    sheet.imbalance = std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
    for (const auto &[id, j] : jobs) {
        double p = true_pace(j);
        sheet.mean += p / static_cast<double>(jobs.size());
        sheet.worst = std::max(sheet.worst, p);
    }
    return sheet;
}

} // namespace zc::agent::sim

/* SPDX-License-Identifier: BSD-3-Clause */
#include "placement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include <scotch.h>

namespace zc::agent {
namespace {

using nodes_of = std::vector<std::uint32_t>;
constexpr int kPasses = 16;
constexpr std::size_t kMostRanks = 1 << 16;
constexpr double kWorthwhile = 1e-9; /* of the whole: gains below are rounding */

/** Traffic of each rank with each other, both ways. */
struct traffic {
    std::vector<std::map<std::uint32_t, double>> of;
    double heaviest = 1;

    explicit traffic(const placement_problem &p) : of(p.now.size())
    {
        for (const zcp_flow_t &f : p.flows) {
            if (f.src >= of.size() || f.dst >= of.size() || f.src == f.dst)
                continue;
            double weight = static_cast<double>(f.bytes) + f.messages;
            of[f.src][f.dst] += weight;
            double now = of[f.dst][f.src] += weight;
            heaviest = std::max(heaviest, now);
        }
    }
};

class search {
  public:
    explicit search(const placement_problem &p) : p_(p), traffic_(p), nodes_(p.room.size()) {}

    const traffic &all() const { return traffic_; }

    /** Ranks beyond the room of their node go where it costs least. */
    bool fit(nodes_of &where) const
    {
        std::vector<std::uint32_t> used = usage(where);
        for (std::size_t n = 0; n < nodes_; n++) {
            while (used[n] > p_.room[n]) {
                double best = INFINITY;
                std::size_t who = 0;
                std::uint32_t to = 0;
                for (std::size_t r = 0; r < where.size(); r++) {
                    if (where[r] != n || p_.fixed[r])
                        continue;
                    for (std::uint32_t m = 0; m < nodes_; m++) {
                        double price = m != n && used[m] < p_.room[m]
                                           ? price_of(where, r, m) - price_of(where, r, where[r])
                                           : INFINITY;
                        if (price < best) {
                            best = price;
                            who = r;
                            to = m;
                        }
                    }
                }
                if (best == INFINITY)
                    return false;
                where[who] = to;
                used[n]--;
                used[to]++;
            }
        }
        return true;
    }

    void improve(nodes_of &where) const
    {
        std::vector<std::uint32_t> used = usage(where);
        double least = kWorthwhile * std::max(placement_cost(p_, where), 1e-300);
        for (int pass = 0; pass < kPasses; pass++) {
            bool better = false;
            for (std::size_t r = 0; r < where.size(); r++) {
                if (!p_.fixed[r])
                    better = improve_one(where, used, r, least) || better;
            }
            if (!better)
                break;
        }
    }

  private:
    std::vector<std::uint32_t> usage(const nodes_of &where) const
    {
        std::vector<std::uint32_t> used(nodes_, 0);
        for (std::uint32_t n : where)
            used[n]++;
        return used;
    }
    /** What the traffic of @r costs if it is on @n. */
    double price_of(const nodes_of &where, std::size_t r, std::uint32_t n,
                    std::size_t but = SIZE_MAX, std::uint32_t but_on = 0) const
    {
        double price = 0;
        for (const auto &[other, weight] : traffic_.of[r])
            price += weight * p_.cost[n * nodes_ + (other == but ? but_on : where[other])];
        return price;
    }
    bool improve_one(nodes_of &where, std::vector<std::uint32_t> &used, std::size_t r,
                     double least) const
    {
        std::uint32_t from = where[r];
        double here = price_of(where, r, from);
        double best = least;
        std::uint32_t to = from;
        std::size_t with = SIZE_MAX;
        for (std::uint32_t n = 0; n < nodes_; n++) {
            if (n != from && used[n] < p_.room[n] && here - price_of(where, r, n) > best) {
                best = here - price_of(where, r, n);
                to = n;
            }
        }
        for (std::size_t s = 0; s < where.size(); s++) {
            std::uint32_t there = where[s];
            if (there == from || p_.fixed[s])
                continue;
            /* Both at their new places; what they exchange with each other is as it was. */
            double gain = here + price_of(where, s, there) - price_of(where, r, there, s, from) -
                          price_of(where, s, from, r, there);
            if (gain > best) {
                best = gain;
                to = there;
                with = s;
            }
        }
        if (to == from)
            return false;
        where[r] = to;
        if (with != SIZE_MAX) {
            where[with] = from;
        } else {
            used[from]--;
            used[to]++;
        }
        return true;
    }

    const placement_problem &p_;
    traffic traffic_;
    std::size_t nodes_;
};

/* The library draws from one generator of the whole process. */
std::mutex scotch_lock;

struct scotch_graph {
    SCOTCH_Graph graph;
    bool made = SCOTCH_graphInit(&graph) == 0;
    ~scotch_graph()
    {
        if (made)
            SCOTCH_graphExit(&graph);
    }
    scotch_graph() = default;
    scotch_graph(const scotch_graph &) = delete;
    scotch_graph &operator=(const scotch_graph &) = delete;
};

/** Nodes joined by edges: the cheaper the way, the heavier. */
bool build_network(const placement_problem &p, std::vector<SCOTCH_Num> &starts,
                   std::vector<SCOTCH_Num> &ends, std::vector<SCOTCH_Num> &weights,
                   std::vector<SCOTCH_Num> &rooms, SCOTCH_Graph *graph)
{
    auto n = static_cast<SCOTCH_Num>(p.room.size());
    double cheapest = INFINITY;
    for (double c : p.cost) {
        if (c > 0)
            cheapest = std::min(cheapest, c);
    }
    for (SCOTCH_Num a = 0; a < n; a++) {
        starts.push_back(static_cast<SCOTCH_Num>(ends.size()));
        for (SCOTCH_Num b = 0; b < n; b++) {
            if (a == b)
                continue;
            auto from = static_cast<std::size_t>(a), to = static_cast<std::size_t>(b);
            std::size_t at = from * p.room.size() + to;
            std::size_t back = to * p.room.size() + from;
            double c = (p.cost[at] + p.cost[back]) / 2; /* Scotch's edges have no direction */
            ends.push_back(b);
            weights.push_back(std::max<SCOTCH_Num>(
                1, c > 0 ? static_cast<SCOTCH_Num>(1000 * cheapest / c) : 1000));
        }
        rooms.push_back(static_cast<SCOTCH_Num>(std::max(1u, p.room[static_cast<std::size_t>(a)])));
    }
    starts.push_back(static_cast<SCOTCH_Num>(ends.size()));
    return SCOTCH_graphBuild(graph, 0, n, starts.data(), nullptr, rooms.data(), nullptr,
                             static_cast<SCOTCH_Num>(ends.size()), ends.data(),
                             weights.data()) == 0;
}

bool build_traffic(const traffic &t, std::vector<SCOTCH_Num> &starts, std::vector<SCOTCH_Num> &ends,
                   std::vector<SCOTCH_Num> &weights, SCOTCH_Graph *graph)
{
    for (const auto &links : t.of) {
        starts.push_back(static_cast<SCOTCH_Num>(ends.size()));
        for (const auto &[other, weight] : links) {
            ends.push_back(static_cast<SCOTCH_Num>(other));
            weights.push_back(
                std::max<SCOTCH_Num>(1, static_cast<SCOTCH_Num>(10000 * weight / t.heaviest)));
        }
    }
    starts.push_back(static_cast<SCOTCH_Num>(ends.size()));
    return SCOTCH_graphBuild(graph, 0, static_cast<SCOTCH_Num>(t.of.size()), starts.data(), nullptr,
                             nullptr, nullptr, static_cast<SCOTCH_Num>(ends.size()), ends.data(),
                             weights.data()) == 0;
}

std::optional<nodes_of> by_scotch(const placement_problem &p, const traffic &t)
{
    std::lock_guard lock(scotch_lock);
    SCOTCH_randomReset();
    scotch_graph network;
    scotch_graph ranks;
    std::vector<SCOTCH_Num> a_starts, a_ends, a_weights, a_rooms, b_starts, b_ends, b_weights;
    if (!network.made || !ranks.made ||
        !build_network(p, a_starts, a_ends, a_weights, a_rooms, &network.graph) ||
        !build_traffic(t, b_starts, b_ends, b_weights, &ranks.graph))
        return {};
    SCOTCH_Arch arch;
    SCOTCH_Strat strategy;
    SCOTCH_archInit(&arch);
    SCOTCH_stratInit(&strategy);
    std::vector<SCOTCH_Num> part(p.now.size());
    for (std::size_t r = 0; r < part.size(); r++)
        part[r] = p.fixed[r] ? static_cast<SCOTCH_Num>(p.now[r]) : -1;
    bool good = SCOTCH_archBuild(&arch, &network.graph, 0, nullptr, &strategy) == 0;
    SCOTCH_Strat mapping;
    SCOTCH_stratInit(&mapping);
    good = good && SCOTCH_graphMapFixed(&ranks.graph, &arch, &mapping, part.data()) == 0;
    SCOTCH_stratExit(&mapping);
    SCOTCH_stratExit(&strategy);
    SCOTCH_archExit(&arch);
    if (!good)
        return {};
    nodes_of where(part.size());
    for (std::size_t r = 0; r < part.size(); r++) {
        if (part[r] < 0 || static_cast<std::size_t>(part[r]) >= p.room.size())
            return {};
        where[r] = p.fixed[r] ? p.now[r] : static_cast<std::uint32_t>(part[r]);
    }
    return where;
}

bool consistent(const placement_problem &p)
{
    std::size_t nodes = p.room.size();
    if (nodes == 0 || p.now.empty() || p.now.size() > kMostRanks ||
        p.cost.size() != nodes * nodes || p.fixed.size() != p.now.size())
        return false;
    std::uint64_t room = 0;
    for (std::uint32_t r : p.room)
        room += r;
    return room >= p.now.size() &&
           std::all_of(p.now.begin(), p.now.end(), [&](std::uint32_t n) { return n < nodes; }) &&
           std::all_of(p.cost.begin(), p.cost.end(),
                       [](double c) { return std::isfinite(c) && c >= 0; });
}

} // namespace

double placement_cost(const placement_problem &p, std::span<const std::uint32_t> node_of)
{
    double cost = 0;
    for (const zcp_flow_t &f : p.flows) {
        if (f.src < node_of.size() && f.dst < node_of.size() && f.src != f.dst)
            cost += (static_cast<double>(f.bytes) + f.messages) *
                    p.cost[node_of[f.src] * p.room.size() + node_of[f.dst]];
    }
    return cost;
}

std::vector<std::uint32_t> place(const placement_problem &p)
{
    if (!consistent(p))
        return {};
    search s(p);
    nodes_of best;
    double least = INFINITY;
    auto consider = [&](nodes_of where) {
        if (!s.fit(where))
            return;
        s.improve(where);
        double cost = placement_cost(p, where);
        if (cost < least) {
            least = cost;
            best = std::move(where);
        }
    };
    consider(p.now); /* first: of equals, the one that moves fewer */
    if (p.room.size() > 1) {
        if (auto where = by_scotch(p, s.all()))
            consider(std::move(*where));
    }
    return best;
}

} // namespace zc::agent

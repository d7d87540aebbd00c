/* SPDX-License-Identifier: BSD-3-Clause */
#include "cut.h"

#include <algorithm>
#include <numeric>

#include "memory.h"

namespace zc::groups {
namespace {

using edges = std::pmr::vector<edge>;
using numbers = std::pmr::vector<uint32_t>;

constexpr uint32_t kNoRank = UINT32_MAX;
constexpr uint32_t kPasses = 8;         /* of refinement; they rarely find anything after three */
constexpr uint32_t kRounds = 256;       /* of agglomeration; a bound for adversaries */
constexpr uint32_t kKickedRanks = 2048; /* ranks refined after kicks, in all: what they may cost */
constexpr uint32_t kMostKicks = 64;
constexpr double kWorthwhile = 1e-9; /* of all weight: gains below are rounding, and would cycle */

/** Sorts by (a, b) and adds up equal pairs; in place, in an order that input order cannot change.
 */
void combine(edges &list)
{
    std::sort(list.begin(), list.end(), [](const edge &x, const edge &y) {
        return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.weight < y.weight;
    });
    size_t kept = 0;
    for (const edge &e : list) {
        if (kept > 0 && list[kept - 1].a == e.a && list[kept - 1].b == e.b)
            list[kept - 1].weight += e.weight;
        else
            list[kept++] = e;
    }
    list.resize(kept);
}

/** How much each rank exchanges with each other one. */
class neighbours {
  public:
    struct link {
        uint32_t rank;
        double weight;
    };

    neighbours(const edges &list, uint32_t ranks, std::pmr::memory_resource *memory)
        : first_(size_t{ranks} + 1, 0, memory), links_(2 * list.size(), link{}, memory)
    {
        for (const edge &e : list) {
            first_[e.a + 1]++;
            first_[e.b + 1]++;
        }
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        numbers next(first_.begin(), first_.end(), memory);
        for (const edge &e : list) {
            links_[next[e.a]++] = {e.b, e.weight};
            links_[next[e.b]++] = {e.a, e.weight};
        }
    }

    std::span<const link> of(uint32_t rank) const
    {
        return {links_.data() + first_[rank], first_[rank + 1] - first_[rank]};
    }

  private:
    numbers first_;
    std::pmr::vector<link> links_;
};

/** Merges the groups with the densest traffic between them, in rounds. */
class agglomeration {
  public:
    agglomeration(const edges &list, uint32_t max_size, std::span<uint32_t> group_of,
                  std::pmr::memory_resource *memory)
        : max_size_(max_size), group_of_(group_of), links_(list, memory),
          size_(group_of.size(), 1, memory), into_(group_of.size(), 0, memory),
          best_(group_of.size(), 0.0, memory)
    {
        std::iota(group_of_.begin(), group_of_.end(), 0u);
    }

    void run()
    {
        uint32_t rounds = 0;
        while (rounds++ < kRounds && merge_round())
            contract();
    }

  private:
    bool fit(const edge &e) const { return size_[e.a] + size_[e.b] <= max_size_; }
    double density(const edge &e) const
    {
        return e.weight / (static_cast<double>(size_[e.a]) * size_[e.b]);
    }

    /* Two groups merge if each is still free this round and their traffic is not
     * much less dense than the best either could have had: a group whose best
     * partner was taken waits for the next round rather than take a bad one. */
    bool merge_round()
    {
        std::erase_if(links_, [this](const edge &e) { return !fit(e); });
        std::sort(links_.begin(), links_.end(), [this](const edge &x, const edge &y) {
            const double dx = density(x);
            const double dy = density(y);
            return dx != dy ? dx > dy : x.a != y.a ? x.a < y.a : x.b < y.b;
        });
        std::fill(best_.begin(), best_.end(), 0.0);
        std::iota(into_.begin(), into_.end(), 0u);
        for (const edge &e : links_) {
            best_[e.a] = std::max(best_[e.a], density(e));
            best_[e.b] = std::max(best_[e.b], density(e));
        }
        bool merged = false;
        for (const edge &e : links_) {
            const bool free = best_[e.a] >= 0 && best_[e.b] >= 0;
            if (!free || density(e) < 0.5 * std::max(best_[e.a], best_[e.b]))
                continue;
            into_[e.b] = e.a; /* a < b: a group is named after its lowest rank */
            best_[e.a] = best_[e.b] = -1;
            merged = true;
        }
        return merged;
    }

    void contract()
    {
        for (uint32_t group = 0; group < size_.size(); group++) {
            if (into_[group] != group)
                size_[into_[group]] += size_[group];
        }
        for (uint32_t &group : group_of_)
            group = into_[group];
        for (edge &e : links_) {
            e.a = into_[e.a];
            e.b = into_[e.b];
            if (e.a > e.b)
                std::swap(e.a, e.b);
        }
        std::erase_if(links_, [](const edge &e) { return e.a == e.b; });
        combine(links_);
    }

    uint32_t max_size_;
    std::span<uint32_t> group_of_;
    edges links_;
    numbers size_;
    numbers into_;
    std::pmr::vector<double> best_; /* density a group could have; -1: merged this round */
};

/** Moves and exchanges single ranks between groups as long as that helps. */
class refinement {
  public:
    refinement(const edges &list, uint32_t max_size, std::span<uint32_t> group_of,
               std::pmr::memory_resource *memory)
        : max_size_(max_size), group_of_(group_of),
          links_(list, static_cast<uint32_t>(group_of.size()), memory),
          size_(group_of.size(), 0, memory), head_(group_of.size(), kNoRank, memory),
          next_(group_of.size(), kNoRank, memory), before_(group_of.size(), kNoRank, memory),
          towards_(group_of.size(), 0.0, memory), touched_(memory)
    {
        touched_.reserve(group_of.size());
        for (const edge &e : list)
            least_gain_ += e.weight * kWorthwhile;
        for (uint32_t rank = static_cast<uint32_t>(group_of.size()); rank-- > 0;)
            join(rank, group_of[rank]);
    }

    void run()
    {
        for (uint32_t pass = 0; pass < kPasses; pass++) {
            bool better = false;
            for (uint32_t rank = 0; rank < group_of_.size(); rank++)
                better = improve(rank) || better;
            if (!better)
                return;
        }
    }

  private:
    struct change {
        double gain;
        uint32_t group;
        uint32_t partner; /* the rank that comes back, kNoRank: none needs to */
    };

    void join(uint32_t rank, uint32_t group)
    {
        group_of_[rank] = group;
        next_[rank] = head_[group];
        before_[rank] = kNoRank;
        if (head_[group] != kNoRank)
            before_[head_[group]] = rank;
        head_[group] = rank;
        size_[group]++;
    }

    void leave(uint32_t rank)
    {
        const uint32_t group = group_of_[rank];
        if (before_[rank] != kNoRank)
            next_[before_[rank]] = next_[rank];
        else
            head_[group] = next_[rank];
        if (next_[rank] != kNoRank)
            before_[next_[rank]] = before_[rank];
        size_[group]--;
    }

    /** Gain if @rank and @partner change places, @rank's own gain by moving being @gain. */
    double gain_by_exchange(uint32_t rank, uint32_t partner, double gain) const
    {
        const uint32_t here = group_of_[rank];
        const uint32_t there = group_of_[partner];
        for (const auto &link : links_.of(partner)) {
            if (link.rank == rank)
                gain -= 2 * link.weight; /* they stay apart, counted as if they met, twice */
            if (group_of_[link.rank] == here)
                gain += link.weight;
            else if (group_of_[link.rank] == there)
                gain -= link.weight;
        }
        return gain;
    }

    change best_exchange(uint32_t rank, uint32_t group, double gain) const
    {
        change best{0, group, kNoRank};
        for (uint32_t other = head_[group]; other != kNoRank; other = next_[other]) {
            const double total = gain_by_exchange(rank, other, gain);
            if (total > best.gain || (total == best.gain && other < best.partner))
                best = {total, group, other};
        }
        return best;
    }

    bool improve(uint32_t rank)
    {
        touched_.clear();
        for (const auto &link : links_.of(rank)) {
            const uint32_t group = group_of_[link.rank];
            if (towards_[group] == 0)
                touched_.push_back(group);
            towards_[group] += link.weight;
        }
        const uint32_t here = group_of_[rank];
        change best{least_gain_, here, kNoRank};
        for (const uint32_t group : touched_) {
            if (group == here)
                continue;
            const double gain = towards_[group] - towards_[here];
            if (size_[group] < max_size_ && gain > best.gain)
                best = {gain, group, kNoRank};
            const change exchange = best_exchange(rank, group, gain);
            if (exchange.gain > best.gain)
                best = exchange;
        }
        for (const uint32_t group : touched_)
            towards_[group] = 0;
        if (best.group == here)
            return false;
        leave(rank);
        if (best.partner != kNoRank) {
            leave(best.partner);
            join(best.partner, here);
        }
        join(rank, best.group);
        return true;
    }

    uint32_t max_size_;
    std::span<uint32_t> group_of_;
    neighbours links_;
    numbers size_;
    numbers head_; /* members of a group, a list through next_ and before_ */
    numbers next_;
    numbers before_;
    std::pmr::vector<double> towards_; /* weight of one rank to each group; 0 between uses */
    numbers touched_;
    double least_gain_ = 0;
};

/**
 * Fills groups up, also with ranks they have nothing to do with: leftovers of an
 * agglomeration are in the way of the exchanges that would put them together.
 */
void pack(const edges &list, uint32_t max_size, std::span<uint32_t> group_of,
          std::pmr::memory_resource *memory)
{
    const uint32_t ranks = static_cast<uint32_t>(group_of.size());
    const uint32_t nr_bins = (ranks + max_size - 1) / max_size;
    numbers size(ranks, 0, memory);
    for (const uint32_t group : group_of)
        size[group]++;
    numbers order(ranks, 0, memory);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&size](uint32_t x, uint32_t y) {
        return size[x] != size[y] ? size[x] > size[y] : x < y;
    });

    numbers bin_of(ranks, kNoRank, memory); /* of a group; kNoRank: in pieces */
    numbers room(nr_bins, max_size, memory);
    uint32_t first = 0; /* bins before it are full */
    for (const uint32_t group : order) {
        if (size[group] == 0)
            break;
        for (uint32_t bin = first; bin < nr_bins && bin_of[group] == kNoRank; bin++) {
            if (room[bin] >= size[group]) {
                bin_of[group] = bin;
                room[bin] -= size[group];
            }
        }
        while (first < nr_bins && room[first] == 0)
            first++;
    }
    for (uint32_t &group : group_of)
        group = bin_of[group];

    const neighbours links(list, ranks, memory);
    std::pmr::vector<double> towards(nr_bins, 0.0, memory);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (group_of[rank] != kNoRank)
            continue;
        std::fill(towards.begin(), towards.end(), 0.0);
        for (const auto &link : links.of(rank)) {
            if (group_of[link.rank] != kNoRank)
                towards[group_of[link.rank]] += link.weight;
        }
        uint32_t best = kNoRank;
        for (uint32_t bin = 0; bin < nr_bins; bin++) {
            if (room[bin] > 0 && (best == kNoRank || towards[bin] > towards[best]))
                best = bin;
        }
        group_of[rank] = best;
        room[best]--;
    }
}

/** Grows one full group after another, each from the rank with the least traffic left. */
void grow(const edges &list, uint32_t max_size, std::span<uint32_t> group_of,
          std::pmr::memory_resource *memory)
{
    const uint32_t ranks = static_cast<uint32_t>(group_of.size());
    const neighbours links(list, ranks, memory);
    std::fill(group_of.begin(), group_of.end(), kNoRank);
    std::pmr::vector<double> left(ranks, 0.0, memory);   /* traffic with ranks still free */
    std::pmr::vector<double> inside(ranks, 0.0, memory); /* traffic with the group being grown */
    for (const edge &e : list) {
        left[e.a] += e.weight;
        left[e.b] += e.weight;
    }
    uint32_t group = 0;
    for (uint32_t done = 0, size = 0; done < ranks; done++, size++) {
        if (size == max_size) {
            group++;
            size = 0;
            std::fill(inside.begin(), inside.end(), 0.0);
        }
        uint32_t best = kNoRank;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            if (group_of[rank] != kNoRank)
                continue;
            if (best == kNoRank || inside[rank] > inside[best] ||
                (inside[rank] == inside[best] && left[rank] < left[best]))
                best = rank;
        }
        group_of[best] = group;
        for (const auto &link : links.of(best)) {
            inside[link.rank] += link.weight;
            left[link.rank] -= link.weight;
        }
    }
}

/**
 * Out of a local optimum: one to three ranks change places with a rank of a group
 * they have traffic with. The same ones for the same @turn.
 */
void kick(const edges &list, std::span<uint32_t> group_of, uint64_t turn)
{
    uint64_t state = turn * 0x9e3779b97f4a7c15u;
    const auto random = [&state](size_t below) {
        state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u + 0x9e3779b97f4a7c15u;
        return static_cast<size_t>((state >> 32) % below);
    };
    for (size_t moved = 0; moved <= turn % 3; moved++) {
        const edge &e = list[random(list.size())];
        if (group_of[e.a] == group_of[e.b])
            continue;
        const uint32_t first = static_cast<uint32_t>(random(group_of.size()));
        for (uint32_t i = 0; i < group_of.size(); i++) {
            const uint32_t other = static_cast<uint32_t>((first + i) % group_of.size());
            if (other != e.b && group_of[other] == group_of[e.b]) {
                std::swap(group_of[e.a], group_of[other]);
                break;
            }
        }
    }
}

double inside_weight(const edges &list, std::span<const uint32_t> group_of)
{
    double sum = 0;
    for (const edge &e : list)
        sum += group_of[e.a] == group_of[e.b] ? e.weight : 0;
    return sum;
}

/** Leaves together only ranks that traffic inside the group connects. */
void separate(const edges &list, std::span<uint32_t> group_of, std::pmr::memory_resource *memory)
{
    numbers parent(group_of.size(), 0, memory);
    std::iota(parent.begin(), parent.end(), 0u);
    const auto root = [&parent](uint32_t rank) {
        while (parent[rank] != rank)
            rank = parent[rank] = parent[parent[rank]];
        return rank;
    };
    for (const edge &e : list) {
        if (group_of[e.a] == group_of[e.b])
            parent[root(e.b)] = root(e.a);
    }
    for (uint32_t rank = 0; rank < group_of.size(); rank++)
        group_of[rank] = root(rank);
}

/** Numbers groups from 0 in the order of their lowest ranks. */
uint32_t renumber(std::span<uint32_t> group_of, std::pmr::memory_resource *memory)
{
    numbers number(group_of.size(), kNoRank, memory);
    uint32_t nr = 0;
    for (uint32_t &group : group_of) {
        if (number[group] == kNoRank)
            number[group] = nr++;
        group = number[group];
    }
    return nr;
}

} // namespace

std::pmr::vector<edge> edges_of(std::span<const flow> flows, uint32_t ranks,
                                std::pmr::memory_resource *memory)
{
    edges list = reserved<edge>(flows.size(), memory);
    for (const flow &f : flows) {
        if (f.src < ranks && f.dst < ranks && f.src != f.dst && weight(f) > 0)
            list.push_back({std::min(f.src, f.dst), std::max(f.src, f.dst), weight(f)});
    }
    combine(list);
    return list;
}

size_t cut_bytes_needed(size_t nr_flows, uint32_t ranks)
{
    /* The edges, and either a copy of them or twice as many links; some numbers
     * and reals per rank, whichever step it is. */
    return nr_flows * (sizeof(edge) + 2 * sizeof(neighbours::link)) +
           (size_t{ranks} + 2) * (10 * sizeof(uint32_t) + 2 * sizeof(double));
}

uint32_t cut(std::span<const flow> flows, uint32_t ranks, uint32_t max_size,
             std::span<uint32_t> group_of, std::pmr::memory_resource *memory)
{
    const edges list = edges_of(flows, ranks, memory);
    numbers trial(ranks, 0, memory);
    double most = -1;
    const auto settle = [&] {
        refinement(list, max_size, trial, memory).run();
        const double inside = inside_weight(list, trial);
        if (inside > most) {
            most = inside;
            std::copy(trial.begin(), trial.end(), group_of.begin());
        }
    };
    agglomeration(list, max_size, trial, memory).run();
    settle();
    pack(list, max_size, trial, memory);
    settle();
    grow(list, max_size, trial, memory);
    settle();
    const uint32_t kicks = list.empty() ? 0 : std::min(kKickedRanks / ranks, kMostKicks);
    for (uint32_t turn = 1; turn <= kicks; turn++) {
        std::copy(group_of.begin(), group_of.end(), trial.begin());
        kick(list, trial, turn);
        settle();
    }
    separate(list, group_of, memory);
    return renumber(group_of, memory);
}

uint32_t around(std::span<const flow> flows, uint32_t ranks, uint32_t rank, std::span<uint32_t> out,
                std::pmr::memory_resource *memory)
{
    const edges list = edges_of(flows, ranks, memory);
    const neighbours links(list, ranks, memory);
    /* By rank: all its traffic, and what of it goes to the group; -1: a member. */
    std::pmr::vector<double> total(ranks, 0.0, memory);
    std::pmr::vector<double> inside(ranks, 0.0, memory);
    for (const edge &e : list) {
        total[e.a] += e.weight;
        total[e.b] += e.weight;
    }
    uint32_t size = 0;
    uint32_t joining = rank;
    while (true) {
        out[size++] = joining;
        inside[joining] = -1;
        for (const auto &link : links.of(joining)) {
            if (inside[link.rank] >= 0)
                inside[link.rank] += link.weight;
        }
        if (size == out.size())
            return size;
        joining = kNoRank;
        for (uint32_t other = 0; other < ranks; other++) {
            if (inside[other] <= 0)
                continue;
            if (joining == kNoRank || inside[other] > inside[joining] ||
                (inside[other] == inside[joining] && total[other] < total[joining]))
                joining = other;
        }
        if (joining == kNoRank)
            return size;
    }
}

} // namespace zc::groups

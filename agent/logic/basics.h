/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_BASICS_H_INCLUDED
#define ZC_AGENT_BASICS_H_INCLUDED

/* The words every part of the agents' logic uses. */

#include <compare>
#include <cstdint>
#include <cstdlib>

namespace zc::agent {

/** Nanoseconds of the clock of this node; only differences mean anything. */
using nanos = std::int64_t;
constexpr nanos kMillisecond = 1'000'000;
constexpr nanos kSecond = 1'000'000'000;
constexpr nanos kNever = INT64_MAX;

constexpr nanos from_seconds(double seconds)
{
    return static_cast<nanos>(seconds * 1e9);
}
constexpr double to_seconds(nanos time)
{
    return static_cast<double>(time) / 1e9;
}

using node_id = std::uint64_t; /* drawn once, at random; 0 is no node */
using job_id = std::uint64_t;
using rank_id = std::uint32_t;

constexpr node_id kNoNode = 0;

/** One rank of one job. */
struct rank_key {
    job_id job = 0;
    rank_id rank = 0;
    auto operator<=>(const rank_key &) const = default;
};

/** A rank that is to move, and where it is now. */
struct traveller {
    rank_id rank = 0;
    node_id home = kNoNode;
    bool operator==(const traveller &) const = default;
};

/** One attempt to move ranks: the node that decides it, and which of its attempts. */
struct txn_id {
    node_id decider = kNoNode;
    std::uint64_t number = 0;
    auto operator<=>(const txn_id &) const = default;
};

/** A small generator whose numbers are the same with every standard library (splitmix64). */
class random_source {
  public:
    explicit random_source(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next()
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /** 0 … bound - 1; 0 for bound 0. */
    std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
    /** 0 … 1, 1 excluded. */
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    bool chance(double probability) { return unit() < probability; }

  private:
    std::uint64_t state_;
};

} // namespace zc::agent

#endif

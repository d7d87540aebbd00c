/* SPDX-License-Identifier: BSD-3-Clause */
#include "invariants.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace zc::agent::sim {
namespace {

constexpr std::size_t kMostViolations = 20;
constexpr std::uint32_t kMovesInCalm = 3; /* of one rank; more is oscillation */

} // namespace

void invariants::violated(const std::string &text)
{
    if (violations_.size() < kMostViolations)
        violations_.push_back(fmt::format("{:.3f} s: {}", to_seconds(world_.now), text));
}

void invariants::one_decider(const job &j, const msg::ask &a)
{
    if (!j.busy || j.current.txn.decider == a.txn.decider)
        return;
    const std::vector<rank_id> &moving = j.current.ranks;
    for (rank_id rank : a.ranks) {
        if (std::find(moving.begin(), moving.end(), rank) != moving.end())
            violated(fmt::format("rank {} of job {} asked to move by node {} while node {} "
                                 "moves it",
                                 rank, a.job, a.txn.decider, j.current.txn.decider));
    }
}

void invariants::hosts_or_borrowed(const job &j, const msg::ask &a)
{
    for (rank_id rank : a.ranks) {
        if (!may_move(j, a, rank))
            violated(fmt::format("rank {} of job {} asked to move by node {}, which neither hosts "
                                 "nor has borrowed it",
                                 rank, a.job, a.txn.decider));
    }
}

bool invariants::may_move(const job &j, const msg::ask &a, rank_id rank) const
{
    if (rank >= j.where.size())
        return false;
    std::uint32_t host = j.where[rank];
    return host == index_of(a.txn.decider) || has_lent(host, {a.job, rank}, a.txn);
}

/** Or decides nothing about the rank, for as long as an earlier life of it may have lent it. */
bool invariants::has_lent(std::uint32_t host, const rank_key &rank, const txn_id &txn) const
{
    const node &it = world_.nodes[host];
    if (it.disk.empty())
        return true; /* without its state file it decides nothing until leases have ended */
    if (!it.up) {
        auto saved = from_text(it.disk);
        saved_state::lease wanted{txn, rank};
        return !saved ||
               std::find(saved->leases.begin(), saved->leases.end(), wanted) != saved->leases.end();
    }
    if (it.mind->moves().lent_to(rank, txn))
        return true;
    auto known = it.mind->here().ranks().find(rank);
    return known != it.mind->here().ranks().end() &&
           world_.global(host, known->second.not_before) > world_.now;
}

void invariants::no_oscillation(const rank_key &rank, std::uint32_t from, std::uint32_t to)
{
    if (!world_.calm())
        return;
    auto &left = left_in_calm_[rank];
    left.insert(from);
    if (left.contains(to))
        violated(fmt::format("oscillation: rank {} of job {} came back to node {} under "
                             "constant load",
                             rank.rank, rank.job, id_of(to)));
    if (left.size() > kMovesInCalm)
        violated(fmt::format("oscillation: rank {} of job {} moved {} times under "
                             "constant load",
                             rank.rank, rank.job, left.size()));
}

void invariants::understood(flaw f)
{
    if (f != flaw::none && f != flaw::replayed && f != flaw::old_incarnation)
        violated(fmt::format("a message of an agent was refused: {}", flaw_name(f)));
}

void invariants::at_the_end(const result &r)
{
    balance(r);
    quiet(r);
}

void invariants::balance(const result &r)
{
    if (world_.o.load_changes > 0 || world_.o.phase_a != 0)
        return; /* the load was not constant */
    auto grew = [&](const char *what, double balance_sheet::*which) {
        if (r.after.*which > r.before.*which * 1.001)
            violated(fmt::format("{} grew from {:.3f} to {:.3f}", what, r.before.*which,
                                 r.after.*which));
    };
    grew("imbalance", &balance_sheet::imbalance);
    grew("the slowest job's pace", &balance_sheet::worst);
}

void invariants::quiet(const result &r)
{
    const options &o = world_.o;
    if (from_seconds(o.seconds * (1 - o.calm / 4)) <
        static_cast<nanos>(r.last_move_ms) * kMillisecond)
        violated(fmt::format("not quiet: a move at {:.1f} s, in the last quarter of the calm",
                             static_cast<double>(r.last_move_ms) / 1000));
    /* Seekers ask every steal_most at the slowest, each packet over all its hops. */
    double allowed = static_cast<double>(o.nodes) * (o.agents.hops + 1.0) *
                     (1 + o.seconds * o.calm / 4 / to_seconds(o.agents.steal_most) * 2);
    if (static_cast<double>(r.steals_in_calm) > allowed)
        violated(fmt::format("not quiet: {} steal packets in the last quarter of the calm",
                             r.steals_in_calm));
}

bool invariants::is_marginal(const job &j, const msg::ask &a) const
{
    auto threads = [](const node &it) { return it.others + static_cast<double>(it.ranks.size()); };
    auto pace_with = [&](const node &it, double more) {
        return pace(threads(it) + more, it.cpus, it.seen_speed);
    };
    std::uint32_t decider = index_of(a.txn.decider);
    const node &from = world_.nodes[decider];
    const node &to = world_.nodes[index_of(a.target)];
    auto going = static_cast<double>(std::count_if(
        a.ranks.begin(), a.ranks.end(), [&](rank_id rank) { return j.where[rank] == decider; }));
    double before = std::max(pace_with(from, 0), to.ranks.empty() ? 0 : pace_with(to, 0));
    double left = static_cast<double>(from.ranks.size()) > going ? pace_with(from, -going) : 0;
    double after = std::max(left, pace_with(to, static_cast<double>(a.ranks.size())));
    return std::abs(after / before - (1 - world_.o.agents.hysteresis)) <= kNoise / threads(from);
}

} // namespace zc::agent::sim

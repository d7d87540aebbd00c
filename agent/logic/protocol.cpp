/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocol.h"

#include <algorithm>

#include <fmt/format.h>

namespace zc::agent {

protocol::protocol(const settings &s, membership &network, profiling &here, decision &decide,
                   const policy &chosen, experience &past, history &log, random_source &random)
    : s_(s), network_(network), here_(here), random_(random), lender_(s, here),
      target_(s, network, here), gateway_(network), victim_(s, network, here, decide, past, log),
      thief_(s, network, here, decide, chosen, target_, random)
{
}

void protocol::start(nanos now, std::uint64_t incarnation, const std::optional<saved_state> &saved)
{
    next_look_ =
        now + static_cast<nanos>(random_.below(static_cast<std::uint64_t>(s_.steal_least) + 1));
    lender_.start(now, saved);
    victim_.start(now, incarnation, saved);
}

void protocol::tick(nanos now, effects &out)
{
    here_.expire(now);
    lender_.tick(now, out);
    victim_.tick(now, out);
    if (here_.load_generation() != generation_) {
        generation_ = here_.load_generation();
        thief_.hurry();
        victim_.load_changed(now);
    }
    if (now >= next_look_) {
        target_.expire(now);
        thief_.look_for_work(now, out);
        victim_.nudge_thieves(now, out);
        next_look_ = now + s_.steal_least / 2;
    }
}

nanos protocol::due() const
{
    return std::min({next_look_, lender_.due(), victim_.due()});
}

void protocol::save_to(saved_state &state) const
{
    victim_.save_to(state);
    lender_.save_to(state);
}

bool protocol::free_rank(nanos now, const local_rank &rank, node_id target, std::string &why) const
{
    const rank_key &key = rank.profile.key;
    if (!rank.profile.movable)
        why = "cannot be moved";
    else if (rank.leaving)
        why = "is on its way";
    else if (now < rank.not_before)
        why =
            fmt::format("may have been lent by an earlier life of this agent, for another {:.0f} s",
                        to_seconds(rank.not_before - now));
    else if (lender_.lent(key))
        why = "is lent";
    else if (victim_.moves_ranks_of(key.job))
        why = "has a move under way in its job";
    else if (rank.profile.idle && !here_.draining())
        why = "hardly uses a processor";
    else if (rank.profile.transparent && victim_.refused().hold_back(now, key, target, why))
        return false;
    else if (nanos stay = s_.residence
                          << std::min(rank.moves > 0 ? rank.moves - 1 : 0u, party::kMostDoublings);
             rank.moves > 0 && now - rank.arrived < stay)
        why = fmt::format("came {:.0f} s ago and stays for {:.0f} s",
                          to_seconds(now - rank.arrived), to_seconds(stay));
    else if (rank.came_from != kNoNode && rank.came_from == target &&
             now - rank.arrived < s_.memory && !here_.draining())
        why = fmt::format("came from there {:.0f} s ago", to_seconds(now - rank.arrived));
    else
        return true;
    return false;
}

free_check protocol::free_at(nanos now) const
{
    return [this, now](const local_rank &rank, node_id target, std::string &why) {
        return free_rank(now, rank, target, why);
    };
}

void protocol::on(nanos now, node_id, const msg::steal &m, effects &out)
{
    if (m.thief.id == network_.self().id || s_.act == mode::off)
        return;
    network_.learn(now, m.thief);
    if (!victim_.gives(now, m, free_at(now), out))
        thief_.forward(m, out);
}

void protocol::on(nanos now, node_id, const msg::nudge &m, effects &out)
{
    thief_.on(now, m, out);
}

void protocol::on(nanos now, node_id from, const msg::reserve &m, effects &out)
{
    if (target_.on(now, from, m, victim_.busy(), out))
        thief_.hurry();
}

void protocol::on(nanos now, node_id from, const msg::reserved &m, effects &out)
{
    victim_.on(now, from, m, out);
}

void protocol::on(nanos now, node_id from, const msg::lend &m, effects &out)
{
    lender_.on(now, from, m, free_at(now), out);
}

void protocol::on(nanos now, node_id from, const msg::lent &m, effects &out)
{
    victim_.on(now, from, m, out);
}

void protocol::on(nanos now, node_id from, const msg::release &m, effects &out)
{
    if (m.txn.decider != from)
        return;
    target_.on(now, m);
    lender_.on(now, m, out);
}

void protocol::on(nanos, node_id from, const msg::ask &m, effects &out)
{
    gateway_.on(from, m, out);
}

void protocol::on(nanos, node_id from, const msg::query &m, effects &out)
{
    gateway_.on(from, m, out);
}

void protocol::on(nanos now, node_id from, const msg::outcome &m, effects &out)
{
    victim_.on(now, from, m, out);
}

void protocol::on_job(nanos now, const msg::outcome &m, effects &out)
{
    gateway_.on_job(m, out);
    if (m.txn.decider == network_.self().id)
        victim_.on(now, m.txn.decider, m, out);
}

} // namespace zc::agent

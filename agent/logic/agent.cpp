/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace zc::agent {
namespace {

member born(member self, std::uint64_t incarnation)
{
    self.incarnation = incarnation;
    self.version = 1;
    return self;
}

template <class T>
std::unique_ptr<T> known(std::unique_ptr<T> made, const std::string &name)
{
    if (!made)
        throw std::invalid_argument("unknown name: " + name);
    return made;
}

} // namespace

agent::agent(const settings &s, member self, std::uint64_t incarnation, std::uint64_t seed)
    : settings_(s), random_(seed), incarnation_(incarnation), here_(settings_),
      network_(settings_, born(std::move(self), incarnation), random_),
      groups_(known(make_grouping(s.grouping, s.grouping_bytes, s.patterns), s.grouping)),
      collector_(settings_), policy_(known(make_policy(s.policy), s.policy)), past_(settings_),
      decision_(settings_.decision == "threshold"
                    ? make_threshold_decision(settings_, here_, network_, *policy_, past_, random_)
                    : make_balancing_decision(settings_, here_, network_, *groups_, *policy_, past_,
                                              random_)),
      protocol_(settings_, network_, here_, *decision_, *policy_, past_, history_, random_)
{
}

effects agent::start(nanos now, const std::optional<saved_state> &saved)
{
    effects out;
    out.save = true; /* our incarnation */
    here_.start(now, saved ? 0 : settings_.lease, saved && saved->draining);
    network_.start(now);
    protocol_.start(now, incarnation_, saved);
    return out;
}

nanos agent::due() const
{
    return std::min(network_.due(), protocol_.due());
}

effects agent::on_time(nanos now)
{
    effects out;
    network_.set_load(here_.digest());
    if (now >= network_.due())
        network_.tick(now, out.send);
    if (now >= protocol_.due())
        protocol_.tick(now, out);
    return out;
}

effects agent::on_message(nanos now, const message &m)
{
    effects out;
    node_id from = m.sender;
    network_.set_load(here_.digest());
    std::visit(
        [&](const auto &body) {
            if constexpr (requires { network_.on(now, from, body, out.send); })
                network_.on(now, from, body, out.send);
            else if constexpr (requires { network_.on(now, from, body); })
                network_.on(now, from, body);
            else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(body)>, msg::past>)
                learn_past(now, from, body);
            else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(body)>, msg::traffic>)
                learn_traffic(now, m, body);
            else
                protocol_.on(now, from, body, out);
        },
        m.body);
    tell_new_homes(now, out);
    return out;
}

/** What is known of the traffic of ranks goes with them: it was learned from their node. */
void agent::tell_new_homes(nanos now, effects &out)
{
    for (const departure &d : out.departed) {
        msg::past m{d.txn, d.job, {}};
        for (const zcp_event_t &e : groups_->past(d.job, d.ranks, kMaxPast))
            m.events.push_back(told_at(now, e));
        if (m.events.empty() || d.target == kNoNode)
            continue;
        handed_over_.told += m.events.size();
        out.send.push_back({d.target, "", std::move(m)});
    }
    out.departed.clear();
}

void agent::learn_past(nanos now, node_id from, const msg::past &m)
{
    std::vector<zcp_event_t> events;
    for (const msg::sent &s : m.events) {
        const bool since_start = nanos{s.age_us} * 1000 <= now;
        if (!since_start || !here_.comes_from(m.txn, {m.job, s.src}, from))
            handed_over_.refused++;
        else if (!collects() || groups_->past(m.job, std::vector{s.src}, 1).empty())
            events.push_back(heard_at(static_cast<std::uint64_t>(now), s));
    }
    std::stable_sort(events.begin(), events.end(), [](const zcp_event_t &a, const zcp_event_t &b) {
        return a.time_ns < b.time_ns;
    });
    handed_over_.learned += events.size();
    if (!events.empty())
        groups_->inherit(m.job, events);
}

effects agent::on_traffic(nanos now, job_id job, std::span<const zcp_event_t> events)
{
    effects out;
    const job_view *known = here_.job(job);
    if (!collects() || !known) {
        groups_->observe(job, events);
        return out;
    }
    collector_.tell(now, *known, network_.self().id, events, out.send);
    groups_->observe(job, collector_.take(now, job));
    return out;
}

void agent::learn_traffic(nanos now, const message &from, const msg::traffic &m)
{
    if (collects())
        collector_.learn(now, from.sender, from.incarnation, m, here_.job(m.job));
    else
        collector_.refuse(m);
}

effects agent::on_load(nanos now, const load_sample &sample)
{
    here_.on_load(now, sample);
    return {};
}

void agent::on_job(const job_view &job)
{
    here_.on_job(job);
    network_.want(here_.hosts());
    if (int error = groups_->job(job.job, static_cast<std::uint32_t>(job.placement.size())))
        without_groups_[job.job] = error;
    else
        without_groups_.erase(job.job);
}

void agent::on_job_gone(job_id job)
{
    here_.on_job_gone(job);
    network_.want(here_.hosts());
    groups_->job_gone(job);
    collector_.job_gone(job);
    without_groups_.erase(job);
}

effects agent::on_outcome(nanos now, const msg::outcome &outcome)
{
    effects out;
    protocol_.on_job(now, outcome, out);
    tell_new_homes(now, out);
    return out;
}

effects agent::leave()
{
    effects out;
    network_.leave(out.send);
    return out;
}

std::string agent::state_text() const
{
    saved_state state;
    state.id = network_.self().id;
    state.incarnation = std::max(incarnation_, network_.self().incarnation);
    state.draining = here_.draining();
    protocol_.save_to(state);
    return to_text(state);
}

} // namespace zc::agent

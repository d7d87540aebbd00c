/* SPDX-License-Identifier: BSD-3-Clause */
#include "collector.h"

#include <algorithm>
#include <limits>
#include <set>

namespace zc::agent {
namespace {

constexpr double kDrift = 1e-3; /* two clocks do not part faster: NTP turns one by half of it */
constexpr std::size_t kMostClocks = 4096;

std::uint64_t from_start(nanos time)
{
    return static_cast<std::uint64_t>(std::max<nanos>(time, 0));
}

} // namespace

msg::sent told_at(nanos now, const zcp_event_t &event)
{
    constexpr std::uint64_t kOldest = std::numeric_limits<std::uint32_t>::max();
    const std::uint64_t at = from_start(now);
    const std::uint64_t age = at > event.time_ns ? (at - event.time_ns) / 1000 : 0;
    return {event.src, event.dst, event.bytes, static_cast<std::uint32_t>(std::min(age, kOldest))};
}

zcp_event_t heard_at(std::uint64_t told_ns, const msg::sent &told)
{
    const std::uint64_t age = std::uint64_t{told.age_us} * 1000;
    return {told.src, told.dst, told.bytes, told_ns > age ? told_ns - age : 0, 0, 0};
}

void collector::tell(nanos now, const job_view &job, node_id self,
                     std::span<const zcp_event_t> events, outbox &out)
{
    waiting &kept = kept_[job.job];
    kept.events.insert(kept.events.end(), events.begin(), events.end());
    std::set<node_id> others(job.placement.begin(), job.placement.end());
    others.erase(self);
    others.erase(kNoNode);
    kept.alone = others.empty();
    if (kept.alone)
        return;
    /* What an agent finds when it starts is old: the others have it. */
    const auto old = std::ranges::lower_bound(events, from_start(now - s_.collect_delay), {},
                                              &zcp_event_t::time_ns);
    events = events.subspan(static_cast<std::size_t>(old - events.begin()));
    const std::size_t most = std::min({events.size(), kMostTold, kMostAtOnce / others.size()});
    counts_.untold += events.size() - most;
    events = events.last(most);
    for (std::size_t at = 0; at < events.size(); at += kMaxPast) {
        msg::traffic m{job.job, from_start(now), {}};
        for (const zcp_event_t &e : events.subspan(at, std::min(kMaxPast, events.size() - at)))
            m.events.push_back(told_at(now, e));
        for (node_id other : others)
            out.push_back({other, "", m});
        counts_.told += others.size() * m.events.size();
    }
}

/** Messages take different times, and the shortest is nearest to what their clocks differ by. */
nanos collector::offset_of(nanos now, node_id from, std::uint64_t incarnation, nanos told)
{
    const nanos seen = now - told;
    if (clocks_.size() >= kMostClocks && !clocks_.contains(from))
        clocks_.clear();
    auto [at, is_new] = clocks_.try_emplace(from, clock{incarnation, seen, now});
    clock &known = at->second;
    if (!is_new) {
        const nanos drift = static_cast<nanos>(kDrift * static_cast<double>(now - known.compared));
        const nanos offset =
            known.incarnation == incarnation ? std::min(known.offset + drift, seen) : seen;
        known = {incarnation, offset, now};
    }
    return known.offset;
}

void collector::learn(nanos now, node_id from, std::uint64_t incarnation, const msg::traffic &m,
                      const job_view *job)
{
    if (!job || m.at_ns > static_cast<std::uint64_t>(std::numeric_limits<nanos>::max() / 2)) {
        refuse(m);
        return;
    }
    const auto told = static_cast<nanos>(m.at_ns);
    const std::uint64_t at_ns = from_start(told + offset_of(now, from, incarnation, told));
    waiting &kept = kept_[m.job];
    std::size_t &told_before = kept.told[from];
    const std::vector<node_id> &at = job->placement;
    for (const msg::sent &each : m.events) {
        zcp_event_t event = heard_at(at_ns, each);
        if (event.src >= at.size() || event.dst >= at.size() || at[event.src] != from) {
            counts_.refused++;
        } else if (told_before >= kMostTold) {
            counts_.no_room++;
        } else if (event.time_ns < kept.taken_ns) {
            counts_.late++;
        } else {
            counts_.learned++;
            told_before++;
            kept.events.push_back(event);
        }
    }
}

std::vector<zcp_event_t> collector::take(nanos now, job_id job)
{
    auto found = kept_.find(job);
    if (found == kept_.end())
        return {};
    waiting &kept = found->second;
    std::vector<zcp_event_t> &events = kept.events;
    std::ranges::stable_sort(events, {}, &zcp_event_t::time_ns);
    const auto due = kept.alone
                         ? events.end()
                         : std::ranges::upper_bound(events, from_start(now - s_.collect_delay), {},
                                                    &zcp_event_t::time_ns);
    const auto excess = events.end() - std::min(std::ssize(events), std::ptrdiff_t{kMostKept});
    const auto end = std::max(due, excess);
    std::vector<zcp_event_t> out(events.begin(), end);
    events.erase(events.begin(), end);
    kept.told.clear();
    for (zcp_event_t &e : out)
        kept.taken_ns = e.time_ns = std::max(e.time_ns, kept.taken_ns);
    return out;
}

} // namespace zc::agent

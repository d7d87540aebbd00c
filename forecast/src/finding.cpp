/* SPDX-License-Identifier: BSD-3-Clause */
#include "finding.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace zc::forecast {

void finding::add(const message &m)
{
    messages++;
    bytes += m.bytes;
    if (const std::int64_t waited = m.sender_wait_ns()) {
        late_senders++;
        late_sender_ns += waited;
    }
    if (m.unexpected()) {
        unexpected++;
        unexpected_bytes += m.bytes;
        foreseen.add(m.foreseen);
    }
    const std::int64_t held = m.held_ns();
    if (held > 0) {
        late_receivers++;
        late_receiver_bytes += m.bytes;
        held_ns += held;
    }
    if (held > 0 || (m.unexpected() && !m.surely_eager()))
        transfer_wait_ns += m.transfer_wait_ns();
    if (!m.surely_eager())
        lost_overlap_ns += m.lost_overlap_ns();
}

std::vector<std::size_t> findings::by_cost() const
{
    std::vector<std::size_t> places(sites.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::stable_sort(places.begin(), places.end(), [this](std::size_t a, std::size_t b) {
        return sites[a].found.cost_ns() > sites[b].found.cost_ns();
    });
    return places;
}

namespace {

/** An unexpected message begins to lie at a rank, or no more lies there. */
struct change {
    std::uint32_t group; /* which messages are counted together */
    std::uint32_t rank;  /* place in the run */
    std::int64_t time;
    std::int64_t bytes;
};

/** The most that lay at one rank at one time. @groups: what is found of each. */
void find_most(const zct::run &run, std::vector<change> &changes,
               const std::vector<finding *> &groups)
{
    /* What goes makes room for what comes at the same time. */
    std::sort(changes.begin(), changes.end(), [](const change &a, const change &b) {
        return std::tie(a.group, a.rank, a.time, a.bytes) <
               std::tie(b.group, b.rank, b.time, b.bytes);
    });
    std::int64_t now = 0;
    for (std::size_t i = 0; i < changes.size(); i++) {
        const change &c = changes[i];
        if (i && (changes[i - 1].group != c.group || changes[i - 1].rank != c.rank))
            now = 0;
        now += c.bytes;
        finding &f = *groups[c.group];
        if (now > 0 && static_cast<std::uint64_t>(now) > f.most_unexpected_bytes) {
            f.most_unexpected_bytes = static_cast<std::uint64_t>(now);
            f.most_unexpected_rank = run.ranks[c.rank].rank;
        }
    }
}

void find_memory(const zct::run &run, const std::vector<message> &messages, findings &all)
{
    std::vector<change> changes;
    for (std::size_t i = 0; i < messages.size(); i++) {
        const message &m = messages[i];
        if (!m.unexpected())
            continue;
        const auto bytes = static_cast<std::int64_t>(m.bytes);
        const auto rank = static_cast<std::uint32_t>(m.receive.rank);
        changes.push_back({all.site_of[i], rank, m.send.posted_ns, bytes});
        changes.push_back({all.site_of[i], rank, m.receive.posted_ns, -bytes});
    }
    std::vector<finding *> sites;
    for (site_finding &site : all.sites)
        sites.push_back(&site.found);
    find_most(run, changes, sites);
    for (change &c : changes)
        c.group = 0;
    find_most(run, changes, {&all.total});
}

} // namespace

findings find(const zct::run &run, const std::vector<message> &messages, const site_names &name)
{
    findings all;
    std::map<site_pair, std::uint32_t> numbers;
    for (const message &m : messages) {
        const auto number = static_cast<std::uint32_t>(numbers.size());
        all.site_of.push_back(
            numbers
                .try_emplace({name(m.send.rank, m.send.site), name(m.receive.rank, m.receive.site)},
                             number)
                .first->second);
    }
    std::vector<std::uint32_t> places(numbers.size());
    for (const auto &[where, number] : numbers) {
        places[number] = static_cast<std::uint32_t>(all.sites.size());
        all.sites.push_back({where, {}});
    }
    for (std::size_t i = 0; i < messages.size(); i++) {
        all.site_of[i] = places[all.site_of[i]];
        all.sites[all.site_of[i]].found.add(messages[i]);
        all.total.add(messages[i]);
    }
    find_memory(run, messages, all);
    return all;
}

} // namespace zc::forecast

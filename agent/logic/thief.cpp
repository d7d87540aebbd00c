/* SPDX-License-Identifier: BSD-3-Clause */
#include "thief.h"

#include <algorithm>

namespace zc::agent::party {

thief::thief(const settings &s, membership &network, const profiling &here, const decision &decide,
             const policy &chosen, const target &room, random_source &random)
    : s_(s), network_(network), here_(here), decision_(decide), policy_(chosen), room_(room),
      random_(random), steal_pause_(s.steal_least)
{
}

bool thief::wants() const
{
    load_digest mine = here_.digest();
    if (s_.act == mode::off || !here_.sampled() || mine.room == 0 || room_.expects_ranks())
        return false;
    for (const peer &p : network_.peers()) {
        if (p.node.state == member_state::alive && decision_.worthwhile(mine, p.node.load))
            return true;
    }
    /* An agent that does not see all others sends a speculative request, if a rank would have a
     * processor to itself. */
    return network_.peers().size() >= s_.max_members && mine.demand + 1 <= mine.cpus;
}

void thief::look_for_work(nanos now, effects &out)
{
    if (!wants()) {
        steal_pause_ = s_.steal_least;
        next_steal_ = now;
        return;
    }
    if (now < next_steal_)
        return;
    msg::steal m;
    m.packet = random_.next();
    m.thief = network_.self();
    m.thief.load = here_.digest();
    m.hops = static_cast<std::uint8_t>(std::min<std::uint32_t>(s_.hops, kMaxVisited));
    m.links = network_.links();
    next_steal_ =
        now + steal_pause_ / 2 +
        static_cast<nanos>(random_.below(static_cast<std::uint64_t>(steal_pause_) / 2 + 1));
    steal_pause_ = std::min(2 * steal_pause_, s_.steal_most);
    forward(std::move(m), out);
}

void thief::forward(msg::steal m, effects &out)
{
    if (m.hops == 0)
        return;
    m.hops--;
    m.visited.push_back(network_.self().id);
    if (m.visited.size() > kMaxVisited)
        return;
    auto seen = [&](node_id id) {
        return id == m.thief.id ||
               std::find(m.visited.begin(), m.visited.end(), id) != m.visited.end();
    };
    surroundings around{here_, network_, random_};
    const peer *best = nullptr;
    bool best_gives = false;
    double best_preference = 0;
    for (const peer &p : network_.peers()) {
        if (p.node.state != member_state::alive || seen(p.node.id))
            continue;
        bool gives = decision_.worthwhile(m.thief.load, p.node.load);
        if (best != nullptr && gives < best_gives)
            continue;
        double preference = policy_.next_hop(p, m, around);
        if (best == nullptr || gives > best_gives || preference > best_preference) {
            best = &p;
            best_gives = gives;
            best_preference = preference;
        }
    }
    /* With all agents known and none to take from, the packet has ended. */
    if (best == nullptr || (!best_gives && network_.peers().size() < s_.max_members))
        return;
    out.send.push_back({best->node.id, best->node.address, std::move(m)});
}

void thief::on(nanos now, const msg::nudge &m, effects &out)
{
    network_.learn(now, m.sender);
    if (!decision_.worthwhile(here_.digest(), m.sender.load) || !wants())
        return;
    next_steal_ = now;
    look_for_work(now, out);
}

} // namespace zc::agent::party

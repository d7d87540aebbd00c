/* SPDX-License-Identifier: BSD-3-Clause */
#include "membership.h"

#include <algorithm>
#include <tuple>

namespace zc::agent {
namespace {

constexpr std::uint32_t kBudget = 8; /* times a change is passed on by each node that learns it */
constexpr std::size_t kHelpers = 3;  /* asked to ping for us */
constexpr std::size_t kNews = 5;     /* changes per message */
constexpr std::size_t kGossip = 10;  /* members per message, ourselves included */
constexpr std::uint64_t kDeadEvery = 4; /* rounds between pings of the dead */
constexpr double kReplace = 0.1;        /* a full view takes in a stranger with this probability */
constexpr std::size_t kMostAwaited = 256; /* ours and on behalf of others */
constexpr nanos kProbeAgain = 600 * kSecond;
constexpr unsigned kProbesAtFirst =
    3; /* what one measured on a busy machine is not believed for ten minutes */

auto age(const member &m)
{
    return std::tuple(m.incarnation, m.version, m.state);
}

void average(float &mean, float value)
{
    mean = mean == 0 ? value : 0.75f * mean + 0.25f * value;
}

/** A way is never faster than it is, but all that a machine does besides makes it look slower. */
bool is_to_be_probed(nanos now, const peer &p)
{
    return p.node.state == member_state::alive && p.rtt_us > 0 &&
           (p.probes < kProbesAtFirst || now - p.probed >= kProbeAgain);
}

} // namespace

membership::membership(const settings &s, member self, random_source &random)
    : s_(s), self_(std::move(self)), random_(random)
{
}

void membership::start(nanos now)
{
    next_round_ = now;
    /* Not all at once where many start together. */
    next_probe_ =
        now + static_cast<nanos>(random_.below(static_cast<std::uint64_t>(s_.probe_period) + 1));
    schedule();
}

const peer *membership::find(node_id id) const
{
    auto at = index_.find(id);
    return at == index_.end() ? nullptr : &peers_[at->second];
}

peer *membership::find_mutable(node_id id)
{
    auto at = index_.find(id);
    return at == index_.end() ? nullptr : &peers_[at->second];
}

const peer *membership::find_host(const std::string &host) const
{
    const peer *found = nullptr;
    for (const peer &p : peers_) {
        /* A host whose agent was started anew without its memory has two names: the living one. */
        if (p.node.host == host && p.node.state <= member_state::suspect &&
            (found == nullptr || p.node.incarnation > found->node.incarnation))
            found = &p;
    }
    return found;
}

bool membership::alive(node_id id) const
{
    const peer *p = find(id);
    return p != nullptr && p->node.state <= member_state::suspect;
}

void membership::remove(node_id id)
{
    auto at = index_.find(id);
    if (at == index_.end())
        return;
    std::size_t place = at->second;
    index_.erase(at);
    if (place + 1 != peers_.size()) {
        peers_[place] = std::move(peers_.back());
        index_[peers_[place].node.id] = place;
    }
    peers_.pop_back();
}

void membership::set_state(nanos now, peer &p, member_state state)
{
    if (p.node.state == state)
        return;
    p.node.state = state;
    p.since = now;
    p.budget = kBudget;
}

/** Forgets one node: a dead one, or any that is not wanted. False: the newcomer stays unknown. */
bool membership::make_room(const member &newcomer)
{
    auto gone = std::find_if(peers_.begin(), peers_.end(),
                             [](const peer &p) { return p.node.state >= member_state::dead; });
    if (gone == peers_.end()) {
        if (!is_wanted(newcomer) && !random_.chance(kReplace))
            return false;
        auto first = peers_.begin() + static_cast<std::ptrdiff_t>(random_.below(peers_.size()));
        auto unwanted = [&](const peer &p) { return !is_wanted(p.node); };
        gone = std::find_if(first, peers_.end(), unwanted);
        if (gone == peers_.end())
            gone = std::find_if(peers_.begin(), first, unwanted);
        if (gone == first && !unwanted(*first))
            return false;
    }
    remove(node_id{gone->node.id});
    return true;
}

void membership::learn(nanos now, const member &m)
{
    if (m.id == self_.id) {
        /* Wrong news of ourselves, perhaps of an earlier life: a higher version refutes them. */
        if (m.incarnation > self_.incarnation)
            self_.incarnation = m.incarnation + 1;
        else if (m.incarnation == self_.incarnation && m.version >= self_.version &&
                 m.state != member_state::alive)
            self_.version = m.version + 1;
        return;
    }
    peer *known = find_mutable(m.id);
    if (known == nullptr) {
        if (m.state >= member_state::dead)
            return;
        if (peers_.size() >= s_.max_members && !make_room(m))
            return;
        index_[m.id] = peers_.size();
        peers_.push_back({m, now, now, 0, 0, -kNever, kBudget, 0});
        return;
    }
    if (age(m) <= age(known->node))
        return;
    /* "left" is the member's own word and holds for this life of it. */
    if (known->node.state == member_state::left && m.incarnation == known->node.incarnation)
        return;
    member_state before = known->node.state;
    bool restarted = m.incarnation != known->node.incarnation;
    known->node = m;
    known->heard = now;
    if (before != m.state || restarted) {
        known->since = now;
        known->budget = kBudget;
    }
}

void membership::merge(nanos now, const std::vector<member> &gossip)
{
    for (const member &m : gossip)
        learn(now, m);
}

std::vector<member> membership::gossip()
{
    std::vector<member> told{self_};
    auto has = [&](node_id id) {
        return std::any_of(told.begin(), told.end(), [&](const member &m) { return m.id == id; });
    };
    if (peers_.empty())
        return told;
    /* What changed, from a random place on, then any node. */
    std::size_t first = random_.below(peers_.size());
    for (std::size_t i = 0; i < peers_.size() && told.size() < 1 + kNews; i++) {
        peer &p = peers_[(first + i) % peers_.size()];
        if (p.budget > 0) {
            p.budget--;
            told.push_back(p.node);
        }
    }
    for (std::size_t i = 0; i < kGossip && told.size() < kGossip; i++) {
        const peer &p = peers_[random_.below(peers_.size())];
        if (!has(p.node.id))
            told.push_back(p.node);
    }
    return told;
}

void membership::send_ping(nanos now, const peer &p, outbox &out, node_id on_behalf,
                           std::uint64_t their_nonce)
{
    if (awaited_.size() >= kMostAwaited)
        return;
    std::uint64_t nonce = random_.next();
    awaited_.push_back({p.node.id, nonce, now, false, on_behalf, their_nonce});
    out.push_back({p.node.id, p.node.address, msg::ping{nonce, gossip()}});
}

void membership::ping_seeds(outbox &out)
{
    for (const std::string &seed : s_.seeds) {
        if (seed != self_.address)
            out.push_back({kNoNode, seed, msg::ping{random_.next(), gossip()}});
    }
}

void membership::ping_next(nanos now, outbox &out)
{
    for (int lap = 0; lap < 2; lap++) {
        while (!order_.empty()) {
            const peer *p = find(order_.back());
            order_.pop_back();
            if (p != nullptr && p->node.state <= member_state::suspect)
                return send_ping(now, *p, out);
        }
        for (const peer &p : peers_) {
            if (p.node.state <= member_state::suspect)
                order_.push_back(p.node.id);
        }
        for (std::size_t i = order_.size(); i > 1; i--)
            std::swap(order_[i - 1], order_[random_.below(i)]);
        if (order_.empty())
            return;
    }
}

void membership::ping_a_dead(nanos now, outbox &out)
{
    std::vector<const peer *> dead;
    for (const peer &p : peers_) {
        if (p.node.state == member_state::dead)
            dead.push_back(&p);
    }
    if (!dead.empty())
        send_ping(now, *dead[random_.below(dead.size())], out);
}

void membership::round(nanos now, outbox &out)
{
    self_.version++;
    rounds_++;
    bool alone = std::none_of(peers_.begin(), peers_.end(),
                              [](const peer &p) { return p.node.state <= member_state::suspect; });
    /* Also later, now and then: the seeds may be on the other side of a cut. */
    if (alone || rounds_ % 32 == 0)
        ping_seeds(out);
    ping_next(now, out);
    if (rounds_ % kDeadEvery == 0)
        ping_a_dead(now, out);
}

void membership::probe_one(nanos now, outbox &out)
{
    const peer *best = nullptr;
    std::size_t first = peers_.empty() ? 0 : random_.below(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); i++) {
        const peer &p = peers_[(first + i) % peers_.size()];
        if (is_to_be_probed(now, p) && (best == nullptr || p.probed < best->probed))
            best = &p;
    }
    if (best == nullptr)
        return;
    probe_ = {best->node.id, random_.next(), now};
    peer *asked = find_mutable(best->node.id);
    asked->probed = now;
    asked->probes++;
    out.push_back({probe_.target, best->node.address, msg::probe{probe_.nonce, s_.probe_bytes}});
}

void membership::overdue(nanos now, outbox &out)
{
    std::vector<node_id> silent;
    for (awaited &a : awaited_) {
        if (a.on_behalf != kNoNode || a.indirect || now - a.sent < s_.ping_timeout)
            continue;
        a.indirect = true;
        std::size_t first = peers_.empty() ? 0 : random_.below(peers_.size());
        std::size_t asked = 0;
        for (std::size_t i = 0; i < peers_.size() && asked < kHelpers; i++) {
            const peer &p = peers_[(first + i) % peers_.size()];
            if (p.node.id != a.target && p.node.state == member_state::alive) {
                out.push_back({p.node.id, p.node.address, msg::ping_for_me{a.nonce, a.target}});
                asked++;
            }
        }
    }
    std::erase_if(awaited_, [&](const awaited &a) {
        if (now - a.sent < 3 * s_.ping_timeout)
            return false;
        if (a.on_behalf == kNoNode)
            silent.push_back(a.target);
        return true;
    });
    for (node_id id : silent) {
        peer *p = find_mutable(id);
        if (p != nullptr && p->node.state == member_state::alive)
            set_state(now, *p, member_state::suspect);
    }
}

void membership::bury(nanos now)
{
    std::vector<node_id> forgotten;
    for (peer &p : peers_) {
        if (p.node.state == member_state::suspect && now - p.since >= s_.suspicion)
            set_state(now, p, member_state::dead);
        else if (p.node.state >= member_state::dead && now - p.since >= s_.forget)
            forgotten.push_back(p.node.id);
    }
    for (node_id id : forgotten)
        remove(id);
}

void membership::tick(nanos now, outbox &out)
{
    overdue(now, out);
    if (now >= next_round_) {
        bury(now);
        round(now, out);
        next_round_ = now + s_.period;
    }
    if (now >= next_probe_) {
        probe_one(now, out);
        next_probe_ = now + s_.probe_period;
    }
    schedule();
}

void membership::schedule()
{
    next_ = std::min(next_round_, next_probe_);
    for (const awaited &a : awaited_)
        next_ = std::min(next_,
                         a.sent + (a.indirect || a.on_behalf != kNoNode ? 3 : 1) * s_.ping_timeout);
}

void membership::on(nanos now, node_id from, const msg::ping &m, outbox &out)
{
    merge(now, m.gossip);
    const peer *p = find(from);
    /* A full view need not know the node that asks; the answer goes where the question says. */
    std::string address = p != nullptr ? p->node.address : "";
    if (address.empty() && !m.gossip.empty() && m.gossip[0].id == from)
        address = m.gossip[0].address;
    out.push_back({from, address, msg::ack{m.nonce, gossip()}});
}

void membership::on(nanos now, node_id from, const msg::ack &m, outbox &out)
{
    merge(now, m.gossip);
    auto at = std::find_if(awaited_.begin(), awaited_.end(), [&](const awaited &a) {
        return a.nonce == m.nonce && a.target == from;
    });
    if (at == awaited_.end())
        return;
    awaited a = *at;
    awaited_.erase(at);
    peer *p = find_mutable(from);
    if (a.on_behalf != kNoNode)
        out.push_back({a.on_behalf, "", msg::it_lives{a.their_nonce, from}});
    if (p != nullptr && !a.indirect)
        average(p->rtt_us, static_cast<float>(std::max<nanos>(now - a.sent, 1)) / 1000.0f);
    schedule();
}

void membership::on(nanos now, node_id from, const msg::ping_for_me &m, outbox &out)
{
    if (m.target == self_.id)
        return;
    const peer *p = find(m.target);
    if (p == nullptr)
        return;
    send_ping(now, *p, out, from, m.nonce);
    schedule();
}

void membership::on(nanos, node_id, const msg::it_lives &m)
{
    std::erase_if(awaited_,
                  [&](const awaited &a) { return a.nonce == m.nonce && a.target == m.target; });
    schedule();
}

void membership::on(nanos, node_id from, const msg::probe &m, outbox &out)
{
    out.push_back({from, "", msg::probe_ack{m.nonce}});
}

void membership::on(nanos now, node_id from, const msg::probe_ack &m)
{
    if (from != probe_.target || m.nonce != probe_.nonce)
        return;
    peer *p = find_mutable(from);
    probe_.target = kNoNode;
    if (p == nullptr)
        return;
    /* The way there and back is not transfer. */
    auto taken = static_cast<float>(now - probe_.sent) / 1000.0f;
    float transfer = std::max(taken - p->rtt_us, taken / 10);
    if (transfer <= 0)
        return;
    float measured = static_cast<float>(s_.probe_bytes) / transfer;
    if (p->probes <= kProbesAtFirst)
        p->bytes_per_us = std::max(p->bytes_per_us, measured);
    else
        average(p->bytes_per_us, measured);
}

void membership::on(nanos now, node_id from, const msg::leave &)
{
    if (peer *p = find_mutable(from))
        set_state(now, *p, member_state::left);
}

void membership::leave(outbox &out)
{
    std::size_t told = 0;
    for (const peer &p : peers_) {
        if (p.node.state <= member_state::suspect && told < kMaxVisited) {
            out.push_back({p.node.id, p.node.address, msg::leave{}});
            told++;
        }
    }
}

void membership::learn_bandwidth(node_id node, std::uint64_t bytes, nanos time)
{
    peer *p = find_mutable(node);
    if (p != nullptr && time > 0 && bytes >= (1 << 20))
        average(p->bytes_per_us,
                static_cast<float>(static_cast<double>(bytes) * 1000 / static_cast<double>(time)));
}

std::vector<msg::link> membership::links() const
{
    std::vector<msg::link> known;
    for (const peer &p : peers_) {
        if (p.rtt_us > 0 && p.node.state == member_state::alive)
            known.push_back({p.node.id, p.rtt_us, p.bytes_per_us});
    }
    std::sort(known.begin(), known.end(), [](const msg::link &a, const msg::link &b) {
        return std::tuple(a.rtt_us, a.node) < std::tuple(b.rtt_us, b.node);
    });
    if (known.size() > kMaxLinks)
        known.resize(kMaxLinks);
    return known;
}

} // namespace zc::agent

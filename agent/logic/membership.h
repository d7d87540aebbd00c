/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_MEMBERSHIP_H_INCLUDED
#define ZC_AGENT_MEMBERSHIP_H_INCLUDED

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent_settings.h"
#include "message.h"

namespace zc::agent {

/** To be sent: to an agent, or, while no agent's name is known, to an address. */
struct outbound {
    node_id to = kNoNode;
    std::string address; /* empty: as known to the transport */
    message_body body;
};
using outbox = std::vector<outbound>;

/** One peer as we see it. */
struct peer {
    member node;
    nanos since = 0;  /* in this state */
    nanos heard = 0;  /* last news of it */
    float rtt_us = 0; /* 0: not measured */
    float bytes_per_us = 0;
    nanos probed = -kNever;
    std::uint32_t budget = 0; /* times to pass on what changed */
    unsigned probes = 0;      /* sent */
};

/**
 * The agents that are there: pings one peer per period, asks others to ping a silent one, and
 * passes on what it knows with every ping and its answer (Das, Gupta and Motivala,
 * SWIM, DSN 2002). A claim about a member is as old as the member's version it was
 * made at; signs of life carry a higher one, so what is claimed wrongly heals by
 * itself. The dead are pinged now and then, so that two halves of a cut network
 * find each other again. Latency and bandwidth are measured on the way.
 *
 * Knows at most max_members; in larger networks each agent sees a part of it that
 * changes slowly, but for those that it wants to know.
 */
class membership {
  public:
    membership(const settings &s, member self, random_source &random);

    void start(nanos now);
    /** Does what is due; call at due(), or earlier. */
    void tick(nanos now, outbox &out);
    nanos due() const { return next_; }

    void on(nanos now, node_id from, const msg::ping &m, outbox &out);
    void on(nanos now, node_id from, const msg::ack &m, outbox &out);
    void on(nanos now, node_id from, const msg::ping_for_me &m, outbox &out);
    void on(nanos now, node_id from, const msg::it_lives &m);
    void on(nanos now, node_id from, const msg::probe &m, outbox &out);
    void on(nanos now, node_id from, const msg::probe_ack &m);
    void on(nanos now, node_id from, const msg::leave &m);
    /** News of a member that came with another message. */
    void learn(nanos now, const member &m);
    /** Tells a few that we go. */
    void leave(outbox &out);
    /** Bytes went there in so much time: as good as a measurement. */
    void learn_bandwidth(node_id node, std::uint64_t bytes, nanos time);

    /** Hosts whose agents must not be forgotten, and are to be learnt of: ranks of our jobs
     * are there. */
    void want(std::set<std::string> hosts) { wanted_ = std::move(hosts); }

    void set_load(const load_digest &load) { self_.load = load; }
    const member &self() const { return self_; }

    const peer *find(node_id id) const;
    const peer *find_host(const std::string &host) const;
    bool alive(node_id id) const;
    const std::vector<peer> &peers() const { return peers_; }
    std::vector<msg::link> links() const;

  private:
    struct awaited {
        node_id target;
        std::uint64_t nonce;
        nanos sent;
        bool indirect;     /* others have been asked */
        node_id on_behalf; /* the node that asked for it */
        std::uint64_t their_nonce;
    };

    peer *find_mutable(node_id id);
    void remove(node_id id);
    bool make_room(const member &newcomer);
    bool is_wanted(const member &m) const { return wanted_.contains(m.host); }
    void set_state(nanos now, peer &p, member_state state);
    void merge(nanos now, const std::vector<member> &gossip);
    std::vector<member> gossip();
    void round(nanos now, outbox &out);
    void ping_seeds(outbox &out);
    void ping_next(nanos now, outbox &out);
    void ping_a_dead(nanos now, outbox &out);
    void probe_one(nanos now, outbox &out);
    void overdue(nanos now, outbox &out);
    void bury(nanos now);
    void send_ping(nanos now, const peer &p, outbox &out, node_id on_behalf = kNoNode,
                   std::uint64_t their_nonce = 0);
    void schedule();

    const settings &s_;
    member self_;
    random_source &random_;
    std::vector<peer> peers_;
    std::unordered_map<node_id, std::size_t> index_;
    std::set<std::string> wanted_;
    std::vector<node_id> order_; /* still to be pinged in this lap */
    std::vector<awaited> awaited_;
    struct {
        node_id target = kNoNode;
        std::uint64_t nonce = 0;
        nanos sent = 0;
    } probe_;
    nanos next_round_ = 0;
    nanos next_probe_ = 0;
    nanos next_ = 0;
    std::uint64_t rounds_ = 0;
};

} // namespace zc::agent

#endif

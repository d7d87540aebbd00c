/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy.h"

#include <algorithm>

namespace zc::agent {
namespace {

constexpr float kFar = 1e6f; /* µs; where nothing was measured */

/** Any node, any rank. */
class random_policy final : public policy {
  public:
    std::string_view name() const override { return "random"; }
    double next_hop(const peer &, const msg::steal &, surroundings &s) const override
    {
        return s.random.unit();
    }
    double rank(const local_rank &, const member &, std::span<const msg::link>,
                surroundings &s) const override
    {
        return s.random.unit();
    }
};

/** Towards those we talk to: a rank goes where its partners are. */
class application_policy final : public policy {
  public:
    std::string_view name() const override { return "application"; }
    double next_hop(const peer &candidate, const msg::steal &, surroundings &s) const override
    {
        return traffic_with(s.here, candidate.node.id) + s.random.unit();
    }
    double rank(const local_rank &rank, const member &thief, std::span<const msg::link>,
                surroundings &s) const override
    {
        return traffic_of(s.here, rank, thief.id) - traffic_of(s.here, rank, s.network.self().id);
    }
};

/** Near first; a rank goes where the way to its partners is short. */
class network_policy final : public policy {
  public:
    std::string_view name() const override { return "network"; }
    double next_hop(const peer &candidate, const msg::steal &packet, surroundings &s) const override
    {
        /* The way from the thief counts, where it has told; else ours. */
        float rtt = candidate.rtt_us > 0 ? candidate.rtt_us : kFar;
        for (const msg::link &l : packet.links) {
            if (l.node == candidate.node.id)
                rtt = l.rtt_us;
        }
        return -static_cast<double>(rtt) * (1 + 0.1 * s.random.unit());
    }
    double rank(const local_rank &rank, const member &thief, std::span<const msg::link> thief_links,
                surroundings &s) const override
    {
        const job_view *job = s.here.job(rank.profile.key.job);
        if (job == nullptr)
            return 0;
        double saved = 0;
        for (const flow &f : rank.profile.flows) {
            if (f.peer >= job->placement.size())
                continue;
            node_id where = job->placement[f.peer];
            saved += f.bytes_per_s * (cost_here(where, s) - cost_there(where, thief, thief_links));
        }
        return saved;
    }

  private:
    /* Microseconds to hand over a kilobyte. */
    static double cost(float rtt, float bytes_per_us)
    {
        return rtt / 2 + (bytes_per_us > 0 ? 1024 / bytes_per_us : 10);
    }
    static double cost_here(node_id where, surroundings &s)
    {
        if (where == s.network.self().id)
            return 0;
        const peer *p = s.network.find(where);
        return p == nullptr || p->rtt_us == 0 ? cost(1000, 0) : cost(p->rtt_us, p->bytes_per_us);
    }
    static double cost_there(node_id where, const member &thief, std::span<const msg::link> links)
    {
        if (where == thief.id)
            return 0;
        for (const msg::link &l : links) {
            if (l.node == where)
                return cost(l.rtt_us, l.bytes_per_us);
        }
        return cost(1000, 0);
    }
};

} // namespace

std::unique_ptr<policy> make_policy(std::string_view name)
{
    if (name == "random")
        return std::make_unique<random_policy>();
    if (name == "application")
        return std::make_unique<application_policy>();
    if (name == "network")
        return std::make_unique<network_policy>();
    return nullptr;
}

double traffic_of(const profiling &here, const local_rank &rank, node_id node)
{
    const job_view *job = here.job(rank.profile.key.job);
    if (job == nullptr)
        return 0;
    double bytes = 0;
    for (const flow &f : rank.profile.flows) {
        if (f.peer < job->placement.size() && job->placement[f.peer] == node)
            bytes += f.bytes_per_s;
    }
    return bytes;
}

double traffic_with(const profiling &here, node_id node)
{
    double bytes = 0;
    for (const auto &[key, rank] : here.ranks())
        bytes += traffic_of(here, rank, node);
    return bytes;
}

} // namespace zc::agent

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_POLICY_H_INCLUDED
#define ZC_AGENT_POLICY_H_INCLUDED

#include <memory>
#include <span>
#include <string_view>

#include "membership.h"
#include "profiling.h"

namespace zc::agent {

/** What a policy may look at. */
struct surroundings {
    const profiling &here;
    const membership &network;
    random_source &random;
};

/**
 * Where work is sought and which rank is given: the work-stealing policies of El
 * Maghraoui et al. (The Internet Operating System). A new one is a class here and a
 * line in make_policy(). Higher is better; only the order counts.
 */
class policy {
  public:
    virtual ~policy() = default;
    virtual std::string_view name() const = 0;
    /** Of asking this peer next. */
    virtual double next_hop(const peer &candidate, const msg::steal &packet,
                            surroundings &s) const = 0;
    /** Of giving this rank to that thief. */
    virtual double rank(const local_rank &rank, const member &thief,
                        std::span<const msg::link> thief_links, surroundings &s) const = 0;
};

/** "random", "application", "network"; NULL for another name. */
std::unique_ptr<policy> make_policy(std::string_view name);

/** Bytes per second that ranks here exchange with ranks on @node. */
double traffic_with(const profiling &here, node_id node);
/** Bytes per second that @rank exchanges with ranks on @node. */
double traffic_of(const profiling &here, const local_rank &rank, node_id node);

} // namespace zc::agent

#endif

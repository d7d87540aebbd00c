/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_PLACEMENT_H_INCLUDED
#define ZC_AGENT_PLACEMENT_H_INCLUDED

#include <cstdint>
#include <span>
#include <vector>

#include "zcp/grouping.h"

namespace zc::agent {

/** Ranks to be put on nodes so that their traffic travels little. */
struct placement_problem {
    std::vector<std::uint32_t> room; /* of each node: ranks it may have in all */
    /* cost[a * nodes + b]: to carry a byte from node a to b, in any unit; 0 on the diagonal */
    std::vector<double> cost;
    std::vector<std::uint32_t> now; /* node of each rank */
    std::vector<bool> fixed;        /* ranks that stay */
    std::vector<zcp_flow_t> flows;
};

/** Bytes times the cost of their way. */
double placement_cost(const placement_problem &p, std::span<const std::uint32_t> node_of);

/**
 * A node for each rank. Scotch maps the traffic onto the nodes as measured; the result
 * is made to fit the room exactly, then improved by moves and exchanges as long as that
 * helps. The same is done from where the ranks are now (those that do not fit there put
 * where there is room), and the cheaper of both is taken. Deterministic.
 *
 * Empty if the ranks do not fit, or the problem contradicts itself.
 */
std::vector<std::uint32_t> place(const placement_problem &p);

} // namespace zc::agent

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_WORLD_H_INCLUDED
#define ZC_AGENT_WORLD_H_INCLUDED

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission.h"
#include "agent.h"
#include "experiment.h"

namespace zc::agent::sim {

constexpr double kIteration = 0.1; /* seconds at pace 1 */
constexpr double kNoise = 0.3;     /* threads by which a sample may be wrong */

constexpr node_id id_of(std::uint32_t n)
{
    return node_id{n} + 1;
}
constexpr std::uint32_t index_of(node_id id)
{
    return static_cast<std::uint32_t>(id - 1);
}

/** A virtual node, and its agent while that lives. */
struct node {
    std::unique_ptr<agent> mind;
    std::unique_ptr<admission> door;
    std::string disk;
    bool up = false;
    double drift = 0;
    nanos offset = 0;
    double cpus = 4;
    double speed = 1;
    double seen_speed = 1; /* as its agent measures it */
    double others = 0;     /* runnable threads that are not ranks */
    std::uint32_t rack = 0;
    std::uint64_t sequence = 0;
    std::uint64_t lives = 0;
    nanos wake_at = kNever;
    int side = 0; /* of a cut */
    std::set<rank_key> ranks;
    std::map<txn_id, msg::outcome> past; /* what it asked of jobs, in this life */
};

/** Where its ranks are, how far it is, and the move that is under way. */
struct job {
    std::uint64_t epoch = 1;
    std::vector<std::uint32_t> where;
    std::uint64_t image = 0;
    double iterations = 0;
    std::uint64_t total = 0;
    nanos counted = 0;
    bool busy = false;
    nanos begun = 0;
    msg::ask current;
    std::uint32_t reached_by = 0;
    std::uint64_t its_life = 0;
    msg::verdict end = msg::verdict::moved;
    double seconds = 0;
    std::vector<rank_id> seat;      /* with phases: partners are chosen by seats, not by ranks */
    std::optional<bool> at_the_end; /* of a first phase ranks were first moved */
    traffic_after after;
};

/** The nodes and jobs as they truly are, and what follows from that; agents see samples. */
struct world {
    explicit world(const options &o);

    bool calm() const { return now >= calm_from; }
    /** What the clock of node @n says now. */
    nanos local(std::uint32_t n) const;
    /** When the clock of node @n says @at. */
    nanos global(std::uint32_t n, nanos at) const;

    double node_pace(std::uint32_t n) const;
    double true_pace(const job &j) const;
    balance_sheet measure() const;

    /** Is that in a first phase? @before_end: and not longer than this before its end; 0: wherever.
     */
    bool in_phase_a(nanos at, double before_end) const;
    /** What the rank has sent within the last second; completes its profile. */
    std::vector<zcp_event_t> traffic(job &j, rank_profile &p, std::uint32_t n) const;

    const options &o;
    nanos now = 0;
    nanos end = 0;
    nanos calm_from = 0;
    std::vector<node> nodes;
    std::map<job_id, job> jobs;

  private:
    rank_id partner(const job &j, rank_id rank, nanos at) const;
};

} // namespace zc::agent::sim

#endif

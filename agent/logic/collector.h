/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_COLLECTOR_H_INCLUDED
#define ZC_AGENT_COLLECTOR_H_INCLUDED

#include <map>
#include <span>
#include <vector>

#include "zcp/grouping.h"

#include "membership.h"
#include "profiling.h"

namespace zc::agent {

/** A message of a rank, as it is told to another agent at @now. */
msg::sent told_at(nanos now, const zcp_event_t &event);
/** What was told at @told_ns, by the clock of the one who is told. */
zcp_event_t heard_at(std::uint64_t told_ns, const msg::sent &told);

/**
 * The messages of all ranks of a job, with policy.collect = "job": each agent that has ranks of it
 * tells the others what these have sent, so each knows what the collector of Singh & Graham does,
 * and none is the only one. For small jobs: each message is told to every other agent.
 *
 * They are handed out in the order of their times, which the predictors of sequences need. An
 * agent tells those of a whole sample at once, so each is kept for settings::collect_delay. Clocks
 * of nodes are compared by the message that took least on its way.
 */
class collector {
  public:
    static constexpr std::size_t kMostTold = 10 * kMaxPast;        /* to an agent, of a sample */
    static constexpr std::size_t kMostAtOnce = 10 * kMostTold;     /* to all agents of a job */
    static constexpr std::size_t kMostKept = std::size_t{1} << 18; /* of a job */

    struct counts {
        std::uint64_t told = 0;   /* once for each agent that was to be told */
        std::uint64_t untold = 0; /* the earliest of a sample that has more than may be told */
        std::uint64_t learned = 0;
        std::uint64_t refused = 0; /* of ranks that are not at the sender, as far as is known */
        std::uint64_t late = 0;    /* later ones had been handed out */
        std::uint64_t no_room = 0; /* more than an agent may tell in a sample */
    };

    explicit collector(const settings &s) : s_(s) {}

    /** @events of ranks here are kept, and told to the other agents of the job. */
    void tell(nanos now, const job_view &job, node_id self, std::span<const zcp_event_t> events,
              outbox &out);
    /** From an agent in its life @incarnation. @job: what is known of it here, null if nothing is.
     */
    void learn(nanos now, node_id from, std::uint64_t incarnation, const msg::traffic &m,
               const job_view *job);
    void refuse(const msg::traffic &m) { counts_.refused += m.events.size(); }
    /** Those whose time has come; more than kMostKept do not wait for it. Once a sample. */
    std::vector<zcp_event_t> take(nanos now, job_id job);
    void job_gone(job_id job) { kept_.erase(job); }
    const counts &counted() const { return counts_; }

  private:
    struct waiting {
        std::vector<zcp_event_t> events;
        std::map<node_id, std::size_t> told; /* by each agent since some were handed out */
        std::uint64_t taken_ns = 0;          /* time of the last that was handed out */
        bool alone = true;                   /* no other agent has ranks of the job */
    };
    /** What to add to a time of an agent's clock. */
    struct clock {
        std::uint64_t incarnation;
        nanos offset;
        nanos compared; /* when */
    };
    nanos offset_of(nanos now, node_id from, std::uint64_t incarnation, nanos told);

    const settings &s_;
    std::map<job_id, waiting> kept_;
    std::map<node_id, clock> clocks_;
    counts counts_;
};

} // namespace zc::agent

#endif

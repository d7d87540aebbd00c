/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_EXPERIMENT_H_INCLUDED
#define ZC_AGENT_EXPERIMENT_H_INCLUDED

#include <map>
#include <string>
#include <vector>

#include "agent.h"
#include "agent_settings.h"

namespace zc::agent::sim {

/** What world to make. The same options give the same run, to the last message. */
struct options {
    std::uint64_t seed = 1;
    std::uint32_t nodes = 10;
    double seconds = 240;  /* of virtual time */
    double calm = 0.6;     /* last part of it in which nothing goes wrong and no load changes */
    double loss = 0;       /* part of the messages that are lost */
    double crash = 0;      /* of an agent, before any one effect of its protocol */
    double lose_state = 0; /* part of the crashes that take the state file along */
    double late = 0;       /* part of the messages that take up to 40 s */
    std::uint32_t partitions = 0; /* cuts of 10 s, in two halves */
    std::uint32_t churn = 0;      /* idle nodes that go and come back */
    std::uint32_t load_changes = 0;
    double skew = 0;       /* clocks drift by up to this part, and start anywhere */
    double stuck = 0;      /* moves whose ranks do not reach a safe point */
    double fail = 0;       /* moves that are begun and undone */
    bool balanced = false; /* no imbalance to begin with */
    double speeds = 1;     /* processors of one node are up to so many times as fast as another's */
    bool measures = true;  /* within 5 %; false: agents take them for equal */
    /* If not 0: another world. On every second node four ranks, the others idle; all jobs go
     * through two phases of so many seconds in turn, each with its own pairs of partners; at some
     * moment of the second half of the faulty part others come to each job's node, and two of its
     * ranks should go. */
    double phase_a = 0;
    double phase_b = 0;
    settings agents; /* of every agent */
};

/** Traffic of jobs since ranks of theirs were moved. */
struct traffic_after {
    std::uint64_t jobs = 0;
    double bytes = 0;
    double across = 0; /* of these, from one node to another */
    double part() const { return bytes > 0 ? across / bytes : 0; }
};

/**
 * How evenly the work lies. Each move makes the slower of two nodes faster, so @imbalance and
 * @worst fall, while @mean may grow: a job that shares its node with ranks of an overloaded one
 * pays for it.
 */
struct balance_sheet {
    double imbalance = 0; /* standard deviation over the nodes of threads per processor and speed */
    double mean = 0;      /* over the jobs, of the pace of their slowest rank */
    double worst = 0;     /* of these */
};

/** What came of it. */
struct result {
    std::uint64_t events = 0;
    std::uint64_t messages = 0;
    std::uint64_t message_bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t steals_in_calm = 0; /* steal packets in the last quarter of the calm */
    std::uint64_t asks = 0;
    std::uint64_t refused_asks = 0;
    std::uint64_t moves = 0;
    std::uint64_t ranks_moved = 0;
    agent::handed_over handed_over;      /* by the agents that are up at the end */
    std::uint64_t collected = 0;         /* by them, of what ranks elsewhere have sent */
    std::uint64_t collected_in_vain = 0; /* as it came too late, or the rank is not known there */
    std::uint64_t failed = 0;
    std::uint64_t crashes = 0;
    std::uint64_t marginal_moves = 0; /* in the calm: just at the hysteresis, so due at any time */
    std::uint64_t last_move_ms = 0;   /* virtual time of the last one but for these */
    balance_sheet before;
    balance_sheet after;
    traffic_after
        at_the_end; /* with phases: of jobs moved in the last seconds of the first phase */
    traffic_after otherwise;
    std::map<std::string, std::uint64_t> by_type;
    std::vector<std::string> violations; /* of the invariants; empty is good */
};

} // namespace zc::agent::sim

#endif

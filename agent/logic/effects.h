/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_EFFECTS_H_INCLUDED
#define ZC_AGENT_EFFECTS_H_INCLUDED

#include <vector>

#include "membership.h"

namespace zc::agent {

/** Ranks that were at home here and have moved. */
struct departure {
    txn_id txn;
    job_id job = 0;
    std::vector<rank_id> ranks;
    node_id target = kNoNode;
};

/** What the logic wants done. If @save, state is written first; only then the rest. */
struct effects {
    outbox send;
    std::vector<msg::ask> ask;     /* of the job, which we reach */
    std::vector<msg::query> query; /* likewise */
    bool save = false;
    std::vector<departure> departed; /* not for the daemon: the agent has dealt with them */
};

} // namespace zc::agent

#endif

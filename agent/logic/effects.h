/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_EFFECTS_H_INCLUDED
#define ZC_AGENT_EFFECTS_H_INCLUDED

#include <vector>

#include "membership.h"

namespace zc::agent {

/** What the logic wants done. If @save, state is written first; only then the rest. */
struct effects {
    outbox send;
    std::vector<msg::ask> ask;     /* of the job, which we reach */
    std::vector<msg::query> query; /* likewise */
    bool save = false;
};

} // namespace zc::agent

#endif

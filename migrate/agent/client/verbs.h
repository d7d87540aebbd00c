/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_VERBS_H_INCLUDED
#define ZC_AGENT_VERBS_H_INCLUDED

namespace CLI {
class App;
}

namespace zc::agent::client {

/**
 * Adds the verbs that ask an agent: nodes, ranks, groups, history, why, drain, resume,
 * leave, report. Each throws client_error from its callback when it fails; the caller
 * prints that and exits with 1. zcctl calls this; zcm-agentctl is nothing else.
 */
void add_agent_verbs(CLI::App &app);

} // namespace zc::agent::client

#endif

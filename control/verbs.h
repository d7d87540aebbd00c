/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_VERBS_H_INCLUDED
#define ZC_CONTROL_VERBS_H_INCLUDED

#include <string>

namespace CLI {
class App;
}

namespace zc::control {

/**
 * Adds the verbs that ask an agent: nodes, ranks, groups, history, why, resume, leave,
 * report. Each throws client_error from its callback, so from app.parse(), when it
 * fails. A --json that @app has already means the same as that of the verb.
 */
void add_agent_verbs(CLI::App &app);

/** Adds the verb drain, which asks the agent as well, unless @host is given when it is parsed. */
CLI::App *add_drain_verb(CLI::App &app, const std::string &host);

} // namespace zc::control

#endif

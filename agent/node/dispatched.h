/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_DISPATCHED_H_INCLUDED
#define ZC_AGENT_DISPATCHED_H_INCLUDED

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config.h"
#include "keys.h"

namespace zc::agent {

/*
 * An agent of one job, which zcm-run has started by ssh or srun: zcmd dispatched. All that it needs
 * comes by its standard input, so that nothing has to be on the node but the program, and secrets
 * are in no file and on no command line. It ends when its input ends, however that comes about: the
 * job has ended, zcm-run was killed, or the connection is gone.
 *
 *   zcm-run ── order, a line of JSON ──▶ zcmd     {"version":1, "directory":…, "agents":4, …}
 *           ◀── ready ────────────────            {"address":"tcp://a:40123", "public":…, …}
 *           ◀── together ─────────────            {"together":true}: it knows all others
 *           ── end of the input ──────▶
 *
 * If zcm-run looks for agents that run already, it asks first, and an order comes only if there is
 * none. One that was found is watched by this process, which ends with its input or with that
 * agent. It does not end the agent.
 *
 *   zcm-run ── {"version":1, "find":true, …} ──▶ zcmd
 *           ◀── {"found":false}, or true with address, public, secret, profiles, … ──
 *           ── {"others":["tcp://b:40123"]} ──▶ if it was found: who it is to know
 *           ◀── together ─────────────
 */

/** What zcm-run says; see parse_order(). */
struct dispatch_order {
    config c;                     /* of the file that the user gave, without what follows */
    std::optional<key_pair> keys; /* the first agent makes them */
    std::string directory;        /* of this agent and the ranks of its node alone; not yet there */
    std::uint32_t agents = 1;     /* of the job, this one included */
};

class dispatch_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/** Throws dispatch_error, config_error or key_error. */
dispatch_order parse_order(std::string_view line);

/** zcm-run asks whether an agent runs here. */
struct search_order {
    config c; /* that it may have: the one that is given, else the one that zcmd takes by itself */
    std::string sockets; /* of jobs, which it has to look at; empty: where they are by default */
};

/** nullopt: @line is another order. Throws as parse_order() does. */
std::optional<search_order> parse_search(std::string_view line);

/** Does what zcm-run says by @in, and answers by @out, until @in ends. Throws, as the agent does.
 */
void run_dispatched(int in, int out);

} // namespace zc::agent

#endif

/* SPDX-License-Identifier: BSD-3-Clause */

/* zcm-agentctl: the verbs of zcctl that ask an agent, by themselves. See zcmd(8). */
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "verbs.h"

int main(int argc, char **argv)
{
    CLI::App app("Ask the agent of this node", "zcm-agentctl");
    app.set_version_flag("--version", ZC_VERSION);
    app.require_subcommand(1);
    zc::agent::client::add_agent_verbs(app);
    app.footer("exit status: 0 done; 1 failed, e.g. no agent; 2 usage");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? 0 : 2;
    } catch (const std::exception &e) {
        fmt::print(stderr, "zcm-agentctl: {}\n", e.what());
        return 1;
    }
    return 0;
}

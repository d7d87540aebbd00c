/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <vector>

namespace zc::migrate {

/** What --agents and its companions say. */
struct agents_options {
    bool wanted = false;
    std::string mode = "move";
    std::string launcher;           /* "": as mpiexec does it */
    std::string program;            /* zcmd, at the same path on all hosts; "": beside zcm-run */
    std::string config;             /* a file for all agents; "": none */
    std::string directory = "/tmp"; /* in which each host makes one */
    std::string logs;               /* a directory for what agents log; "": none */
    bool finds = false;             /* agents that run already are handed to the job, too */
    double wait_s = 60;
};

/**
 * Runs @command, mpiexec's, with an agent on each of its hosts (dispatch.h). Returns its exit
 * status, or that of zcm-run(1). Throws error if something that the agents need is not right;
 * nothing has been started then.
 */
int run_with_agents(const agents_options &options, const std::vector<std::string> &command);

} // namespace zc::migrate

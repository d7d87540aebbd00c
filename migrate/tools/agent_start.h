/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <vector>

namespace zc::migrate {

/** How processes are started on hosts: as mpiexec does it, unless the user says otherwise. */
struct agent_start {
    std::vector<std::string> words; /* %h: the host; without it the host comes last */
    bool is_chosen = false;         /* by the user: for this host, too */

    /** Of the host that this process is on; agents there need no launcher. */
    std::vector<std::string> own_names;

    /** @program: zcmd. */
    std::vector<std::string> command(const std::string &host, const std::string &program) const;
};

/**
 * @chosen: the user's command, or ""; @mpiexec: the words of the job. Else Slurm's srun in a job of
 * Slurm's, else ssh, or what mpiexec was given in its place. Throws error(EINVAL) if mpiexec starts
 * its processes by something else.
 */
agent_start find_agent_start(const std::string &chosen, const std::vector<std::string> &mpiexec);

} // namespace zc::migrate

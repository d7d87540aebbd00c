/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_name.h"

#include <cstdlib>
#include <unistd.h>

#include "ancestors.h"
#include "environment.h"
#include "host_name.h"

namespace zc::holder {
namespace {

/** Hydra's mpiexec waits there for its proxies, on all hosts. */
std::string control_port(const std::vector<std::string> &proxy)
{
    for (std::size_t i = 0; i + 1 < proxy.size(); i++) {
        if (proxy[i] == "--control-port")
            return proxy[i + 1];
    }
    return {};
}

} // namespace

rank_of_job describe_rank(const std::string &given, const std::string &spawned_by,
                          const std::vector<std::string> &proxy,
                          std::string (*variable)(const char *name))
{
    rank_of_job one;
    for (const char *name : {"PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) {
        if (const std::string said = variable(name); !said.empty()) {
            one.rank = said;
            break;
        }
    }
    for (const char *name : {"PMI_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}) {
        if (const int said = std::atoi(variable(name).c_str()); said > 0) {
            one.size = said;
            break;
        }
    }
    const std::string port = control_port(proxy), slurm = variable("SLURM_JOB_ID");
    if (!given.empty())
        one.job = given;
    else if (!port.empty())
        one.job = port;
    else if (!slurm.empty())
        one.job = slurm + "." + variable("SLURM_STEP_ID");
    else {
        one.job = host_name() + "-" + std::to_string(getpid());
        one.has_launcher = false;
    }
    if (given.empty() && !spawned_by.empty())
        one.job = spawned_by + "+" + one.job;
    one.first = spawned_by.empty() ? one.job : spawned_by;
    return one;
}

rank_of_job this_rank(const std::string &given, const std::string &spawned_by)
{
    return describe_rank(given, spawned_by, hydra_proxy(), variable_of_this_process);
}

} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_JOB_NAME_H_INCLUDED
#define ZC_HOLDER_JOB_NAME_H_INCLUDED

#include <optional>
#include <string>
#include <vector>

namespace zc::holder {

/** What the launcher has told of a rank. */
struct rank_of_job {
    std::string job;
    std::string first; /* the job that the launcher has started, of which this one may have come */
    std::string rank = "0";
    int size = 0;             /* ranks of the job; 0: not told */
    bool has_launcher = true; /* that is known; else others may be of the same job */
};

/**
 * The same name for all ranks of a job, on whatever hosts, and another for each job that runs:
 * where Hydra's mpiexec listens, Slurm's numbers of job and step; of what has no launcher that is
 * known, this host and process. Of a world that was spawned, that of the first one comes before it,
 * and "+".
 *
 * @given: by the user; empty: none. @spawned_by: the first job, if this one was spawned. @proxy:
 * the command line of Hydra's, empty if there is none.
 * @variable: of the environment, empty if it is not set.
 */
rank_of_job describe_rank(const std::string &given, const std::string &spawned_by,
                          const std::vector<std::string> &proxy,
                          std::string (*variable)(const char *name));

/** Of this process. */
rank_of_job this_rank(const std::string &given, const std::string &spawned_by);

} // namespace zc::holder

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "candidates.h"

#include <fmt/format.h>

namespace zc::agent {

std::optional<std::string> candidates::why_not_yet(nanos now) const
{
    const nanos lasted = here_.overloaded_for(now);
    if (here_.draining() || lasted >= s_.settle)
        return std::nullopt;
    return fmt::format("overloaded for {:.1f} s only, waiting for {:.1f} s", to_seconds(lasted),
                       to_seconds(s_.settle));
}

std::vector<const local_rank *> candidates::of(const job_view &job, node_id target,
                                               const free_check &free, std::string &why_not) const
{
    std::vector<const local_rank *> found;
    if (job.busy) {
        why_not = "the job is being reconfigured";
        return found;
    }
    why_not = "no rank of the job is here";
    for (auto at = here_.ranks().lower_bound({job.job, 0});
         at != here_.ranks().end() && at->first.job == job.job; ++at) {
        std::string reason;
        if (free(at->second, target, reason))
            found.push_back(&at->second);
        else
            why_not = fmt::format("no rank may go: rank {} {}", at->first.rank, reason);
    }
    return found;
}

} // namespace zc::agent

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_RANK_GROUPS_H_INCLUDED
#define ZC_AGENT_RANK_GROUPS_H_INCLUDED

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zcp/grouping.h"

#include "agent_settings.h"
#include "basics.h"

namespace zc::agent {

/** Which ranks belong together. One instance per agent; jobs are kept apart. */
class grouping {
  public:
    virtual ~grouping() = default;
    /**
     * The job has so many ranks; repeated calls do nothing, or try again after a failure.
     * Return: 0; else an errno, and ranks of this job have no groups: ENOSPC (memory for each job
     * does not suffice for this many ranks), EINVAL (more ranks than the engine can do), ENOMEM.
     */
    virtual int job(job_id, std::uint32_t) { return 0; }
    virtual void job_gone(job_id) {}
    /** Messages of ranks of the job, in the order of their time. */
    virtual void observe(job_id, std::span<const zcp_event_t>) {}
    /** The latest messages of @ranks that were observed, at most @most, in the order of their
     *  time: for the agent of the node that they have moved to. */
    virtual std::vector<zcp_event_t> past(job_id, std::span<const rank_id>, std::size_t) const
    {
        return {};
    }
    /** What was observed of ranks elsewhere, before they came; takes the place of what was observed
     *  of them here at an earlier time. In the order of time. */
    virtual void inherit(job_id, std::span<const zcp_event_t>) {}
    /** @rank first, then those that should go with it, most important first: at most @most in all,
     * but for pattern_settings::membership::all, where only the caller knows which of them can go.
     */
    virtual std::vector<rank_id> around(job_id, rank_id rank, std::uint32_t most) const
    {
        return most > 0 ? std::vector{rank} : std::vector<rank_id>{};
    }
    /** Traffic of the next period, most bytes first. */
    virtual std::vector<zcp_flow_t> expected(job_id) const { return {}; }
};

/**
 * What make_grouping() knows. "zc": the prediction engine; "matrix": a decayed traffic matrix;
 * "teiresias-basic", "teiresias-specific", "teiresias-levenshtein": the predictors of Singh &
 * Graham; "single": no groups.
 */
const std::vector<std::string> &grouping_names();

/** @bytes: memory for each job, 0 for the engine's default. NULL for another name. */
std::unique_ptr<grouping> make_grouping(std::string_view name, std::size_t bytes = 0,
                                        const pattern_settings &patterns = {});

} // namespace zc::agent

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_CANDIDATES_H_INCLUDED
#define ZC_AGENT_CANDIDATES_H_INCLUDED

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent_settings.h"
#include "profiling.h"

namespace zc::agent {

/** Whether a rank may be decided on now; sets the reason if not. */
using free_check = std::function<bool(const local_rank &, node_id target, std::string &)>;

/** The ranks here that a decision may choose from, whatever it chooses by. */
class candidates {
  public:
    candidates(const settings &s, const profiling &here) : s_(s), here_(here) {}

    /** Why it is too early to choose: thieves ask whenever they like, and what lasts for a moment
     * only is no reason. */
    std::optional<std::string> why_not_yet(nanos now) const;
    /** Those of @job that are @free to go to @target. @why_not: why there is none. */
    std::vector<const local_rank *> of(const job_view &job, node_id target, const free_check &free,
                                       std::string &why_not) const;

  private:
    const settings &s_;
    const profiling &here_;
};

} // namespace zc::agent

#endif

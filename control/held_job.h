/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_HELD_JOB_H_INCLUDED
#define ZC_CONTROL_HELD_JOB_H_INCLUDED

#include <string>
#include <vector>

#include "zch/held_ranks.h"

namespace zc::control {

/** The job of @found that @wanted names, or, empty, the only one. Throws error(ENOENT), which says
 * what there is. */
std::string the_held_job(const holder::held_survey &found, const std::string &wanted);

/** Each of @ranks of @job, in order. Throws error: ENOENT if one is not below zc-hold, EINVAL if
 * one is named twice. */
std::vector<holder::held_rank> the_held_ranks(const holder::held_survey &found,
                                              const std::string &job,
                                              const std::vector<int> &ranks);

} // namespace zc::control

#endif

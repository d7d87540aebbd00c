/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_CONTROL_CLIENT_H_INCLUDED
#define ZC_CONTROL_CONTROL_CLIENT_H_INCLUDED

#include <string>
#include <vector>

namespace zc::control {

/** Names of the jobs that have a socket in @directory. */
std::vector<std::string> jobs_in(const std::string &directory);

/** Send one line to a job, wait for its one line at most @timeout_s. Throws error. */
std::string ask_job(const std::string &directory, const std::string &job, const std::string &line,
                    double timeout_s);

} // namespace zc::control

#endif

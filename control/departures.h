/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_DEPARTURES_H_INCLUDED
#define ZC_CONTROL_DEPARTURES_H_INCLUDED

#include <string>
#include <vector>

#include "request.h"

namespace zc::control {

/** Of @hosts the one that has the fewest of the ranks in @host_of; of several the first. Empty, if
 * there is none. */
std::string emptiest(const std::vector<std::string> &hosts,
                     const std::vector<std::string> &host_of);

/**
 * Where the ranks of a job that are on @host go when it is emptied: one by one to the emptiest of
 * @to, or, if that is empty, of the other hosts of the job. @host_of: of each rank. Empty if there
 * is none on @host, or no other host.
 */
std::vector<request::target> departures(const std::vector<std::string> &host_of,
                                        const std::string &host,
                                        const std::vector<std::string> &to);

} // namespace zc::control

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_HTML_REPORT_H_INCLUDED
#define ZC_CONTROL_HTML_REPORT_H_INCLUDED

#include <string>
#include <vector>

namespace zc::control {

/**
 * One HTML file, without anything to load, from the records that agents wrote
 * (agent.record_file): iterations per second, load of each node, migrations with
 * their phases, groups as a picture. Throws client_error naming file and line.
 */
std::string make_report(const std::vector<std::string> &records);

} // namespace zc::control

#endif

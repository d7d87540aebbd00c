/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_JOB_SOCKETS_H_INCLUDED
#define ZC_CONTROL_JOB_SOCKETS_H_INCLUDED

#include <string>
#include <vector>

namespace zc::control {

/** Where the sockets of jobs are, unless ZC_MIGRATE_SOCKETS says otherwise (runtime_directory.h).
 */
std::string default_socket_directory();
/** Where they are if they cannot be there: /tmp/zcm-UID. */
std::string last_socket_directory();
/** All directories in which jobs of this user may have theirs: the default one, and of the others
 * those that belong to this user alone. */
std::vector<std::string> all_socket_directories();

} // namespace zc::control

#endif

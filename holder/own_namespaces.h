/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_OWN_NAMESPACES_H_INCLUDED
#define ZC_HOLDER_OWN_NAMESPACES_H_INCLUDED

#include <string>

#include <sys/types.h>

namespace zc::holder {

/**
 * What CRIU needs, for a user who has no privilege: a user namespace (user_namespaces(7)), in which
 * a process has all capabilities over itself and what it starts, and none over anything else. All
 * functions are for processes of one thread.
 *
 * The user and the group have the numbers that they have outside. Others have none inside: files of
 * theirs seem to be those of the user 65534, and no program becomes another user (set-user-ID).
 */

/** This process has not what CRIU needs, and would have it in a user namespace. */
bool needs_user_namespace();

/** Why CRIU cannot do its work although this process is root: it is root of a user namespace, with
 * users of its own, and CRIU takes it for the host's. Empty: it is not so. */
std::string root_reason();

/** Into a new one. Throws error; then this process is where it was. */
void enter_user_namespace();

/** Into that of the other processes of @job, or of all jobs that have no name (namespace_record.h):
 * processes of several namespaces may not look at each other's memory, as ranks of one host may
 * want to. Throws error; then this process is where it was. */
void enter_user_namespace(const std::string &job);

/** This process is in such a one. */
bool is_in_own_user_namespace();

/** The caller's child goes on as the first process of a PID namespace, and of a mount namespace
 * that shows it in /proc; the caller ends. What it starts, threads included, has the numbers after
 * @last_number. Throws error. */
void become_first_of_namespaces(pid_t last_number);

} // namespace zc::holder

#endif

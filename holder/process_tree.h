/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PROCESS_TREE_H_INCLUDED
#define ZC_HOLDER_PROCESS_TREE_H_INCLUDED

#include <vector>

#include <sys/types.h>

namespace zc::holder {

/** Those that run of the process @pid, what it has started, what that has started, and so on; and
 * of its session, if it has made one. */
std::vector<pid_t> tree_of(pid_t pid);

/** Kills them, and returns when none of them runs. @pid is not reaped. */
void end_tree(pid_t pid);

} // namespace zc::holder

#endif

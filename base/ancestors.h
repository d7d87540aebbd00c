/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_ANCESTORS_H_INCLUDED
#define ZC_BASE_ANCESTORS_H_INCLUDED

#include <string>
#include <vector>

namespace zc {

/** How far up mpiexec and its proxy are looked for: above zcm-launch and its guard, and a shell. */
inline constexpr int kAncestors = 8;

/** Of another process; empty, or 0, if that cannot be read. */
std::vector<std::string> command_line_of(long pid);
long parent_of(long pid);

/** The command line of the proxy of Hydra's that is an ancestor of this process; empty if there is
 * none. */
std::vector<std::string> hydra_proxy();

} // namespace zc

#endif

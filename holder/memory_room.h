/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_MEMORY_ROOM_H_INCLUDED
#define ZC_HOLDER_MEMORY_ROOM_H_INCLUDED

#include <cstdint>
#include <string>

namespace zc::holder {

/** How much memory this process can have, in KiB: what this host has, and what the limits of its
 * control group, and of those around it, leave. @root: where /proc and /sys are, for a test. */
std::uint64_t memory_room(const std::string &root = "");

} // namespace zc::holder

#endif

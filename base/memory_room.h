/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_MEMORY_ROOM_H_INCLUDED
#define ZC_BASE_MEMORY_ROOM_H_INCLUDED

#include <cstdint>
#include <string>

namespace zc {

/**
 * Returns how many bytes of memory this process can still have: what the kernel takes for available
 * (MemAvailable in proc(5)), or less if the limits of its control groups, of either version, leave
 * less. What is cached of files and not in use makes room. The largest number: none of them tells.
 * @root: where /proc and /sys are, for a test.
 */
std::uint64_t memory_room(const std::string &root = "");

} // namespace zc

#endif

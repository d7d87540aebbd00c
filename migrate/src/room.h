/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>

namespace zc::migrate {

/**
 * Bytes of memory that processes like this one can still have on this host: what the kernel takes
 * for available, or less if a control group that this process is in has less. Unlimited if neither
 * can be read. @root: where /proc and /sys are; tests have their own.
 */
std::uint64_t room_in_memory(const std::string &root = "");

} // namespace zc::migrate

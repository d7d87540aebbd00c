/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_DRAIN_H_INCLUDED
#define ZC_CONTROL_DRAIN_H_INCLUDED

#include <string>
#include <vector>

#include "transparent.h"

namespace zc::control {

/**
 * Moves all ranks that are on @host to other hosts of their jobs, or to those of @to, and waits:
 * ranks of libzcm's jobs whose sockets are in @directories, then, without help of their programs,
 * ranks below zc-hold. Prints what stayed and why. Return: an exit_status.
 */
int drain(const transparent_options &how, const std::string &host,
          const std::vector<std::string> &to, const std::vector<std::string> &directories);

} // namespace zc::control

#endif

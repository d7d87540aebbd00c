/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "state.h"

namespace zc::instrument {

/**
 * What of the program cannot be decided, or cannot move, whatever is registered: calls of functions
 * that are neither here nor known, state of libraries, pointers that are kept as numbers, handles
 * that are made after the first safe point and live at the next one.
 */
findings find_obstacles(const program &all, const call_graph &calls, const accesses &used,
                        const resources &opened, const loop &at);

} // namespace zc::instrument

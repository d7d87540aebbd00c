/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <vector>

namespace zc::migrate {

/** What came out of zcm-run --verify; also its exit status. */
enum class verified : int {
    same = 0,
    failed = 1,    /* mpiexec cannot be run */
    differs = 4,   /* state is missing from what is registered */
    undecided = 5, /* nothing can be said, and it is printed why */
};

/**
 * Run @command, mpiexec with its arguments, without moves and with a rank moved to its own host
 * every @every safe points, and print what differs first in the registered data. If something
 * does, it is run without moves again, to see whether two of these are alike. A run with moves is
 * ended if a rank makes more safe points than it did without, or if no rank comes to one for
 * @patience_s seconds longer than the whole run took without moves.
 */
verified verify(const std::vector<std::string> &command, long every, double patience_s);

} // namespace zc::migrate

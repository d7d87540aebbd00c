/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <vector>

#include "position.h"

namespace zc::migrate {

/**
 * A run of a program that is known to end from an earlier run: is it still on its way there? It is
 * not if a rank passes more safe points than it did before, or if no rank has come to another one
 * for too long: then ranks wait for messages that nothing will send.
 */
class run_watch {
  public:
    /** @before: where the ranks were at the end of the earlier run. @directory: where they write
     *  that now. @patience_s: the longest time without a new safe point. @now: it begins. */
    run_watch(std::vector<position> before, std::string directory, double patience_s, double now);

    /** Why it will not end well, in a sentence; "" while it may. */
    std::string why_to_end(double now);

  private:
    std::vector<position> before_, last_;
    std::string directory_;
    double patience_s_, changed_;
};

} // namespace zc::migrate

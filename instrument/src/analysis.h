/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "obstacles.h"
#include "rewriting.h"

#include <optional>

namespace zc::instrument {

/** What is to be done with a program. */
struct settings {
    std::string loop;       /* FILE:LINE, or empty: that of the heuristic */
    double threshold = 0.1; /* of the cost of the whole program */
    bool is_strict = false; /* loops are refused for what else is assumed of their messages */
};

/** All that was found out about a program; the pointers are into it. */
struct analysis {
    std::unique_ptr<program> sources;
    std::vector<loop> loops;
    const loop *chosen =
        nullptr; /* nullptr: none can have a safe point, or none is where it should */
    double threshold = 0;
    state live;
    findings refused, notes;
    std::size_t rounds = 0; /* how often the flow of a function has been followed */
    rewritten result;       /* valid if nothing is refused */

    bool is_done() const { return chosen && refused.empty(); }
};

analysis analyse(std::unique_ptr<program> sources, const settings &how);

} // namespace zc::instrument

/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "liveness.h"
#include "program.h"

#include <optional>

namespace zc::instrument {

/** One function calls another; for the last of a path @call is null. */
struct frame {
    const function *in;
    const clang::CallExpr *call;
};

/** Which functions call which. */
class call_graph {
  public:
    explicit call_graph(const program &all);

    /**
     * The frames from main() to @to, if there is one way only: the stack is then the same
     * whenever @to runs, in a successor, too. @why: set if there is not.
     */
    std::vector<frame> only_way_to(const function &to, std::string &why) const;
    /** Those, and all that they call. */
    std::set<const function *> closure(const std::set<const function *> &from) const;
    /** All functions that are called within @root, or by those. */
    std::set<const function *> called_below(const clang::Stmt *root) const;
    /** Calls within @root, and in all functions that these call. */
    std::vector<std::pair<const function *, const clang::CallExpr *>>
    calls_below(const function &in, const clang::Stmt *root) const;

    struct site {
        const function *in;
        const clang::CallExpr *call;
    };
    const std::vector<site> &callers_of(const function &one) const;

  private:
    const program &program_;
    std::map<std::string, std::vector<site>> callers_;
    std::map<std::string, std::set<const function *>> callees_;
};

} // namespace zc::instrument

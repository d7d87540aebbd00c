/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "accesses.h"
#include "program.h"

#include <optional>

namespace zc::instrument {

using variables = std::set<std::string>; /* keys */

/**
 * Which variables are live: may be read before they get another value as a whole.
 *
 * Within a function by its flow; a call reads what the function, and all that it calls, may read of
 * what is not its own. An array counts as read as long as any of its elements can be.
 */
class liveness {
  public:
    liveness(const program &all, const accesses &used);

    /** Where the body of @loop, one of @in, begins. @after: what is live when @in returns. */
    variables at_body(const function &in, const clang::Stmt *loop, const variables &after) const;
    /** Behind @call in @in. */
    variables behind(const function &in, const clang::CallExpr *call, const variables &after) const;

    /** Variables of file scope, and static ones, that @one and all that it calls may read. */
    const variables &read_by(const function &one) const { return reads_.at(one.name); }

  private:
    struct flow {
        std::map<const clang::Stmt *, variables> reads, defines;
    };
    void step(const function &in, const clang::CFGElement &element, variables &live) const;
    std::map<unsigned, variables> at_entries(const function &in, const variables &after) const;
    variables at_exit_of(const clang::CFGBlock &block,
                         const std::map<unsigned, variables> &entries) const;

    const program &program_;
    std::map<std::string, flow> flows_;
    std::map<std::string, variables> reads_;
};

/** Functions that @call may call: one, or all whose address is taken and whose type is right. */
const std::vector<const function *> &called_by(const program &all, const clang::CallExpr *call);

} // namespace zc::instrument

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_CONTENDER_H_INCLUDED
#define ZCP_TOOLS_CONTENDER_H_INCLUDED

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "zcp/predictor.h"

namespace zc::report {

/** A predictor under test. */
class contender {
  public:
    virtual ~contender() = default;
    virtual void receive(const zcp_receive_t &receive) = 0;
    /** As zcp_next(). */
    virtual size_t next(std::span<zcp_receive_t> out) const = 0;
    /** The engine behind it, for landing queries; NULL: it has none. */
    virtual zcp_t *engine() { return nullptr; }
};

/**
 * Every predictor of the library by its name; "dpd-fitted", which is "dpd" with a window
 * as long as what has come allows; and "longest-match": the exact
 * longest suffix match over the last 4,096 receives, continued cyclically. It
 * costs a comparison per lag and event, so it is a yardstick, not a predictor
 * to use.
 */
std::vector<std::string> contender_names();

/** A fresh one. Throws std::invalid_argument for an unknown name. */
std::unique_ptr<contender> make_contender(const std::string &name);

} // namespace zc::report

#endif

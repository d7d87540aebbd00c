/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "findings.h"
#include "uniformity.h"

namespace zc::instrument {

/** What the messages of a loop are to a safe point in it. */
struct judgement {
    findings refused; /* of which it cannot be told that none is on its way */
    findings assumed; /* of which none is taken to be, although that was not worked out */
};

/**
 * Messages between two ranks: may one be on its way where the body of a loop begins?
 *
 * Each that is sent in an iteration is received in it if what sends and what receives have the same
 * tag, are run in the same iterations, and as often, where that can be told. A tag is a number, or
 * an expression that stands on both sides. What decides whether a call is run, and is not the same
 * in each iteration, must decide so for both; if it may differ between ranks, both of its sides
 * must send and receive alike. A function's calls count once for each way to it. The same must be
 * true of the loops around it, and of what they run in front of this one. Of what is run once in
 * front of all loops, the last message of each tag must be received there. What is not
 * compared, and taken to be so, is among the assumed. Ranks and communicators are not looked at.
 */
class messages {
  public:
    messages(const program &all, const call_graph &calls, const accesses &used,
             const uniformity &equal)
        : program_(all), calls_(calls), used_(used), equal_(equal)
    {
    }

    judgement judge(const loop &one) const;

  private:
    const program &program_;
    const call_graph &calls_;
    const accesses &used_;
    const uniformity &equal_;
};

} // namespace zc::instrument

/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_moves.h"

#include <vector>

#include <gtest/gtest.h>

#include "zch/held_ranks.h"

namespace zc::agent {
namespace {

holder::held_move some_move()
{
    holder::held_move said;
    said.bytes = 1000;
    said.leave_ms = 1;
    said.dump_ms = 2;
    said.send_ms = 3;
    said.restore_ms = 4;
    said.bind_ms = 5;
    return said;
}

TEST(AgentHeldOutcomeTest, PhasesAreThoseOfAnOutcome)
{
    msg::outcome o;
    tell(some_move(), o);
    EXPECT_EQ(o.bytes, 1000u);
    EXPECT_EQ(std::vector<float>(std::begin(o.phase_ms), std::end(o.phase_ms)),
              (std::vector<float>{1, 2, 0, 3, 4, 5}));
}

/* Else a rank of a GiB, of which a MiB is left to send when it stands still, would be cheap, and
 * the network slow. */
TEST(AgentHeldOutcomeTest, WhatWasSentWhileTheRankRanIsPartOfTheTransfer)
{
    holder::held_move said = some_move();
    said.copied = 1'000'000;
    said.copy_ms = 100;
    msg::outcome o;
    tell(said, o);
    EXPECT_EQ(o.bytes, 1'001'000u);
    EXPECT_EQ(o.phase_ms[3], 103);
}

} // namespace
} // namespace zc::agent

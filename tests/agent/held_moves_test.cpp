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
    tell(some_move(), true, o);
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
    tell(said, true, o);
    EXPECT_EQ(o.bytes, 1'001'000u);
    EXPECT_EQ(o.phase_ms[3], 103);
}

TEST(AgentHeldOutcomeTest, OfSeveralEachPhaseIsTheLongest)
{
    holder::held_move other = some_move();
    other.dump_ms = 20;
    other.send_ms = 1;
    msg::outcome o;
    tell(some_move(), true, o);
    tell(other, true, o);
    EXPECT_EQ(o.bytes, 2000u);
    EXPECT_EQ(std::vector<float>(std::begin(o.phase_ms), std::end(o.phase_ms)),
              (std::vector<float>{1, 20, 0, 3, 4, 5}));
}

/** What moved is what the next move's cost is learned from; the others were sent in vain. */
TEST(AgentHeldOutcomeTest, OneThatMovedMakesItAMove)
{
    std::vector<holder::held_move> said(3, some_move());
    said[0].dump_ms = 100;
    msg::outcome o;
    o.each = {{4, msg::verdict::failed, "no memory"},
              {5, msg::verdict::moved, ""},
              {6, msg::verdict::timed_out, "no answer"}};
    conclude(said, true, o);
    EXPECT_EQ(o.what, msg::verdict::moved);
    EXPECT_EQ(o.reason, "");
    EXPECT_EQ(o.bytes, 1000u);
    EXPECT_EQ(o.phase_ms[1], 2);
}

TEST(AgentHeldOutcomeTest, OneThatMayBeThereIsNoFailure)
{
    msg::outcome o;
    o.each = {{4, msg::verdict::refused, "a window"},
              {5, msg::verdict::failed, "no memory"},
              {6, msg::verdict::timed_out, "no answer"}};
    conclude(std::vector<holder::held_move>(3, some_move()), true, o);
    EXPECT_EQ(o.what, msg::verdict::timed_out);
    EXPECT_EQ(o.reason, "no answer");
    EXPECT_EQ(o.bytes, 3000u);
    o = {};
    o.each = {{4, msg::verdict::refused, "a window"}, {5, msg::verdict::failed, "no memory"}};
    conclude(std::vector<holder::held_move>(2), true, o);
    EXPECT_EQ(o.what, msg::verdict::failed);
    EXPECT_EQ(o.reason, "no memory");
}

/* Else two that went one after the other would seem to have had twice the network. */
TEST(AgentHeldOutcomeTest, OneThatWasTriedAgainHasATimeOfItsOwn)
{
    msg::outcome o;
    o.each = {{1, msg::verdict::moved, ""}, {2, msg::verdict::moved, ""}};
    conclude(std::vector<holder::held_move>(2, some_move()), false, o);
    EXPECT_EQ(o.bytes, 2000u);
    EXPECT_EQ(o.phase_ms[3], 6);
}

TEST(AgentHeldOutcomeTest, WhatWasNotAskedHasAReason)
{
    msg::outcome o{{}, 0, msg::verdict::failed, 0, 0, {}, ""};
    o.each = {{1, msg::verdict::unknown, "the agent is ending"}};
    conclude(std::vector<holder::held_move>(1), true, o);
    EXPECT_EQ(o.what, msg::verdict::failed);
    EXPECT_EQ(o.reason, "the agent is ending");
    EXPECT_EQ(o.bytes, 0u);
}

} // namespace
} // namespace zc::agent

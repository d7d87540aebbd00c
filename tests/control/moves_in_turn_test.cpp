/* SPDX-License-Identifier: BSD-3-Clause */
#include <deque>
#include <map>

#include <gtest/gtest.h>

#include "moves_in_turn.h"

namespace zc::control {
namespace {

/** Says of each rank in turn what it is told to; a move takes a second. */
class told_mover final : public rank_mover {
  public:
    attempt move(std::size_t nth) override
    {
        now_ += 1;
        order.push_back(nth);
        std::deque<attempt> &left = says[nth];
        if (left.empty())
            return {true, false, ""};
        const attempt next = left.front();
        if (left.size() > 1 || next.ok)
            left.pop_front();
        return next;
    }
    double now_s() override { return now_; }
    void wait(double seconds) override { now_ += seconds; }

    std::map<std::size_t, std::deque<attempt>> says; /* the last again and again */
    std::vector<std::size_t> order;

  private:
    double now_ = 100;
};

const attempt kMoves{true, false, ""};
const attempt kAway{false, true, "another rank is away"};
const attempt kNever{false, false, "it has a socket"};

TEST(MovesInTurnTest, MovesAllInOrder)
{
    told_mover by;
    const auto all = move_in_turn(by, 3, 60, true);
    EXPECT_EQ(by.order, (std::vector<std::size_t>{0, 1, 2}));
    for (const rank_outcome &one : all) {
        EXPECT_TRUE(one.moved);
        EXPECT_EQ(one.attempts, 1);
    }
}

TEST(MovesInTurnTest, TriesAgainWhileAnotherRankIsAway)
{
    told_mover by;
    by.says[1] = {kAway, kAway, kMoves};
    const auto all = move_in_turn(by, 3, 60, true);
    EXPECT_EQ(by.order, (std::vector<std::size_t>{0, 1, 1, 1, 2}));
    EXPECT_TRUE(all[1].moved);
    EXPECT_FALSE(all[1].busy);
    EXPECT_EQ(all[1].attempts, 3);
    EXPECT_TRUE(all[2].moved);
}

TEST(MovesInTurnTest, GivesUpWhenTheTimeIsUp)
{
    told_mover by;
    by.says[0] = {kAway};
    const double begin = by.now_s();
    const auto all = move_in_turn(by, 2, 30, false);
    EXPECT_FALSE(all[0].moved);
    EXPECT_TRUE(all[0].busy);
    EXPECT_GT(all[0].attempts, 3);
    EXPECT_EQ(all[0].why, kAway.why);
    EXPECT_LE(by.now_s() - begin, 32); /* 30 and the attempts at its end */
}

TEST(MovesInTurnTest, WhatHasMovedStaysAndNoOtherIsTriedAfterOneThatStays)
{
    told_mover by;
    by.says[1] = {kNever};
    const auto all = move_in_turn(by, 3, 60, true);
    EXPECT_EQ(by.order, (std::vector<std::size_t>{0, 1}));
    EXPECT_TRUE(all[0].moved);
    EXPECT_FALSE(all[1].moved);
    EXPECT_FALSE(all[1].busy);
    EXPECT_EQ(all[1].why, kNever.why);
    EXPECT_FALSE(all[2].moved);
    EXPECT_EQ(all[2].attempts, 0);
    EXPECT_NE(all[2].why, "");
}

TEST(MovesInTurnTest, GoesOnAfterOneThatStaysWhereEachCounts)
{
    told_mover by;
    by.says[0] = {kNever};
    const auto all = move_in_turn(by, 2, 60, false);
    EXPECT_FALSE(all[0].moved);
    EXPECT_TRUE(all[1].moved);
}

} // namespace
} // namespace zc::control

/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "moves_together.h"

namespace zc::control {
namespace {

using namespace std::chrono_literals;

const attempt kMoves{true, false, ""};
const attempt kAway{false, true, "no other rank stays"};
const attempt kNever{false, false, "it has a socket"};

/** Says of each rank in turn what it is told to; a move takes a second, of a clock that all ranks
 * have together, so it goes the faster the more of them there are. */
class told_mover : public rank_mover {
  public:
    attempt move(std::size_t nth) override
    {
        const std::lock_guard lock(mutex_);
        now_ += 1;
        tried[nth]++;
        std::deque<attempt> &left = says[nth];
        if (left.empty())
            return kMoves;
        const attempt next = left.front();
        if (left.size() > 1 || next.ok)
            left.pop_front();
        return next;
    }
    double now_s() override
    {
        const std::lock_guard lock(mutex_);
        return now_;
    }
    void wait(double seconds) override
    {
        const std::lock_guard lock(mutex_);
        now_ += seconds;
    }

    std::map<std::size_t, std::deque<attempt>> says; /* the last again and again */
    std::map<std::size_t, int> tried;

  private:
    std::mutex mutex_;
    double now_ = 100;
};

/** Each move lasts until so many are under way, or have been. */
class gathering_mover final : public rank_mover {
  public:
    explicit gathering_mover(std::size_t wanted) : wanted_(wanted) {}
    attempt move(std::size_t) override
    {
        std::unique_lock lock(mutex_);
        most = std::max(most, ++now_);
        more_.notify_all();
        const bool come = more_.wait_for(lock, 30s, [this] { return most >= wanted_; });
        now_--;
        return {come, false, come ? "" : "it was alone"};
    }
    std::size_t most = 0; /* at a time */

  private:
    std::mutex mutex_;
    std::condition_variable more_;
    std::size_t wanted_, now_ = 0;
};

TEST(MovesTogetherTest, MovesAllAtOnce)
{
    gathering_mover by(20);
    for (const rank_outcome &one : move_together(by, 20, {60, 20})) {
        EXPECT_TRUE(one.moved) << one.why;
        EXPECT_EQ(one.attempts, 1);
    }
}

TEST(MovesTogetherTest, MovesNoMoreAtATimeThanItMay)
{
    gathering_mover by(3);
    for (const rank_outcome &one : move_together(by, 40, {60, 3}))
        EXPECT_TRUE(one.moved) << one.why;
    EXPECT_EQ(by.most, 3u);
}

TEST(MovesTogetherTest, MovesOneRankInTheCallersThread)
{
    class : public rank_mover {
        attempt move(std::size_t) override
        {
            return {std::this_thread::get_id() == caller, false, ""};
        }
        std::thread::id caller = std::this_thread::get_id();
    } by;
    EXPECT_TRUE(move_together(by, 1, {}).front().moved);
    EXPECT_TRUE(move_together(by, 0, {}).empty());
}

TEST(MovesTogetherTest, TriesAgainWhileAnotherMoveIsInTheWay)
{
    told_mover by;
    by.says[1] = {kAway, kAway, kMoves};
    const auto all = move_together(by, 3, {600, 8});
    EXPECT_EQ(by.tried, (std::map<std::size_t, int>{{0, 1}, {1, 3}, {2, 1}}));
    for (const rank_outcome &one : all) {
        EXPECT_TRUE(one.moved);
        EXPECT_FALSE(one.busy);
    }
    EXPECT_EQ(all[1].attempts, 3);
}

/** Or those that it waits for would not be moved. */
TEST(MovesTogetherTest, OneThatWaitsToBeTriedAgainKeepsNoOther)
{
    class : public told_mover {
        attempt move(std::size_t nth) override
        {
            const attempt said = told_mover::move(nth);
            const std::lock_guard lock(mutex_);
            moved_ += said.ok;
            return nth == 0 && moved_ < 2 ? kAway : said;
        }
        std::mutex mutex_;
        int moved_ = 0;
    } by;
    for (const rank_outcome &one : move_together(by, 2, {1e6, 1}))
        EXPECT_TRUE(one.moved);
}

TEST(MovesTogetherTest, GivesUpWhenTheTimeIsUp)
{
    told_mover by;
    by.says[0] = {kAway};
    const double begin = by.now_s();
    const auto all = move_together(by, 1, {30, 1});
    EXPECT_FALSE(all[0].moved);
    EXPECT_TRUE(all[0].busy);
    EXPECT_GT(all[0].attempts, 3);
    EXPECT_EQ(all[0].why, kAway.why);
    EXPECT_LE(by.now_s() - begin, 32); /* 30 and the attempts at its end */
}

TEST(MovesTogetherTest, TriesNothingWhenTheTimeIsUp)
{
    told_mover by;
    const auto all = move_together(by, 3, {0.5, 1});
    EXPECT_EQ(std::ranges::count_if(all, &rank_outcome::moved), 1);
    for (const rank_outcome &one : all) {
        if (!one.moved) {
            EXPECT_EQ(one.attempts, 0);
            EXPECT_EQ(one.why, "the time was up");
        }
    }
}

TEST(MovesTogetherTest, WhatHasMovedStaysAndAllAreTried)
{
    told_mover by;
    by.says[1] = {kNever};
    const auto all = move_together(by, 3, {60, 8});
    EXPECT_TRUE(all[0].moved);
    EXPECT_FALSE(all[1].moved);
    EXPECT_FALSE(all[1].busy);
    EXPECT_EQ(all[1].why, kNever.why);
    EXPECT_TRUE(all[2].moved);
}

TEST(MovesTogetherTest, AnErrorIsTheOutcomeOfItsRank)
{
    class : public rank_mover {
        attempt move(std::size_t nth) override
        {
            if (nth == 1)
                throw std::runtime_error("no key");
            return kMoves;
        }
    } by;
    const auto all = move_together(by, 2, {60, 8});
    EXPECT_TRUE(all[0].moved);
    EXPECT_FALSE(all[1].moved);
    EXPECT_EQ(all[1].why, "no key");
}

} // namespace
} // namespace zc::control

/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include <gtest/gtest.h>

#include "bus.h"

namespace zc::agent {
namespace {

using test::bus;
using test::kJob;

/** Nodes of two processors; six ranks below zc-hold on the first. */
class AgentTransparentTest : public testing::Test {
  protected:
    void begin(settings s = {}, std::uint32_t ranks = 6)
    {
        b_ = std::make_unique<bus>(s);
        b_->transparent = true;
        b_->where.assign(ranks, 1);
        b_->add(1, 2);
        b_->add(2, 2);
    }
    /** Lets time pass until there are so many requests; false: they do not come. */
    bool until_asked(std::size_t count, int seconds = 60)
    {
        for (int i = 0; i < seconds && b_->asked.size() < count; i++)
            b_->pass(1);
        return b_->asked.size() >= count;
    }
    std::size_t on(node_id node) const
    {
        return static_cast<std::size_t>(std::count(b_->where.begin(), b_->where.end(), node));
    }
    const party::refusals::entry *refused(rank_id rank)
    {
        return b_->at(1).moves().refused().of({kJob, rank});
    }
    std::unique_ptr<bus> b_;
};

TEST_F(AgentTransparentTest, OneRankAtATimeAndTheSmallestFirst)
{
    begin();
    b_->images[4] = 1 << 10;
    ASSERT_TRUE(until_asked(1));
    EXPECT_EQ(b_->asked[0].ranks, (std::vector<rank_id>{4}));
    EXPECT_EQ(b_->asked[0].target, 2u);
    b_->finish(b_->asked[0], msg::verdict::moved);
    ASSERT_TRUE(until_asked(2));
    EXPECT_EQ(b_->asked[1].ranks.size(), 1u);
    EXPECT_NE(b_->asked[1].ranks[0], 4u);
    const record *moved = b_->last(1, "moved");
    ASSERT_NE(moved, nullptr);
    EXPECT_EQ(moved->ranks, (std::vector<rank_id>{4}));
}

/** One of two alone would leave the other as slow as it is. */
TEST_F(AgentTransparentTest, OneGoesFirstWhereOnlyBothAreWorthIt)
{
    begin({}, 0);
    b_->kill(1);
    b_->add(1, 0.5, 6);
    b_->where.assign(2, 1);
    b_->elapsed = 1000;
    for (std::size_t i = 0; i < 2; i++) {
        ASSERT_TRUE(until_asked(i + 1)) << i;
        EXPECT_EQ(b_->asked[i].ranks.size(), 1u);
        b_->finish(b_->asked[i], msg::verdict::moved);
        const record *moved = b_->last(1, "moved");
        ASSERT_NE(moved, nullptr);
        EXPECT_EQ(moved->why.find("1 more are to follow") != std::string::npos, i == 0)
            << moved->why;
    }
    EXPECT_EQ(on(1), 0u);
}

TEST_F(AgentTransparentTest, MovesEndWhenTheLoadIsEven)
{
    begin();
    for (std::size_t i = 0; i < b_->asked.size() || until_asked(i + 1); i++)
        b_->finish(b_->asked[i], msg::verdict::moved);
    EXPECT_EQ(on(1), 3u);
    EXPECT_EQ(on(2), 3u);
}

TEST_F(AgentTransparentTest, ARankThatRefusesIsLeftAloneAndTheNextIsAsked)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const rank_id first = b_->asked[0].ranks[0];
    b_->finish(b_->asked[0], msg::verdict::refused, "it has a window that UCX reaches");
    ASSERT_NE(refused(first), nullptr);
    EXPECT_EQ(refused(first)->times, 1u);
    ASSERT_TRUE(until_asked(2));
    EXPECT_NE(b_->asked[1].ranks[0], first);
    const record *failed = b_->last(1, "failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_NE(failed->why.find("a window that UCX reaches"), std::string::npos) << failed->why;
    EXPECT_NE(failed->why.find("not again before 30 s"), std::string::npos) << failed->why;
}

/** The only rank there is; each refusal doubles the time. */
TEST_F(AgentTransparentTest, ARefusedMoveIsBackedOff)
{
    begin();
    for (rank_id r = 0; r < 5; r++)
        b_->stuck.insert(r);
    std::vector<std::size_t> asked_within;
    for (int round = 0; round < 4; round++) {
        ASSERT_TRUE(until_asked(b_->asked.size() + 1, 2000)) << round;
        EXPECT_EQ(b_->asked.back().ranks, (std::vector<rank_id>{5}));
        b_->finish(b_->asked.back(), msg::verdict::refused, "no");
        ASSERT_NE(refused(5), nullptr);
        EXPECT_EQ(refused(5)->times, round + 1u);
        /* The request after it is not sooner. */
        const std::size_t before = b_->asked.size();
        b_->pass(30 * (1 << round) - 1);
        EXPECT_EQ(b_->asked.size(), before) << round;
    }
    const record *said = b_->last(1, "refused"); /* to a thief, meanwhile */
    ASSERT_NE(said, nullptr);
    EXPECT_NE(said->why.find("has refused"), std::string::npos) << said->why;
}

TEST_F(AgentTransparentTest, ATargetThatCannotTakeOneIsLeftAlone)
{
    begin();
    b_->add(3, 2);
    ASSERT_TRUE(until_asked(1));
    const node_id first = b_->asked[0].target;
    b_->finish(b_->asked[0], msg::verdict::failed, "no zc-hold --listen answers");
    ASSERT_TRUE(until_asked(2));
    EXPECT_NE(b_->asked[1].target, first);
    EXPECT_EQ(b_->at(1).moves().refused().counted(), 1u);
    EXPECT_EQ(refused(b_->asked[0].ranks[0]), nullptr);
}

TEST_F(AgentTransparentTest, AllLeaveANodeThatIsEmptied)
{
    begin({}, 3);
    b_->idle = {1}; /* that one, too */
    b_->draining = {1};
    for (std::size_t i = 0; i < 3; i++) {
        ASSERT_TRUE(until_asked(i + 1)) << i;
        b_->finish(b_->asked[i], msg::verdict::moved);
    }
    b_->pass(5);
    EXPECT_EQ(on(1), 0u);
    EXPECT_EQ(b_->asked.size(), 3u);
}

/** Two that compute, and many that wait for something else. */
TEST_F(AgentTransparentTest, RanksThatWaitAreNoLoad)
{
    begin({}, 40);
    for (rank_id r = 2; r < 40; r++)
        b_->idle.insert(r);
    b_->pass(60);
    EXPECT_TRUE(b_->asked.empty());
    EXPECT_DOUBLE_EQ(b_->at(1).here().demand(), 2);
    b_->idle.erase(2);
    b_->idle.erase(3);
    ASSERT_TRUE(until_asked(1));
    EXPECT_LT(b_->asked[0].ranks[0], 4u);
}

TEST_F(AgentTransparentTest, AWishIsToldAndNothingMoves)
{
    for (const bool by_job : {false, true}) {
        settings s;
        s.act = by_job ? mode::move : mode::observe;
        begin(s);
        b_->observe = by_job;
        b_->pass(30);
        EXPECT_TRUE(b_->asked.empty());
        const record *wish = b_->last(1, "would_move");
        ASSERT_NE(wish, nullptr);
        EXPECT_EQ(wish->ranks.size(), 1u);
    }
}

TEST_F(AgentTransparentTest, ARankThatEndsMeanwhileIsForgotten)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const rank_id first = b_->asked[0].ranks[0];
    b_->where[first] = 9; /* on no node */
    b_->pass(1);
    b_->finish(b_->asked[0], msg::verdict::refused, "its zc-hold has ended");
    b_->pass(1);
    EXPECT_FALSE(b_->at(1).here().ranks().contains({kJob, first}));
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
}

TEST_F(AgentTransparentTest, AFullTargetTakesNone)
{
    settings s;
    s.max_ranks = 1;
    begin(s);
    b_->where.push_back(2);
    b_->pass(30);
    EXPECT_TRUE(b_->asked.empty());
}

} // namespace
} // namespace zc::agent

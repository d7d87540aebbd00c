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
    /** Rank r talks to rank r + @apart. */
    void pairs(rank_id apart)
    {
        for (rank_id r = 0; r < 2 * apart; r++)
            b_->flows[r] = {{(r + apart) % (2 * apart), 1e5, 10}};
    }
    const party::refusals::entry *refused(rank_id rank)
    {
        return b_->at(1).moves().refused().of({kJob, rank});
    }
    std::unique_ptr<bus> b_;
};

/** As many as balance needs, by one request. */
TEST_F(AgentTransparentTest, SeveralGoAtOnceAndTheSmallestFirst)
{
    begin();
    b_->images[4] = 1 << 10;
    ASSERT_TRUE(until_asked(1));
    EXPECT_EQ(b_->asked[0].ranks, (std::vector<rank_id>{4, 0, 1}));
    EXPECT_EQ(b_->asked[0].target, 2u);
    EXPECT_EQ(b_->at(2).here().digest().ranks, 3u); /* for which room is kept */
    b_->finish(b_->asked[0], msg::verdict::moved);
    const record *moved = b_->last(1, "moved");
    ASSERT_NE(moved, nullptr);
    EXPECT_EQ(moved->ranks, b_->asked[0].ranks);
    b_->pass(60);
    EXPECT_EQ(b_->asked.size(), 1u);
    EXPECT_EQ(b_->at(2).here().digest().ranks, 3u);
}

TEST_F(AgentTransparentTest, OneRankAtATimeIfThatIsTheMost)
{
    settings s;
    s.most_at_once = 1;
    begin(s);
    b_->images[4] = 1 << 10;
    for (std::size_t i = 0; i < 3; i++) {
        ASSERT_TRUE(until_asked(i + 1)) << i;
        EXPECT_EQ(b_->asked[i].ranks.size(), 1u);
        b_->finish(b_->asked[i], msg::verdict::moved);
    }
    EXPECT_EQ(b_->asked[0].ranks[0], 4u);
    b_->pass(60);
    EXPECT_EQ(b_->asked.size(), 3u);
}

/** One of two alone would leave the other as slow as it is. */
TEST_F(AgentTransparentTest, BothGoWhereOnlyBothAreWorthIt)
{
    begin({}, 0);
    b_->kill(1);
    b_->add(1, 0.5, 6);
    b_->where.assign(2, 1);
    b_->elapsed = 1000;
    ASSERT_TRUE(until_asked(1));
    EXPECT_EQ(b_->asked[0].ranks.size(), 2u);
}

/** Ranks r and r + 4 talk to each other; the smallest leads, and takes the other one along. */
TEST_F(AgentTransparentTest, RanksThatTalkToEachOtherMoveAsOne)
{
    begin({}, 8);
    pairs(4);
    ASSERT_TRUE(until_asked(1));
    std::vector<rank_id> ranks = b_->asked[0].ranks;
    std::sort(ranks.begin(), ranks.end());
    ASSERT_EQ(ranks.size(), 4u);
    for (rank_id r : ranks)
        EXPECT_EQ(std::ranges::count(ranks, (r + 4) % 8), 1) << "rank " << r << " alone";
    b_->finish(b_->asked[0], msg::verdict::moved);
    /* What is known of their messages goes along. */
    EXPECT_GT(b_->at(2).traffic_of_movers().learned, 0u);
    EXPECT_EQ(b_->at(2).traffic_of_movers().refused, 0u);
    EXPECT_EQ(b_->at(2).groups().around(kJob, ranks[0], 2),
              (std::vector<rank_id>{ranks[0], ranks[2]}));
}

/** Where all ranks are, is known as long as all are here: then Scotch has its say. */
TEST_F(AgentTransparentTest, NoGroupIsMadeOfRanksElsewhere)
{
    begin({}, 8);
    pairs(4);
    for (rank_id r = 4; r < 8; r++)
        b_->where[r] = 3; /* where no agent is */
    b_->where.insert(b_->where.end(), 2, 1);
    ASSERT_TRUE(until_asked(1));
    for (rank_id r : b_->asked[0].ranks)
        EXPECT_EQ(b_->where[r], 1u) << r;
    EXPECT_EQ(b_->sent<msg::lend>(), 0u);
}

/** One has moved, one refuses, one is too much for the target. */
TEST_F(AgentTransparentTest, EachRankHasAnOutcomeOfItsOwn)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    ASSERT_EQ(asked.ranks.size(), 3u);
    b_->pass(20);
    b_->finish(asked, {{asked.ranks[0], msg::verdict::refused, "it has a window"},
                       {asked.ranks[1], msg::verdict::moved, ""},
                       {asked.ranks[2], msg::verdict::failed, "no memory there"}});
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    EXPECT_EQ(on(2), 1u);
    const record *moved = b_->last(1, "moved");
    ASSERT_NE(moved, nullptr);
    EXPECT_EQ(moved->ranks, (std::vector<rank_id>{asked.ranks[1]}));
    EXPECT_EQ(moved->bytes, 1u << 20);
    EXPECT_EQ(moved->phase_ms[4], 5);
    std::vector<const record *> failed;
    for (const record &r : b_->at(1).decisions().records()) {
        if (r.what == "failed")
            failed.push_back(&r);
    }
    ASSERT_EQ(failed.size(), 2u);
    EXPECT_EQ(failed[0]->ranks, (std::vector<rank_id>{asked.ranks[0]}));
    EXPECT_NE(failed[0]->why.find("refused: it has a window; 1 times"), std::string::npos)
        << failed[0]->why;
    EXPECT_EQ(failed[0]->phase_ms[4], 0);
    EXPECT_EQ(failed[1]->ranks, (std::vector<rank_id>{asked.ranks[2]}));
    EXPECT_NE(failed[1]->why.find("failed: no memory there; 1 times"), std::string::npos)
        << failed[1]->why;
    /* The first is to blame, and the target; the last is not. */
    const party::refusals &refused_ones = b_->at(1).moves().refused();
    EXPECT_EQ(refused_ones.counted(), 2u);
    EXPECT_NE(refused(asked.ranks[0]), nullptr);
    EXPECT_EQ(refused(asked.ranks[1]), nullptr);
    EXPECT_EQ(refused(asked.ranks[2]), nullptr);
    ASSERT_NE(refused_ones.of(node_id{2}), nullptr);
    EXPECT_EQ(refused_ones.of(node_id{2})->times, 1u);
    EXPECT_TRUE(b_->at(1).here().ranks().at({kJob, asked.ranks[1]}).leaving);
    EXPECT_FALSE(b_->at(1).here().ranks().at({kJob, asked.ranks[0]}).leaving);
    EXPECT_FALSE(b_->at(1).here().ranks().at({kJob, asked.ranks[2]}).leaving);
    /* Nor is room kept for long for those that do not come. */
    b_->pass(17);
    EXPECT_EQ(b_->at(2).here().digest().ranks, 1u);
    EXPECT_EQ(b_->asked.size(), 1u);
    b_->pass(30); /* after the time in which the target is left alone */
    ASSERT_EQ(b_->asked.size(), 2u);
    EXPECT_NE(std::ranges::count(b_->asked[1].ranks, asked.ranks[2]), 0);
}

/** What is known of the messages of those that stay does not go. */
TEST_F(AgentTransparentTest, OnlyThePastOfRanksThatHaveMovedIsHandedOver)
{
    begin({}, 8);
    pairs(4);
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    ASSERT_EQ(asked.ranks.size(), 4u);
    b_->finish(asked, {{asked.ranks[0], msg::verdict::refused, "it has a window"},
                       {asked.ranks[1], msg::verdict::moved, ""},
                       {asked.ranks[2], msg::verdict::refused, "it has a window"},
                       {asked.ranks[3], msg::verdict::refused, "it has a window"}});
    ASSERT_EQ(b_->pasts.size(), 1u);
    EXPECT_FALSE(b_->pasts[0].events.empty());
    for (const msg::sent &one : b_->pasts[0].events)
        EXPECT_EQ(one.src, asked.ranks[1]);
}

/** A target that fails for all of them has failed once. */
TEST_F(AgentTransparentTest, ATargetIsBlamedOnceForAll)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    std::vector<msg::rank_result> each;
    for (rank_id r : b_->asked[0].ranks)
        each.push_back({r, msg::verdict::failed, "no memory there"});
    ASSERT_EQ(each.size(), 3u);
    b_->finish(b_->asked[0], each);
    EXPECT_EQ(b_->at(1).moves().refused().counted(), 1u);
    const record *failed = b_->last(1, "failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->ranks.size(), 3u);
    EXPECT_EQ(b_->at(2).here().digest().ranks, 0u); /* it keeps no room any more */
}

/** Its partners go without it. */
TEST_F(AgentTransparentTest, ARankThatRefusesIsLeftOutOfItsGroup)
{
    begin({}, 8);
    b_->add(3, 2);
    pairs(4);
    ASSERT_TRUE(until_asked(1));
    const msg::ask first = b_->asked[0];
    ASSERT_EQ(first.ranks.size(), 4u);
    std::vector<msg::rank_result> each;
    for (rank_id r : first.ranks)
        each.push_back({r, msg::verdict::failed, "no listener"});
    each[0] = {first.ranks[0], msg::verdict::refused, "it has a window"};
    b_->finish(first, each);
    ASSERT_TRUE(until_asked(2, 25)); /* to go to the other node */
    EXPECT_NE(b_->asked[1].target, first.target);
    EXPECT_EQ(std::ranges::count(b_->asked[1].ranks, first.ranks[0]), 0);
    EXPECT_EQ(b_->asked[1].ranks.size(), 4u);
}

/** It may be there, or come yet: nobody has refused anything, and it is not asked again at once. */
TEST_F(AgentTransparentTest, ARankOfWhichNoAnswerComesIsPutOff)
{
    begin({}, 8);
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    ASSERT_EQ(asked.ranks.size(), 4u);
    std::vector<msg::rank_result> each;
    for (rank_id r : asked.ranks)
        each.push_back({r, msg::verdict::moved, ""});
    each[0] = {asked.ranks[0], msg::verdict::timed_out, "no answer in time; the move may go on"};
    b_->pass(20);
    b_->finish(asked, each);
    EXPECT_EQ(on(2), 3u);
    EXPECT_EQ(b_->at(1).moves().refused().counted(), 0u);
    EXPECT_EQ(b_->at(1).moves().refused().of(node_id{2}), nullptr);
    ASSERT_NE(refused(asked.ranks[0]), nullptr);
    EXPECT_EQ(refused(asked.ranks[0])->times, 0u);
    const record *failed = b_->last(1, "failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->ranks, (std::vector<rank_id>{asked.ranks[0]}));
    EXPECT_NE(failed->why.find("timed out: no answer in time"), std::string::npos) << failed->why;
    b_->draining = {1}; /* all have to go, as soon as they may */
    ASSERT_TRUE(until_asked(2, 28));
    EXPECT_EQ(std::ranges::count(b_->asked[1].ranks, asked.ranks[0]), 0);
    b_->finish(b_->asked[1], msg::verdict::moved);
    ASSERT_TRUE(until_asked(3));
    EXPECT_EQ(b_->asked[2].ranks, (std::vector<rank_id>{asked.ranks[0]}));
}

/** Of none: then another node may be able to take them, and that one is asked less and less often.
 */
TEST_F(AgentTransparentTest, WhereAllMovesHangOthersTakeTheRanks)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    b_->finish(b_->asked[0], msg::verdict::timed_out, "no answer in time");
    EXPECT_EQ(b_->at(1).moves().refused().counted(), 1u);
    ASSERT_NE(b_->at(1).moves().refused().of(node_id{2}), nullptr);
    for (rank_id r : b_->asked[0].ranks)
        EXPECT_EQ(refused(r)->times, 0u) << "it has not refused";
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    EXPECT_EQ(b_->last(1, "moved"), nullptr);
    b_->add(3, 2);
    ASSERT_TRUE(until_asked(2)); /* the others */
    EXPECT_EQ(b_->asked[1].target, 3u);
    for (rank_id r : b_->asked[0].ranks)
        EXPECT_EQ(std::ranges::count(b_->asked[1].ranks, r), 0) << r;
}

/** The agent was about to end, or could not write its state. */
TEST_F(AgentTransparentTest, WhatWasNotAskedHasNotRefused)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    ASSERT_EQ(asked.ranks.size(), 3u);
    b_->finish(asked, {{asked.ranks[0], msg::verdict::moved, ""},
                       {asked.ranks[1], msg::verdict::unknown, "the agent is ending"},
                       {asked.ranks[2], msg::verdict::unknown, "the agent is ending"}});
    EXPECT_EQ(b_->at(1).moves().refused().counted(), 0u);
    EXPECT_EQ(refused(asked.ranks[1]), nullptr);
    const record *failed = b_->last(1, "failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->ranks, (std::vector<rank_id>{asked.ranks[1], asked.ranks[2]}));
    ASSERT_TRUE(until_asked(2));
    b_->finish(b_->asked[1], msg::verdict::unknown, "the state file cannot be written");
    EXPECT_EQ(b_->at(1).moves().refused().counted(), 0u);
    EXPECT_NE(b_->last(1, "failed")->why.find("the state file cannot be written"),
              std::string::npos);
}

/** The policy prefers it: it sends nothing. It would take longer than a move may. */
TEST_F(AgentTransparentTest, OneThatIsTooLargeHoldsUpNoOther)
{
    for (const bool empties : {false, true}) {
        settings s;
        s.policy = "network";
        begin(s);
        pairs(4);
        b_->flows[5].clear();
        b_->images[5] = std::uint64_t{7} << 30;
        if (empties)
            b_->draining = {1};
        ASSERT_TRUE(until_asked(1)) << empties;
        EXPECT_EQ(std::ranges::count(b_->asked[0].ranks, 5u), 0);
        for (std::size_t i = 0; i < b_->asked.size(); i++) {
            b_->finish(b_->asked[i], msg::verdict::moved);
            until_asked(i + 2);
        }
        EXPECT_EQ(on(1), empties ? 1u : 3u);
    }
}

/** It could go in time, but that would not be worth it; the others are. */
TEST_F(AgentTransparentTest, OneThatCostsTooMuchHoldsUpNoOther)
{
    settings s;
    s.policy = "network";
    begin(s);
    pairs(4);
    b_->flows[5].clear();
    b_->elapsed = 60;
    b_->images[5] = std::uint64_t{4} << 30;
    ASSERT_TRUE(until_asked(1));
    EXPECT_EQ(std::ranges::count(b_->asked[0].ranks, 5u), 0);
}

/** Of what the kernel tells the ranks that have come have theirs already. */
TEST_F(AgentTransparentTest, MemoryIsKeptForThoseThatAreToComeOnly)
{
    begin();
    b_->image = 1 << 30;
    b_->elapsed = 1000;
    b_->free_bytes = std::uint64_t{16} << 30;
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    ASSERT_EQ(asked.ranks.size(), 3u);
    b_->pass(1);
    const std::uint64_t before = b_->at(2).here().digest().free_bytes;
    EXPECT_EQ(before, std::uint64_t{13} << 30);
    b_->where[asked.ranks[0]] = 2;
    b_->where[asked.ranks[1]] = 2;
    b_->pass(1);
    EXPECT_EQ(b_->at(2).here().digest().free_bytes, std::uint64_t{15} << 30);
}

/** An agent that is started anew waits for those of which it does not know what became. */
TEST_F(AgentTransparentTest, NoRankIsDecidedOnTwice)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    ASSERT_EQ(asked.ranks.size(), 3u);
    b_->kill(1);
    b_->add(1, 2, 0, from_text(b_->disk[1]));
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    b_->where[asked.ranks[0]] = asked.target;
    b_->where[asked.ranks[1]] = asked.target;
    b_->pass(30);
    ASSERT_FALSE(b_->queried.empty());
    EXPECT_EQ(b_->queried[0].txn, asked.txn);
    b_->finish(asked, msg::verdict::unknown); /* it is another life */
    b_->pass(30);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    EXPECT_EQ(b_->asked.size(), 1u);
    b_->where[asked.ranks[2]] = asked.target; /* the last of them */
    b_->pass(2);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    const record *last = b_->last(1, "aborted");
    ASSERT_NE(last, nullptr);
    EXPECT_NE(last->why.find("have left this node"), std::string::npos) << last->why;
    EXPECT_EQ(b_->at(2).here().ranks().at({kJob, asked.ranks[2]}).came_from, 1u);
    b_->where.insert(b_->where.end(), 6, 1);
    EXPECT_TRUE(until_asked(2)); /* and all goes on */
}

TEST_F(AgentTransparentTest, ARestartedAgentGivesUpWhatNeverEnds)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    b_->kill(1);
    b_->add(1, 2, 0, from_text(b_->disk[1]));
    b_->pass(119);
    EXPECT_EQ(b_->asked.size(), 1u);
    EXPECT_TRUE(until_asked(2));
    ASSERT_NE(b_->last(1, "aborted"), nullptr);
    EXPECT_EQ(b_->last(1, "aborted")->ranks.size(), 3u);
}

/** The life that has asked waits for the outcome, though none of them is here any more. */
TEST_F(AgentTransparentTest, TheOutcomeIsWaitedFor)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    for (rank_id r : asked.ranks)
        b_->where[r] = asked.target;
    b_->pass(20);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    b_->finish(asked, msg::verdict::running);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    b_->finish(asked, msg::verdict::moved);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    EXPECT_NE(b_->last(1, "moved"), nullptr);
}

TEST_F(AgentTransparentTest, TheTargetsMemoryLimitsAGroup)
{
    begin();
    b_->free_bytes = 7 << 19; /* of two images and their margin */
    ASSERT_TRUE(until_asked(1));
    EXPECT_EQ(b_->asked[0].ranks.size(), 2u);
}

/** At 100 MB/s four GiB take 43 s, and what takes more than 60 s is not begun. */
TEST_F(AgentTransparentTest, TimeLimitsAGroup)
{
    begin();
    b_->image = std::uint64_t{4} << 30;
    b_->free_bytes = std::uint64_t{1} << 40;
    b_->elapsed = 3000;
    b_->draining = {1};
    ASSERT_TRUE(until_asked(1));
    EXPECT_EQ(b_->asked[0].ranks.size(), 1u);
}

TEST_F(AgentTransparentTest, MovesEndWhenTheLoadIsEven)
{
    begin();
    for (std::size_t i = 0; i < b_->asked.size() || until_asked(i + 1); i++)
        b_->finish(b_->asked[i], msg::verdict::moved);
    EXPECT_EQ(b_->asked.size(), 1u);
    EXPECT_EQ(on(1), 3u);
    EXPECT_EQ(on(2), 3u);
}

TEST_F(AgentTransparentTest, ARankThatRefusesIsLeftAloneAndTheNextIsAsked)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const std::vector<rank_id> first = b_->asked[0].ranks;
    b_->finish(b_->asked[0], msg::verdict::refused, "UCX uses shared memory");
    ASSERT_TRUE(until_asked(2));
    for (rank_id r : first) {
        ASSERT_NE(refused(r), nullptr);
        EXPECT_EQ(refused(r)->times, 1u);
        EXPECT_EQ(std::ranges::count(b_->asked[1].ranks, r), 0) << r;
    }
    const record *failed = b_->last(1, "failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_NE(failed->why.find("UCX uses shared memory"), std::string::npos) << failed->why;
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
    ASSERT_TRUE(until_asked(1));
    b_->finish(b_->asked[0], msg::verdict::moved);
    b_->pass(5);
    EXPECT_EQ(on(1), 0u);
    EXPECT_EQ(b_->asked.size(), 1u);
}

/** Group by group, and not a time to settle between them. */
TEST_F(AgentTransparentTest, ANodeIsEmptiedGroupByGroup)
{
    settings s;
    s.most_at_once = 2;
    s.settle = 20 * kSecond;
    begin(s);
    pairs(3);
    b_->draining = {1};
    ASSERT_TRUE(until_asked(1));
    for (std::size_t i = 0; i < 3; i++) {
        ASSERT_TRUE(until_asked(i + 1, 15)) << i;
        const std::vector<rank_id> &ranks = b_->asked[i].ranks;
        ASSERT_EQ(ranks.size(), 2u);
        EXPECT_EQ(ranks[1], (ranks[0] + 3) % 6) << i;
        b_->finish(b_->asked[i], msg::verdict::moved);
    }
    EXPECT_EQ(on(1), 0u);
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
        EXPECT_EQ(wish->ranks.size(), 3u); /* all of them */
        EXPECT_EQ(b_->at(2).here().digest().ranks, 0u);
    }
}

TEST_F(AgentTransparentTest, ARankThatEndsMeanwhileIsForgotten)
{
    begin();
    ASSERT_TRUE(until_asked(1));
    const msg::ask asked = b_->asked[0];
    const rank_id first = asked.ranks[0];
    b_->where[first] = 9; /* on no node */
    b_->pass(1);
    b_->finish(asked, {{first, msg::verdict::refused, "its zc-hold has ended"},
                       {asked.ranks[1], msg::verdict::moved, ""},
                       {asked.ranks[2], msg::verdict::moved, ""}});
    EXPECT_EQ(on(2), 2u);
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

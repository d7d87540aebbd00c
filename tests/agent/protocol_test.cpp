/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include <gtest/gtest.h>

#include "bus.h"

namespace zc::agent {
namespace {

using test::bus;
using test::kJob;

/** Two nodes of two processors; six ranks on the first. */
class AgentProtocolTest : public testing::Test {
  protected:
    void begin(settings s = {})
    {
        b_ = std::make_unique<bus>(s);
        b_->where.assign(6, 1);
        b_->add(1, 2);
        b_->add(2, 2);
    }
    /** Lets time pass; has the first node then asked the job to move ranks? */
    bool begins_to_move()
    {
        begin();
        b_->pass(20);
        return b_->asked.size() == 1;
    }
    void restart_decider(bool introduced = true)
    {
        b_->kill(1);
        b_->add(1, 2, 0, from_text(b_->disk[1]), introduced);
    }
    /** The job has done what it was asked for, and no agent has been told. */
    void moves_unseen(const msg::ask &a)
    {
        for (rank_id r : a.ranks)
            b_->where[r] = a.target;
        b_->epoch++;
    }
    /** As many again come to the first node. Expects a second request, for some of them. */
    void expect_that_more_go()
    {
        b_->where.insert(b_->where.end(), 6, 1);
        b_->pass(30);
        EXPECT_EQ(b_->asked.size(), 2u);
    }
    /** Expects a record of what the first node did last, with its reason. */
    void expect_last(const char *what, const char *why)
    {
        const record *last = b_->last(1, what);
        ASSERT_NE(last, nullptr) << what;
        EXPECT_NE(last->why.find(why), std::string::npos) << last->why;
    }
    void expect_not_moved(const char *what, const char *why)
    {
        EXPECT_TRUE(b_->asked.empty());
        expect_last(what, why);
    }
    std::unique_ptr<bus> b_;
};

/* The new home knows the partners of a rank before that has sent anything there. */
TEST_F(AgentProtocolTest, TheTrafficOfRanksGoesWithThem)
{
    for (const bool lost : {false, true}) {
        begin();
        for (rank_id r = 0; r < 6; r++)
            b_->flows[r] = {{r ^ 1u, 1e5, 10}};
        if (lost)
            b_->lost.insert(bus::kIndex<msg::past>);
        b_->pass(20);
        ASSERT_EQ(b_->asked.size(), 1u);
        const rank_id first = b_->asked[0].ranks[0];
        EXPECT_EQ(b_->at(2).groups().around(kJob, first, 2).size(), 1u);
        b_->finish(b_->asked[0], msg::verdict::moved);
        b_->flows.clear(); /* they are silent now */
        b_->pass(3);
        EXPECT_EQ(b_->sent<msg::past>(), 1u);
        EXPECT_GT(b_->at(1).traffic_of_movers().told, 0u);
        const auto group = b_->at(2).groups().around(kJob, first, 2);
        if (lost) {
            EXPECT_EQ(group.size(), 1u);
            EXPECT_EQ(b_->at(2).traffic_of_movers().learned, 0u);
        } else {
            EXPECT_EQ(group, (std::vector<rank_id>{first, first ^ 1u}));
            EXPECT_EQ(b_->at(2).traffic_of_movers().learned, b_->at(1).traffic_of_movers().told);
        }
        b_->pass(100); /* and all goes on */
    }
}

TEST_F(AgentProtocolTest, TrafficIsLearnedFromTheOldHomeOnly)
{
    begin();
    b_->add(3, 2, 2);
    b_->pass(20);
    ASSERT_GE(b_->asked.size(), 1u);
    const msg::ask &a = b_->asked[0];
    const msg::past told{a.txn, kJob, {{a.ranks[0], 5, 100, 1000}}};
    b_->deliver(3, a.target, told);
    EXPECT_EQ(b_->at(a.target).traffic_of_movers().refused, 1u);
    msg::past other = told;
    other.events[0].src = 99;
    b_->deliver(1, a.target, other);
    EXPECT_EQ(b_->at(a.target).traffic_of_movers().refused, 2u);
    EXPECT_EQ(b_->at(a.target).traffic_of_movers().learned, 0u);
    b_->deliver(1, a.target, told);
    EXPECT_EQ(b_->at(a.target).traffic_of_movers().learned, 1u);
}

TEST_F(AgentProtocolTest, AnIdleNodeGetsRanksInOneStep)
{
    ASSERT_TRUE(begins_to_move());
    EXPECT_EQ(b_->asked[0].target, 2u);
    EXPECT_EQ(b_->asked[0].host, "h2");
    EXPECT_EQ(b_->asked[0].epoch, 1u);
    EXPECT_EQ(b_->asked[0].ranks.size(), 3u); /* both have three for two processors */
    b_->finish(b_->asked[0], msg::verdict::moved);
    const record *moved = b_->last(1, "moved");
    ASSERT_NE(moved, nullptr);
    EXPECT_NE(moved->why.find("6.00 threads on 2.00 processors here"), std::string::npos)
        << moved->why;
    EXPECT_EQ(moved->phase_ms[2], 3);
    b_->pass(200);
    EXPECT_EQ(b_->asked.size(), 1u); /* and that is all */
}

TEST_F(AgentProtocolTest, RanksThatAnOperatorMovedStayForTheirTime)
{
    begin();
    b_->where = {1, 1, 1, 2, 2, 2};
    b_->stuck = {0, 1, 2};
    b_->pass(10);
    b_->where.assign(6, 1);
    b_->epoch++;
    b_->pass(20);
    expect_not_moved("refused", "and stays for 30 s");
    b_->pass(20);
    EXPECT_EQ(b_->asked.size(), 1u);
}

TEST_F(AgentProtocolTest, WaitsUntilTheOverloadHasLasted)
{
    begin();
    b_->pass(4);
    EXPECT_EQ(b_->sent<msg::reserve>(), 0u);
    b_->pass(10);
    EXPECT_GT(b_->sent<msg::reserve>(), 0u);
}

TEST_F(AgentProtocolTest, IntentIsOnDiskBeforeTheJobIsAsked)
{
    ASSERT_TRUE(begins_to_move());
    auto &order = b_->order_of_effects;
    auto ask = std::find(order.begin(), order.end(), "ask");
    ASSERT_NE(ask, order.begin());
    EXPECT_EQ(*(ask - 1), "save");
    auto saved = from_text(b_->disk[1]);
    ASSERT_TRUE(saved && saved->asked);
    EXPECT_EQ(saved->asked->ask, b_->asked[0]);
    EXPECT_EQ(saved->asked->by, 1u);
}

TEST_F(AgentProtocolTest, AFullTargetRefusesBeforeAnythingMoves)
{
    settings s;
    s.max_ranks = 6;
    begin(s);
    b_->pass(3);
    /* Since it was heard of last, the target has promised its room to another. */
    b_->lost = {bus::kIndex<msg::ping>, bus::kIndex<msg::ack>, bus::kIndex<msg::steal>};
    b_->deliver(9, 2, msg::reserve{{9, 1}, 5, {{0, 9}, {1, 9}, {2, 9}, {3, 9}, {4, 9}}, 10, 0});
    b_->pass(4);
    msg::steal stale;
    stale.thief = b_->at(2).network().self();
    stale.thief.load = {2, 0, 1, 0, 6, std::uint64_t{1} << 33, false};
    stale.hops = 1;
    b_->deliver(2, 1, stale);
    expect_not_moved("aborted", "is full: room for 1");
}

TEST_F(AgentProtocolTest, ASilentTargetIsGivenUpInTime)
{
    begin();
    b_->lost = {bus::kIndex<msg::reserved>};
    b_->pass(30);
    EXPECT_TRUE(b_->asked.empty());
    ASSERT_NE(b_->last(1, "aborted"), nullptr);
    EXPECT_EQ(b_->last(1, "aborted")->why, "no answer from the target");
}

TEST_F(AgentProtocolTest, ARankThatReachesNoSafePointIsSaidClearly)
{
    ASSERT_TRUE(begins_to_move());
    b_->finish(b_->asked[0], msg::verdict::timed_out);
    expect_last("failed", "safe point");
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    EXPECT_EQ(b_->at(2).here().digest().ranks, 0u); /* the room is free again */
}

TEST_F(AgentProtocolTest, RanksThatCannotMoveStay)
{
    begin();
    b_->stuck = {0, 1, 2, 3, 4, 5};
    b_->pass(30);
    expect_not_moved("refused", "cannot be moved");
}

TEST_F(AgentProtocolTest, ARunThatIsNearlyOverIsNotMoved)
{
    begin();
    b_->elapsed = 1;
    b_->pass(30);
    expect_not_moved("refused", "does not pay");
}

TEST_F(AgentProtocolTest, ABusyJobIsNotAsked)
{
    begin();
    b_->busy = true;
    b_->pass(30);
    EXPECT_TRUE(b_->asked.empty());
}

TEST_F(AgentProtocolTest, ObservingSaysWhatItWouldDo)
{
    settings s;
    s.act = mode::observe;
    begin(s);
    b_->pass(20);
    EXPECT_TRUE(b_->asked.empty());
    ASSERT_NE(b_->last(1, "would_move"), nullptr);
    EXPECT_EQ(b_->last(1, "would_move")->ranks.size(), 3u);
}

TEST_F(AgentProtocolTest, AJobThatObservesIsNotMoved)
{
    begin();
    b_->observe = true;
    b_->pass(20);
    EXPECT_TRUE(b_->asked.empty());
    ASSERT_NE(b_->last(1, "would_move"), nullptr);
    b_->observe = false; /* another job of the same shape */
    b_->pass(60);
    EXPECT_FALSE(b_->asked.empty());
}

TEST_F(AgentProtocolTest, ARestartedDeciderTakesUpAgain)
{
    ASSERT_TRUE(begins_to_move());
    b_->busy = true;
    restart_decider();
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    b_->pass(5);
    ASSERT_FALSE(b_->queried.empty());
    EXPECT_EQ(b_->queried[0].txn, b_->asked[0].txn);
    b_->busy = false;
    b_->finish(b_->asked[0], msg::verdict::moved);
    EXPECT_NE(b_->last(1, "moved"), nullptr);
    EXPECT_EQ(b_->asked.size(), 1u);
}

/* Only the life that was asked knows whether the request reached the job. */
TEST_F(AgentProtocolTest, ARestartedDeciderCannotSayThatTheRequestDidNotArrive)
{
    ASSERT_TRUE(begins_to_move());
    const msg::ask a = b_->asked[0];
    restart_decider();
    b_->pass(5);
    b_->finish(a, msg::verdict::unknown);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    moves_unseen(a);
    b_->pass(2);
    b_->finish(a, msg::verdict::unknown);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    ASSERT_NE(b_->last(1, "moved"), nullptr);
    EXPECT_EQ(b_->at(2).here().ranks().at({kJob, a.ranks[0]}).came_from, 1u);
}

/* The target is known from before, not only when it has been heard of again. */
TEST_F(AgentProtocolTest, ARestartedDeciderReachesTheTargetAtOnce)
{
    ASSERT_TRUE(begins_to_move());
    const msg::ask a = b_->asked[0];
    moves_unseen(a);
    b_->lost = {bus::kIndex<msg::ping>, bus::kIndex<msg::ack>};
    restart_decider(false);
    b_->pass(2);
    b_->finish(a, msg::verdict::unknown);
    EXPECT_NE(b_->last(1, "moved"), nullptr);
    EXPECT_EQ(b_->sent<msg::release>(), 1u);
    b_->lost.clear();
    expect_that_more_go();
}

TEST_F(AgentProtocolTest, ARestartedDeciderFreesTheRoomOfWhatWasInVain)
{
    ASSERT_TRUE(begins_to_move());
    const msg::ask a = b_->asked[0];
    b_->lost = {bus::kIndex<msg::ping>, bus::kIndex<msg::ack>};
    restart_decider(false);
    b_->pass(2);
    EXPECT_EQ(b_->at(2).here().digest().ranks, a.ranks.size());
    b_->finish(a, msg::verdict::refused);
    EXPECT_EQ(b_->at(2).here().digest().ranks, 0u);
}

/* Without its memory, say, the decider cannot say that the move has ended. */
TEST_F(AgentProtocolTest, ATargetThatHasItsRanksLooksForMore)
{
    ASSERT_TRUE(begins_to_move());
    b_->lost = {bus::kIndex<msg::release>};
    b_->finish(b_->asked[0], msg::verdict::moved);
    expect_that_more_go();
}

TEST_F(AgentProtocolTest, ARestartedDeciderSeesThatTheRequestWasInVain)
{
    ASSERT_TRUE(begins_to_move());
    restart_decider();
    b_->epoch++; /* moved by the operator */
    b_->pass(5);
    b_->finish(b_->asked[0], msg::verdict::unknown);
    EXPECT_EQ(b_->last(1, "moved"), nullptr);
    expect_last("failed", "another shape");
}

TEST_F(AgentProtocolTest, ARestartedDeciderDoesNotWaitForEver)
{
    begin();
    b_->pass(20);
    restart_decider();
    b_->pass(130);
    ASSERT_NE(b_->last(1, "aborted"), nullptr);
    EXPECT_EQ(b_->last(1, "aborted")->why, "no word from the job");
}

TEST_F(AgentProtocolTest, MemoryThatIsPromisedIsNotUnknown)
{
    begin();
    b_->pass(3);
    b_->deliver(9, 2, msg::reserve{{9, 1}, 5, {{0, 9}}, b_->free_bytes, 0});
    EXPECT_EQ(b_->at(2).here().digest().free_bytes, 1u);
    EXPECT_FALSE(has_memory(1, 1));
    EXPECT_TRUE(has_memory(0, 1));
}

TEST_F(AgentProtocolTest, AMoveThatWouldTakeTooLongIsNotBegun)
{
    begin();
    b_->image = std::uint64_t{4} << 30;
    b_->free_bytes = std::uint64_t{1} << 40;
    b_->elapsed = 3000;
    b_->pass(20);
    EXPECT_TRUE(b_->asked.empty());
    ASSERT_NE(b_->last(1, "refused"), nullptr);
    EXPECT_NE(b_->last(1, "refused")->why.find("move_timeout"), std::string::npos)
        << b_->last(1, "refused")->why;
}

TEST_F(AgentProtocolTest, ANodeThatIsBeingEmptiedStaysSo)
{
    begin();
    b_->pass(3);
    load_sample l;
    l.draining = true;
    b_->at(2).on_load(0, l);
    auto saved = from_text(b_->at(2).state_text());
    ASSERT_TRUE(saved);
    b_->kill(2);
    EXPECT_TRUE(b_->add(2, 2, 0, saved).here().draining());
}

TEST_F(AgentProtocolTest, ARestartedDeciderFindsThatTheWholeJobHasGone)
{
    ASSERT_TRUE(begins_to_move());
    b_->kill(1);
    for (node_id &where : b_->where)
        where = 2;
    b_->epoch++;
    b_->unaware = {1};
    b_->add(1, 2, 0, from_text(b_->disk[1]));
    EXPECT_EQ(b_->at(1).moves().busy_with(), "moving");
    b_->pass(10);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    ASSERT_NE(b_->last(1, "aborted"), nullptr);
    EXPECT_NE(b_->last(1, "aborted")->why.find("has left this node"), std::string::npos);
}

TEST_F(AgentProtocolTest, WithoutItsStateItWaitsForOldLeasesToEnd)
{
    begin();
    b_->pass(3);
    b_->kill(1);
    b_->add(1, 2, 0, std::nullopt);
    b_->pass(50);
    EXPECT_TRUE(b_->asked.empty());
    ASSERT_NE(b_->last(1, "refused"), nullptr);
    EXPECT_NE(b_->last(1, "refused")->why.find("earlier life"), std::string::npos);
    b_->pass(60);
    EXPECT_FALSE(b_->asked.empty());
}

TEST_F(AgentProtocolTest, ARequestThatNeverArrivedIsClosed)
{
    ASSERT_TRUE(begins_to_move());
    msg::ask late = b_->asked[0];
    b_->finish(late, msg::verdict::unknown);
    EXPECT_EQ(b_->at(1).moves().busy_with(), "");
    EXPECT_NE(b_->last(1, "failed")->why.find("did not reach"), std::string::npos);
}

/* It knew no other agent when it saw the job for the last time, which then ended. */
TEST_F(AgentProtocolTest, AResumedMoveIsAskedAboutWhoeverBecameKnownSince)
{
    ASSERT_TRUE(begins_to_move());
    auto saved = from_text(b_->disk[1]);
    ASSERT_TRUE(saved && saved->asked);
    b_->kill(1);
    b_->queried.clear(); /* of its earlier life */
    b_->gateway = kNoNode;
    b_->gateway_host = "h2";
    b_->add(1, 2, 0, saved);
    b_->pass(10);
    EXPECT_FALSE(b_->queried.empty());
}

/* Ranks 0-5 at node 1, 6 at node 3; 5 and 6 talk, and node 1 reaches the job. */
class AgentBorrowTest : public AgentProtocolTest {
  protected:
    void begin_three(settings s = {})
    {
        b_ = std::make_unique<bus>(s);
        b_->where = {1, 1, 1, 1, 1, 1, 3};
        b_->flows[5] = {{6, 1e8, 1000}};
        b_->flows[6] = {{5, 1e8, 1000}};
        b_->add(1, 2);
        b_->add(2, 8);
        b_->add(3, 1);
    }
    /** Has the third node lent this rank for that transaction? */
    bool is_lent(rank_id rank, const txn_id &txn) const
    {
        return b_->at(3).moves().lent_to({kJob, rank}, txn);
    }
    /** A request of the third node, for the first as it runs now. */
    msg::ask request() const
    {
        return {{3, 5}, b_->at(1).network().self().incarnation, kJob, 1, 2, "h2", {6}};
    }
    /** It comes to the first node, which does not pass it on to the job. */
    void expect_refused(const msg::ask &request)
    {
        std::size_t before = b_->asked.size();
        b_->deliver(3, 1, request);
        EXPECT_EQ(b_->asked.size(), before);
    }
};

TEST_F(AgentBorrowTest, ThePartnerElsewhereComesToo)
{
    settings s;
    s.policy = "application";
    begin_three(s);
    b_->stuck = {0, 1, 2, 3, 4};
    b_->pass(25);
    ASSERT_FALSE(b_->asked.empty());
    bool together = false;
    for (const msg::ask &a : b_->asked) {
        std::set<rank_id> ranks(a.ranks.begin(), a.ranks.end());
        together = together || (ranks.contains(5) && ranks.contains(6));
    }
    EXPECT_TRUE(together);
}

/* What it was promised memory for are the decider's own ranks. */
TEST_F(AgentBorrowTest, APartnerForWhomThereIsNoMemoryStays)
{
    settings s;
    s.policy = "application";
    begin_three(s);
    b_->stuck = {0, 1, 2, 3, 4};
    b_->image = std::uint64_t{1} << 30;
    b_->free_bytes = std::uint64_t{2} << 30;
    b_->elapsed = 3000;
    b_->pass(25);
    ASSERT_FALSE(b_->asked.empty());
    for (const msg::ask &a : b_->asked)
        EXPECT_EQ(a.ranks, std::vector<rank_id>{5});
    EXPECT_GT(b_->sent<msg::lent>(), 0u);
    EXPECT_FALSE(is_lent(6, b_->asked.back().txn));
}

/* A partner that was borrowed comes from its host, not from the decider. */
TEST_F(AgentBorrowTest, ABorrowedRankRemembersWhereItWas)
{
    settings s;
    s.policy = "application";
    begin_three(s);
    b_->stuck = {0, 1, 2, 3, 4};
    b_->pass(25);
    ASSERT_FALSE(b_->asked.empty());
    msg::ask both = b_->asked.back();
    ASSERT_EQ(std::set<rank_id>(both.ranks.begin(), both.ranks.end()), (std::set<rank_id>{5, 6}));
    b_->finish(both, msg::verdict::moved);
    b_->pass(3);
    EXPECT_EQ(b_->at(2).here().ranks().at({kJob, 5}).came_from, 1u);
    EXPECT_EQ(b_->at(2).here().ranks().at({kJob, 6}).came_from, 3u);
}

TEST_F(AgentBorrowTest, ARankIsNotLentForAMoveBackToWhereItCameFrom)
{
    begin_three();
    b_->lost = {bus::kIndex<msg::steal>, bus::kIndex<msg::nudge>};
    b_->pass(3);
    b_->deliver(2, 3, msg::reserve{{2, 1}, kJob, {{4, 2}}, 10, 0});
    b_->where[4] = 3;
    b_->pass(2);
    b_->deliver(2, 3, msg::release{{2, 1}, true});
    b_->pass(200); /* it need not stay any longer */
    b_->deliver(1, 3, msg::lend{{1, 900}, kJob, 1, 2, {4}});
    EXPECT_FALSE(is_lent(4, {1, 900}));
    b_->deliver(1, 3, msg::lend{{1, 901}, kJob, 1, 9, {4}}); /* to another place it may go */
    EXPECT_TRUE(is_lent(4, {1, 901}));
}

TEST_F(AgentBorrowTest, WhatIsLentIsNotDecidedOnTwice)
{
    begin_three();
    b_->pass(3);
    b_->deliver(1, 3, msg::lend{{1, 900}, kJob, 1, 2, {6}});
    EXPECT_TRUE(is_lent(6, {1, 900}));
    auto saved = from_text(b_->disk[3]);
    ASSERT_TRUE(saved);
    ASSERT_EQ(saved->leases.size(), 1u);
    b_->deliver(2, 3, msg::lend{{2, 1}, kJob, 1, 2, {6}}); /* a second borrower */
    EXPECT_FALSE(is_lent(6, {2, 1}));
    b_->deliver(1, 3, msg::release{{1, 900}, false});
    EXPECT_FALSE(is_lent(6, {1, 900}));
    b_->deliver(2, 3, msg::lend{{2, 2}, kJob, 1, 2, {6}});
    EXPECT_TRUE(is_lent(6, {2, 2}));
}

TEST_F(AgentBorrowTest, LeasesOutliveTheLender)
{
    begin_three();
    b_->pass(3);
    b_->deliver(1, 3, msg::lend{{1, 900}, kJob, 1, 2, {6}});
    b_->kill(3);
    b_->add(3, 1, 0, from_text(b_->disk[3]));
    EXPECT_TRUE(is_lent(6, {1, 900}));
}

TEST_F(AgentBorrowTest, OnlyTheDeciderItselfIsHeard)
{
    begin_three();
    b_->pass(3);
    b_->deliver(2, 3, msg::lend{{1, 900}, kJob, 1, 2, {6}}); /* in the name of another */
    EXPECT_FALSE(is_lent(6, {1, 900}));
    b_->deliver(1, 3, msg::lend{{1, 901}, kJob, 1, 2, {6}});
    b_->deliver(2, 3, msg::release{{1, 901}, false});
    EXPECT_TRUE(is_lent(6, {1, 901}));
}

TEST_F(AgentBorrowTest, AnotherEpochIsRefused)
{
    begin_three();
    b_->pass(3);
    b_->deliver(1, 3, msg::lend{{1, 900}, kJob, 2, 2, {6}});
    EXPECT_FALSE(is_lent(6, {1, 900}));
}

TEST_F(AgentBorrowTest, ALateRequestAfterItWasGivenUpIsRefused)
{
    begin_three();
    b_->pass(3);
    const msg::ask late = request();
    msg::outcome unknown{late.txn, kJob, msg::verdict::unknown, 0, 0, {}, ""};
    b_->at(1).on_outcome(0, unknown); /* as the decider was told when it asked */
    expect_refused(late);
}

/* The agent that reaches the job has answered that it does not know the request; restarted, it
 * does not remember that. */
TEST_F(AgentBorrowTest, ARequestMeantForAnEarlierLifeIsRefused)
{
    begin_three();
    b_->pass(3);
    msg::ask late = request();
    b_->kill(1);
    b_->add(1, 2);
    expect_refused(late);
    const std::size_t before = b_->asked.size();
    late.incarnation = b_->at(1).network().self().incarnation;
    b_->deliver(3, 1, late);
    EXPECT_EQ(b_->asked.size(), before + 1);
}

} // namespace
} // namespace zc::agent

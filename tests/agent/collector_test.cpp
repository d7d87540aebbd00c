/* SPDX-License-Identifier: BSD-3-Clause */

/* What agents tell each other of the messages of a job's ranks. */
#include <gtest/gtest.h>

#include "bus.h"
#include "collector.h"

namespace zc::agent {
namespace {

constexpr job_id kJob = test::kJob;
constexpr node_id kHere = 1, kThere = 2, kElsewhere = 3;
constexpr nanos kNow = 100 * kSecond;

zcp_event_t event(rank_id src, rank_id dst, nanos at, std::uint64_t bytes = 8)
{
    return {src, dst, bytes, static_cast<std::uint64_t>(at), 0, 0};
}

std::vector<rank_id> senders(const std::vector<zcp_event_t> &events)
{
    std::vector<rank_id> all;
    for (const zcp_event_t &e : events)
        all.push_back(e.src);
    return all;
}

class AgentCollectorTest : public testing::Test {
  protected:
    AgentCollectorTest()
    {
        job_.job = kJob;
        job_.placement = {kHere, kHere, kThere, kElsewhere, kNoNode};
    }
    /** @from tells them at @told, by its clock; they are heard so much later, by ours. */
    void hear(nanos told, node_id from, const std::vector<zcp_event_t> &events, nanos later = 0,
              std::uint64_t incarnation = 1)
    {
        msg::traffic m{kJob, static_cast<std::uint64_t>(told), {}};
        for (const zcp_event_t &e : events)
            m.events.push_back(told_at(told, e));
        it_.learn(told + later, from, incarnation, m, &job_);
    }
    std::vector<rank_id> taken(nanos now) { return senders(it_.take(now, kJob)); }
    settings s_;
    const nanos delay_ = s_.collect_delay;
    job_view job_;
    collector it_{s_};
    outbox out_;
};

TEST_F(AgentCollectorTest, TellsAllOtherAgentsOfTheJob)
{
    const std::vector sent = {event(0, 2, kNow - kSecond), event(1, 3, kNow - kMillisecond, 77)};
    it_.tell(kNow, job_, kHere, sent, out_);
    ASSERT_EQ(out_.size(), 2u);
    EXPECT_EQ(out_[0].to, kThere);
    EXPECT_EQ(out_[1].to, kElsewhere);
    const auto &told = std::get<msg::traffic>(out_[1].body);
    EXPECT_EQ(told.job, kJob);
    EXPECT_EQ(told.events, (std::vector<msg::sent>{{0, 2, 8, 1'000'000}, {1, 3, 77, 1000}}));
    EXPECT_EQ(it_.counted().told, 4u);
}

TEST_F(AgentCollectorTest, SaysNothingToItselfNorOfNothing)
{
    it_.tell(kNow, job_, kHere, {}, out_);
    job_.placement.assign(5, kHere);
    it_.tell(kNow, job_, kHere, std::vector{event(0, 1, kNow)}, out_);
    EXPECT_TRUE(out_.empty());
    EXPECT_EQ(taken(kNow), std::vector<rank_id>{0}); /* it need not wait for others */
}

TEST_F(AgentCollectorTest, SplitsWhatDoesNotFitAndCountsWhatItLeavesOut)
{
    job_.placement = {kHere, kThere};
    std::vector<zcp_event_t> sent;
    for (std::size_t i = 0; i < collector::kMostTold + 5; i++)
        sent.push_back(event(0, 1, kNow, i));
    it_.tell(kNow, job_, kHere, sent, out_);
    ASSERT_EQ(out_.size(), collector::kMostTold / kMaxPast);
    EXPECT_EQ(std::get<msg::traffic>(out_.front().body).events.front().bytes, 5u); /* the latest */
    EXPECT_EQ(std::get<msg::traffic>(out_.back().body).events.size(), kMaxPast);
    EXPECT_EQ(it_.counted().told, collector::kMostTold);
    EXPECT_EQ(it_.counted().untold, 5u);
}

TEST_F(AgentCollectorTest, ToManyAgentsItTellsLess)
{
    job_.placement = {kHere};
    for (node_id other = 2; other < 42; other++)
        job_.placement.push_back(other);
    it_.tell(kNow, job_, kHere, std::vector<zcp_event_t>(collector::kMostTold, event(0, 1, kNow)),
             out_);
    EXPECT_EQ(it_.counted().told, collector::kMostAtOnce);
    EXPECT_EQ(it_.counted().untold, collector::kMostTold - collector::kMostAtOnce / 40);
}

/* An agent that starts reads what its ranks have sent long before. */
TEST_F(AgentCollectorTest, DoesNotTellWhatIsOld)
{
    it_.tell(kNow, job_, kHere, std::vector{event(0, 2, kNow - 2 * delay_), event(1, 2, kNow)},
             out_);
    ASSERT_EQ(out_.size(), 2u);
    ASSERT_EQ(std::get<msg::traffic>(out_[0].body).events.size(), 1u);
    EXPECT_EQ(std::get<msg::traffic>(out_[0].body).events[0].src, 1u);
    EXPECT_EQ(it_.counted().untold, 0u);
}

/* Each agent tells a whole second at once, but the ranks have sent by turns. */
TEST_F(AgentCollectorTest, HandsThemOutInTheOrderOfTheirTimes)
{
    it_.tell(
        kNow, job_, kHere,
        std::vector{event(0, 1, kNow - 900 * kMillisecond), event(1, 0, kNow - 500 * kMillisecond)},
        out_);
    EXPECT_TRUE(taken(kNow).empty()); /* others may have sent before */
    hear(kNow + 200 * kMillisecond, kThere,
         {event(2, 0, kNow - 700 * kMillisecond), event(2, 1, kNow + 100 * kMillisecond)});
    EXPECT_EQ(taken(kNow + delay_), (std::vector<rank_id>{0, 2, 1}));
    EXPECT_TRUE(taken(kNow + delay_).empty()); /* each once */
    EXPECT_EQ(taken(kNow + kSecond + delay_), std::vector<rank_id>{2});
}

/* What is long under way, or waits for an agent that is busy, has its place all the same. */
TEST_F(AgentCollectorTest, TimesAreThoseOfTheSender)
{
    it_.tell(kNow, job_, kHere, {}, out_);
    hear(kNow, kElsewhere, {event(3, 0, kNow)}, kMillisecond);
    hear(kNow + kSecond, kElsewhere, {event(3, 1, kNow + 300 * kMillisecond)}, 900 * kMillisecond);
    hear(kNow + 2 * kSecond, kElsewhere, {event(3, 2, kNow + 600 * kMillisecond)}, kMillisecond);
    hear(kNow + 2 * kSecond, kThere, {event(2, 0, kNow + 450 * kMillisecond)}, kMillisecond);
    const auto all = it_.take(kNow + kSecond + delay_, kJob);
    EXPECT_EQ(senders(all), (std::vector<rank_id>{3, 3, 2, 3}));
    std::vector<rank_id> to;
    for (const zcp_event_t &e : all)
        to.push_back(e.dst);
    EXPECT_EQ(to, (std::vector<rank_id>{0, 1, 0, 2}));
}

TEST_F(AgentCollectorTest, AClockOfALaterLifeIsAnother)
{
    it_.tell(kNow, job_, kHere, {}, out_);
    hear(kNow - 50 * kSecond, kThere, {event(2, 0, kNow - 50 * kSecond)}, 50 * kSecond);
    EXPECT_EQ(taken(kNow + delay_), std::vector<rank_id>{2});
    hear(kNow + kSecond, kThere, {event(2, 0, kNow + kSecond)}, 0,
         2); /* its host has the time now */
    EXPECT_EQ(taken(kNow + kSecond + delay_), std::vector<rank_id>{2});
    EXPECT_EQ(it_.counted().late, 0u);
}

TEST_F(AgentCollectorTest, OneThatComesTooLateIsCounted)
{
    it_.tell(kNow, job_, kHere, {}, out_);
    hear(kNow, kElsewhere, {event(3, 0, kNow)});
    hear(kNow, kThere, {event(2, 0, kNow)});
    ASSERT_EQ(it_.take(kNow + delay_, kJob).size(), 2u);
    hear(kNow, kThere, {event(2, 0, kNow - kSecond)}, delay_);
    EXPECT_TRUE(taken(kNow + 2 * delay_).empty());
    EXPECT_EQ(it_.counted().late, 1u);
}

TEST_F(AgentCollectorTest, LearnsOnlyOfRanksThatAreAtTheSender)
{
    hear(kNow, kThere, {event(3, 0, kNow), event(0, 2, kNow), event(4, 0, kNow)});
    hear(kNow, kThere, {event(9, 0, kNow), event(2, 9, kNow)}); /* there are five */
    it_.learn(kNow, kThere, 1, {kJob, std::uint64_t{1} << 63, {{2, 0, 8, 0}}}, &job_);
    it_.learn(kNow, kThere, 1, {kJob, 0, {{2, 0, 8, 0}}}, nullptr); /* of what job? */
    EXPECT_EQ(it_.counted().refused, 7u);
    EXPECT_EQ(it_.counted().learned, 0u);
    hear(kNow, kThere, {event(2, 0, kNow)});
    EXPECT_EQ(it_.counted().learned, 1u);
}

/* Whatever one agent tells, there is room for what the others do. */
TEST_F(AgentCollectorTest, HasRoomForEachAgent)
{
    it_.tell(kNow, job_, kHere, {}, out_);
    const std::vector<zcp_event_t> many(kMaxPast, event(2, 0, kNow));
    for (std::size_t told = 0; told < 3 * collector::kMostTold; told += kMaxPast)
        hear(kNow, kThere, many);
    EXPECT_EQ(it_.counted().learned, collector::kMostTold);
    EXPECT_EQ(it_.counted().no_room, 2 * collector::kMostTold);
    hear(kNow, kElsewhere, {event(3, 0, kNow)});
    EXPECT_EQ(it_.counted().learned, collector::kMostTold + 1);
    EXPECT_TRUE(taken(kNow).empty());
    hear(kNow, kThere, many); /* of the next sample */
    EXPECT_EQ(it_.counted().no_room, 2 * collector::kMostTold);
}

TEST_F(AgentCollectorTest, MoreThanItKeepsDoNotWait)
{
    constexpr std::size_t kMore = 7;
    it_.tell(kNow, job_, kHere,
             std::vector<zcp_event_t>(collector::kMostKept + kMore, event(0, 1, kNow)), out_);
    EXPECT_EQ(it_.take(kNow, kJob).size(), kMore);
    it_.job_gone(kJob);
    EXPECT_TRUE(it_.take(kNow + delay_, kJob).empty());
}

/** Two agents of a job of four ranks, of which each sends to its neighbour. */
std::vector<rank_id> group_seen_from_the_other_node(collection how, std::uint64_t *refused)
{
    settings s;
    s.collect = how;
    s.act = mode::observe;
    test::bus b(s);
    b.where = {kHere, kHere, kThere, kThere};
    b.add(kHere, 4);
    b.add(kThere, 4);
    for (rank_id r = 0; r < 4; r++)
        b.flows[r] = {{r ^ 1u, 1e5, 10}};
    b.pass(20);
    *refused = b.at(kHere).traffic_of_jobs().refused;
    return b.at(kHere).groups().around(kJob, 2, 2);
}

TEST(AgentCollectionTest, AnAgentKnowsTheMessagesOfAllRanksIfItCollectsThem)
{
    std::uint64_t refused = 0;
    EXPECT_EQ(group_seen_from_the_other_node(collection::node, &refused), std::vector<rank_id>{2});
    EXPECT_EQ(group_seen_from_the_other_node(collection::job, &refused),
              (std::vector<rank_id>{2, 3}));
    EXPECT_EQ(refused, 0u);
}

TEST(AgentCollectionTest, AnAgentThatDoesNotCollectRefusesWhatItIsTold)
{
    test::bus b;
    b.where = {kHere, kThere};
    b.add(kHere, 4);
    b.add(kThere, 4);
    b.pass(3);
    b.deliver(kThere, kHere, msg::traffic{kJob, 0, {{1, 0, 8, 0}}});
    EXPECT_EQ(b.at(kHere).traffic_of_jobs().refused, 1u);
    EXPECT_EQ(b.at(kHere).groups().around(kJob, 1, 2).size(), 1u);
}

} // namespace
} // namespace zc::agent

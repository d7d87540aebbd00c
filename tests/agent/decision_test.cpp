/* SPDX-License-Identifier: BSD-3-Clause */
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "decision.h"

namespace zc::agent {
namespace {

constexpr job_id kJob = 5;
constexpr node_id kHere = 1;
constexpr node_id kThere = 2;
constexpr node_id kElsewhere = 3;

class AgentDecisionTest : public testing::Test {
  protected:
    AgentDecisionTest()
    {
        member self;
        self.id = kHere;
        network_ = std::make_unique<membership>(s_, self, random_);
        here_.start(0, 0);
        thief_.id = kThere;
        thief_.host = "there";
        thief_.load = {4, 0, 1, 0, 16, std::uint64_t{1} << 33, false};
        network_->learn(0, thief_);
    }
    /** @count ranks here, the rest elsewhere; overloaded for long. Of a job below zc-hold it is not
     * known where. */
    void ranks(rank_id count, rank_id elsewhere = 0, double cpus = 2, double others = 0)
    {
        job_view job;
        job.job = kJob;
        job.epoch = 1;
        for (rank_id r = 0; r < count + elsewhere; r++)
            job.placement.push_back(r < count ? kHere : transparent_ ? kNoNode : kElsewhere);
        job.transparent = transparent_;
        here_.on_job(job);
        for (rank_id r = 0; r < count; r++) {
            rank_profile p;
            p.key = {kJob, r};
            p.image_bytes = image_;
            p.elapsed_s = elapsed_;
            p.flows = flows_[r];
            p.transparent = transparent_;
            if (images_.contains(r))
                p.image_bytes = images_[r];
            here_.on_rank(10 * kSecond, p);
        }
        load_sample l;
        l.cpus = cpus;
        l.demand = count + others;
        l.draining = draining_;
        l.speed = speed_;
        here_.on_load(10 * kSecond, l);
        here_.on_load(20 * kSecond, l);
    }
    opinion decide(const char *policy = "random", const char *groups = "single")
    {
        groups_ = make_grouping(groups);
        policy_ = make_policy(policy);
        decision_ =
            make_balancing_decision(s_, here_, *network_, *groups_, *policy_, past_, random_);
        return decision_->decide(21 * kSecond, thief_, links_,
                                 [](const local_rank &, node_id, std::string &) { return true; });
    }

    settings s_;
    random_source random_{1};
    profiling here_{s_};
    std::unique_ptr<membership> network_;
    experience past_{s_};
    std::unique_ptr<grouping> groups_;
    std::unique_ptr<policy> policy_;
    std::unique_ptr<decision> decision_;
    member thief_;
    std::vector<msg::link> links_;
    std::map<rank_id, std::vector<flow>> flows_;
    std::uint64_t image_ = 1 << 20;
    double elapsed_ = 100;
    bool draining_ = false;
    double speed_ = 1;
    bool transparent_ = false;
    std::map<rank_id, std::uint64_t> images_; /* of ranks that differ */
};

class AgentThresholdTest : public AgentDecisionTest {
  protected:
    AgentThresholdTest() { s_.decision = "threshold"; }
    opinion ask(const char *policy = "random")
    {
        policy_ = make_policy(policy);
        decision_ = make_threshold_decision(s_, here_, *network_, *policy_, past_, random_);
        return decision_->decide(21 * kSecond, thief_, links_,
                                 [](const local_rank &, node_id, std::string &) { return true; });
    }
    bool is_worthwhile(double thief_demand, double victim_demand)
    {
        load_digest thief = thief_.load, victim = thief_.load;
        thief.demand = thief_demand;
        victim.demand = victim_demand;
        victim.ranks = 2;
        return decision_->worthwhile(thief, victim);
    }
};

TEST_F(AgentThresholdTest, OneRankGoesWhateverItBringsAndCosts)
{
    elapsed_ = 0; /* nothing remains, as far as can be told */
    ranks(2, 0, 2, 1);
    EXPECT_FALSE(decide().give);
    const opinion o = ask();
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(o.give->own.size(), 1u);
    EXPECT_TRUE(o.give->borrowed.empty());
    EXPECT_NE(o.give->why.find("the threshold is 0.75"), std::string::npos) << o.give->why;
}

TEST_F(AgentThresholdTest, OneOfManyAndNoGroup)
{
    flows_[0] = {{1, 1e9, 10}};
    flows_[1] = {{0, 1e9, 10}};
    ranks(8);
    EXPECT_GT(decide().give->own.size(), 1u);
    EXPECT_EQ(ask().give->own.size(), 1u);
}

TEST_F(AgentThresholdTest, TheThresholdIsWhatIsSaid)
{
    ranks(5, 0, 4);
    EXPECT_NE(ask().why.find("not below the threshold: 5.00 threads on 4.00"), std::string::npos);
    s_.threshold = 0.81;
    ranks(5, 0, 4);
    EXPECT_TRUE(ask().give);
}

TEST_F(AgentThresholdTest, WhatLastsForAMomentOnlyIsNoReason)
{
    ranks(5, 0, 4);
    s_.threshold = 0.81;
    here_.on_load(20 * kSecond, here_.load()); /* a second before the question */
    const std::string why = "overloaded for 1.0 s only, waiting for 5.0 s";
    EXPECT_EQ(ask().why, why);
    s_.decision = "balance";
    EXPECT_EQ(decide().why, why); /* in the same words */
    s_.decision = "threshold";
    s_.settle = kSecond;
    EXPECT_TRUE(ask().give);
    s_.settle = 5 * kSecond;
    draining_ = true;
    ranks(5, 0, 4);
    EXPECT_TRUE(ask().give);
}

TEST_F(AgentThresholdTest, BothDecisionsSayInTheSameWordsWhyNoRankMayGo)
{
    const auto both_say = [this](const free_check &free) {
        ask();
        const std::string threshold = decision_->decide(21 * kSecond, thief_, links_, free).why;
        decide();
        EXPECT_EQ(decision_->decide(21 * kSecond, thief_, links_, free).why, threshold);
        return threshold;
    };
    ranks(8);
    const free_check none = [](const local_rank &, node_id target, std::string &reason) {
        reason = "may not go to " + std::to_string(target);
        return false;
    };
    EXPECT_EQ(both_say(none), "no rank may go: rank 7 may not go to 2");
    job_view job = *here_.job(kJob);
    job.busy = true;
    here_.on_job(job);
    EXPECT_EQ(both_say(none), "the job is being reconfigured");
}

TEST_F(AgentThresholdTest, ANodeThatIsBelowItItselfTakesNothing)
{
    ranks(8);
    thief_.load.demand = 6; /* four processors */
    EXPECT_NE(ask().why.find("there is below the threshold itself"), std::string::npos);
    thief_.load.demand = 5;
    EXPECT_TRUE(ask().give);
    thief_.load.room = 0;
    EXPECT_NE(ask().why.find("is full"), std::string::npos);
}

TEST_F(AgentThresholdTest, ANodeThatIsEmptiedGivesToOneThatIsBelowIt)
{
    draining_ = true;
    ranks(2);
    thief_.load.demand = 6; /* four processors */
    const opinion o = ask();
    ASSERT_TRUE(o.give) << o.why;
    load_digest victim = here_.digest();
    EXPECT_TRUE(decision_->worthwhile(thief_.load, victim));
    victim.draining = false;
    EXPECT_FALSE(decision_->worthwhile(thief_.load, victim));
    thief_.load.draining = true; /* it is emptied itself */
    EXPECT_FALSE(ask().give);
    EXPECT_FALSE(decision_->worthwhile(thief_.load, here_.digest()));
}

TEST_F(AgentThresholdTest, ItIsAskedOnceMoreWithWhatTheTargetSaysNow)
{
    ranks(8);
    plan p = *ask().give;
    load_digest told = thief_.load;
    EXPECT_TRUE(decision_->confirm(p, told));
    told.ranks = 1;
    told.demand = 6;
    EXPECT_FALSE(decision_->confirm(p, told));
    told.demand = 0;
    p.bytes = std::uint64_t{1} << 40;
    EXPECT_FALSE(decision_->confirm(p, told));
}

TEST_F(AgentThresholdTest, WorkIsSoughtWhereANodeIsBelowIt)
{
    ask();
    EXPECT_TRUE(is_worthwhile(0, 6));
    EXPECT_FALSE(is_worthwhile(0, 5));
    EXPECT_FALSE(is_worthwhile(6, 6));
}

TEST_F(AgentThresholdTest, ItIsOverloadedForAsLongAsItIsBelow)
{
    ranks(5, 0, 4);
    EXPECT_EQ(here_.overloaded_for(21 * kSecond), 0);
    s_.threshold = 0.9;
    here_.on_load(22 * kSecond, here_.load());
    EXPECT_GT(here_.overloaded_for(23 * kSecond), 0);
}

TEST_F(AgentDecisionTest, WhatRunsForAMoveIsNoLoad)
{
    ranks(2);
    EXPECT_EQ(here_.overloaded_for(20 * kSecond), 0);
    load_sample l;
    l.cpus = 2;
    l.demand = 6;
    l.speed = 1;
    job_view job = *here_.job(kJob);
    job.busy = true;
    here_.on_job(job);
    for (nanos at = 21 * kSecond; at <= 40 * kSecond; at += kSecond)
        here_.on_load(at, l);
    EXPECT_EQ(here_.overloaded_for(40 * kSecond), 0);
    EXPECT_DOUBLE_EQ(here_.external(), 0);
    job.busy = false;
    here_.on_job(job);
    l.demand = 2;
    here_.on_load(41 * kSecond, l);
    EXPECT_EQ(here_.overloaded_for(41 * kSecond), 0);
    l.demand = 6; /* and what runs without one is */
    for (nanos at = 42 * kSecond; at <= 50 * kSecond; at += kSecond)
        here_.on_load(at, l);
    EXPECT_GE(here_.overloaded_for(50 * kSecond), s_.settle);
}

TEST_F(AgentDecisionTest, MovesAsManyAsMakeTheSlowerNodeFastest)
{
    ranks(9); /* 4.5 per processor; 3 on 2 and 6 on 4 are 1.5 */
    opinion o = decide();
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(o.give->own.size(), 6u);
    EXPECT_DOUBLE_EQ(o.give->figures.before, 4.5);
    EXPECT_DOUBLE_EQ(o.give->figures.after, 1.5);
}

/* Ranks 0 to 3, elsewhere, and 12 to 15, here, are in it; it has more than may go at once. */
TEST_F(AgentDecisionTest, OfAWholePatternTheRanksHereGo)
{
    job_view job;
    job.job = kJob;
    job.epoch = 1;
    for (rank_id r = 0; r < 20; r++)
        job.placement.push_back(r < 12 ? kElsewhere : kHere);
    here_.on_job(job);
    for (rank_id r = 12; r < 20; r++) {
        rank_profile p;
        p.key = {kJob, r};
        p.image_bytes = image_;
        p.elapsed_s = elapsed_;
        if (r > 12) /* by the policy rank 12 goes first, and those of the pattern last */
            p.flows = {{12, r < 16 ? 100.0 : 10.0, 1}};
        here_.on_rank(10 * kSecond, p);
    }
    load_sample l;
    l.cpus = 2;
    l.demand = 8;
    here_.on_load(10 * kSecond, l);
    here_.on_load(20 * kSecond, l);
    s_.most_at_once = 4;
    pattern_settings all;
    all.group = pattern_settings::membership::all;
    groups_ = make_grouping("teiresias-basic", 0, all);
    groups_->job(kJob, 20);
    std::vector<zcp_event_t> events;
    for (std::uint64_t round = 0; round < 256; round++) {
        for (rank_id r : {0, 1, 2, 3, 12, 13, 14, 15})
            events.push_back({r, r ^ 1, 1000, round * 1'000'000, 0, 0});
    }
    groups_->observe(kJob, events);
    policy_ = make_policy("application");
    decision_ = make_balancing_decision(s_, here_, *network_, *groups_, *policy_, past_, random_);
    const opinion o =
        decision_->decide(21 * kSecond, thief_, links_,
                          [](const local_rank &, node_id, std::string &) { return true; });
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(std::set<rank_id>(o.give->own.begin(), o.give->own.end()),
              (std::set<rank_id>{12, 13, 14, 15}));
}

TEST_F(AgentDecisionTest, NoOverloadNoMove)
{
    ranks(2);
    opinion o = decide();
    EXPECT_FALSE(o.give);
    EXPECT_NE(o.why.find("not overloaded"), std::string::npos) << o.why;
}

TEST_F(AgentDecisionTest, NotIntoAnotherOverload)
{
    ranks(3); /* 1.5 here; one more there would be 2.25 */
    thief_.load.demand = 8;
    thief_.load.ranks = 8;
    opinion o = decide();
    EXPECT_FALSE(o.give);
    EXPECT_NE(o.why.find("hysteresis"), std::string::npos) << o.why;
}

TEST_F(AgentDecisionTest, GainMustPayForTheMove)
{
    image_ = std::uint64_t{4} << 30;
    ranks(4); /* 100 s left, half of it to gain; 4 GiB and more at 100 MB/s */
    thief_.load.free_bytes = std::uint64_t{1} << 40;
    opinion o = decide();
    EXPECT_FALSE(o.give);
    EXPECT_NE(o.why.find("does not pay"), std::string::npos) << o.why;
}

TEST_F(AgentDecisionTest, MeasuredBandwidthCounts)
{
    image_ = std::uint64_t{4} << 30;
    ranks(4);
    thief_.load.free_bytes = std::uint64_t{1} << 40;
    for (int i = 0; i < 20; i++)
        network_->learn_bandwidth(kThere, std::uint64_t{10} << 30, kSecond);
    EXPECT_TRUE(decide().give);
}

TEST_F(AgentDecisionTest, RoomAndMemoryAreKept)
{
    ranks(9);
    thief_.load.room = 2;
    opinion o = decide();
    ASSERT_TRUE(o.give);
    EXPECT_EQ(o.give->own.size(), 2u);
    thief_.load.room = 16;
    thief_.load.free_bytes = 5 << 20; /* three images and their margin */
    o = decide();
    ASSERT_TRUE(o.give);
    EXPECT_EQ(o.give->own.size(), 3u);
    thief_.load.room = 0;
    EXPECT_FALSE(decide().give);
}

TEST_F(AgentDecisionTest, DrainingGivesAllThereIsRoomFor)
{
    draining_ = true;
    ranks(2); /* not overloaded at all */
    opinion o = decide();
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(o.give->own.size(), 2u);
}

/* Two ranks on less than a processor are an overload that never ends, so `settle` has long passed
 * when something else runs for a moment. */
TEST_F(AgentDecisionTest, WhatOthersDoForAMomentIsNoReason)
{
    ranks(2, 0, 0.4);
    thief_.load = {0.4f, 1.16f, 1, 1, 16, std::uint64_t{1} << 33, false};
    ASSERT_FALSE(decide().give); /* 2 on 0.4 here, 2.16 there: nothing to gain */
    auto others = [this](int from_s, int to_s, double demand) {
        load_sample l;
        l.cpus = 0.4;
        for (int t = from_s; t < to_s; t++) {
            l.demand = 2 + demand;
            here_.on_load(t * kSecond, l);
        }
    };
    others(21, 26, 0);
    others(26, 30, 4);
    opinion o = decide();
    EXPECT_FALSE(o.give) << o.give->why;
    others(30, 33, 0);
    EXPECT_FALSE(decide().give);
    others(33, 45, 4); /* that is lasting */
    EXPECT_TRUE(decide().give);
}

TEST_F(AgentDecisionTest, SlowProcessorsAreASortOfOverload)
{
    ranks(1, 0, 0.25);
    EXPECT_TRUE(decide().give);
}

TEST_F(AgentDecisionTest, ApplicationPolicyGivesThePartnersOfTheThief)
{
    for (rank_id r = 0; r < 4; r++)
        flows_[r] = {{4 + r, r == 2 ? 1e9 : 1e3, 1}};
    ranks(4, 4, 3);
    job_view job = *here_.job(kJob);
    job.placement[6] = kThere; /* the partner of rank 2 */
    here_.on_job(job);
    opinion o = decide("application");
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(o.give->own.at(0), 2u);
}

TEST_F(AgentDecisionTest, NetworkPolicyShortensTheWay)
{
    flows_[0] = {{3, 1e6, 1}}; /* to a neighbour here */
    flows_[1] = {{4, 1e6, 1}}; /* to a node that is near the thief and far from us */
    flows_[2] = {{3, 1e6, 1}};
    ranks(4, 1, 3);
    links_ = {{kElsewhere, 20, 1000}};
    opinion o = decide("network");
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(o.give->own.at(0), 1u);
}

TEST_F(AgentDecisionTest, GroupsStayTogether)
{
    for (rank_id r = 0; r < 8; r++)
        flows_[r] = {{r ^ 1u, 1e6, 10}};
    groups_ = make_grouping("zc");
    for (const char *kind : {"zc", "matrix"}) {
        ranks(8, 0, 4);
        auto groups = make_grouping(kind);
        groups->job(kJob, 8);
        for (std::uint64_t t = 0; t < 30; t++) {
            std::vector<zcp_event_t> events;
            for (rank_id r = 0; r < 8; r++)
                events.push_back({r, r ^ 1u, 100'000, t * 300'000'000, 0, 0});
            groups->observe(kJob, events);
        }
        policy_ = make_policy("random");
        decision_ =
            make_balancing_decision(s_, here_, *network_, *groups, *policy_, past_, random_);
        opinion o =
            decision_->decide(21 * kSecond, thief_, links_,
                              [](const local_rank &, node_id, std::string &) { return true; });
        ASSERT_TRUE(o.give) << o.why;
        std::set<rank_id> ranks(o.give->own.begin(), o.give->own.end());
        EXPECT_EQ(ranks.size(), 4u);
        for (rank_id r : ranks)
            EXPECT_TRUE(ranks.contains(r ^ 1u)) << kind << ": rank " << r << " without its partner";
    }
}

/* Ranks that go together stand still once. */
TEST_F(AgentDecisionTest, RanksBelowZcHoldGoTogetherForThePriceOfOne)
{
    transparent_ = true;
    images_[7] = 1 << 10;
    ranks(9);
    opinion o = decide();
    ASSERT_TRUE(o.give) << o.why;
    EXPECT_EQ(o.give->own, (std::vector<rank_id>{7, 0, 1, 2, 3, 4})); /* the smallest first */
    EXPECT_NEAR(o.give->figures.cost_s,
                s_.spawn + static_cast<double>(o.give->bytes) / s_.bandwidth, 1e-9);
}

/* A group that is a little larger than the best number stays whole; who is elsewhere stays there.
 */
TEST_F(AgentDecisionTest, GroupsBelowZcHoldStayTogether)
{
    transparent_ = true;
    images_[0] = 1 << 10; /* it leads */
    ranks(8, 2, 5);       /* three would be best: 5 on 5, and 3 on 4 */
    auto groups = make_grouping("zc");
    groups->job(kJob, 10);
    for (std::uint64_t t = 0; t < 30; t++) {
        std::vector<zcp_event_t> events;
        for (rank_id a : {0u, 3u, 6u, 9u}) {
            for (rank_id b : {0u, 3u, 6u, 9u}) {
                if (a != b)
                    events.push_back({a, b, 100'000, t * 300'000'000, 0, 0});
            }
        }
        groups->observe(kJob, events);
    }
    policy_ = make_policy("random");
    decision_ = make_balancing_decision(s_, here_, *network_, *groups, *policy_, past_, random_);
    opinion o = decision_->decide(21 * kSecond, thief_, links_,
                                  [](const local_rank &, node_id, std::string &) { return true; });
    ASSERT_TRUE(o.give) << o.why;
    std::vector<rank_id> own = o.give->own;
    std::sort(own.begin(), own.end());
    EXPECT_EQ(own, (std::vector<rank_id>{0, 3, 6}));
    EXPECT_TRUE(o.give->transparent);
}

TEST_F(AgentDecisionTest, SecondThoughtsUseWhatTheTargetSaysNow)
{
    ranks(8);
    opinion o = decide();
    ASSERT_TRUE(o.give);
    load_digest busy = thief_.load;
    busy.demand = 30;
    busy.ranks = 1;
    EXPECT_FALSE(decision_->confirm(*o.give, busy));
    EXPECT_TRUE(decision_->confirm(*o.give, thief_.load));
}

/* 9 on 2 here; there 2 processors, too, twice as fast: 3 on 2 and 6 on 4. Paces are in units of a
 * processor of this node, whatever its speed. */
TEST_F(AgentDecisionTest, AFasterNodeTakesMore)
{
    for (float speed : {1.f, 3.f}) {
        speed_ = speed;
        thief_.load.cpus = 2;
        thief_.load.speed = 2 * speed;
        ranks(9);
        opinion o = decide();
        ASSERT_TRUE(o.give) << o.why;
        EXPECT_EQ(o.give->own.size(), 6u);
        EXPECT_DOUBLE_EQ(o.give->figures.before, 4.5);
        EXPECT_DOUBLE_EQ(o.give->figures.after, 1.5);
        EXPECT_NE(o.give->why.find("2.00 times as fast"), std::string::npos) << o.give->why;
        EXPECT_TRUE(decision_->confirm(*o.give, thief_.load));
    }
}

/* One that is four times as slow has no more to offer than a fourth of a processor. */
TEST_F(AgentDecisionTest, NothingGoesToANodeThatIsMuchSlower)
{
    thief_.load.cpus = 1;
    ranks(3);
    EXPECT_TRUE(decide().give);
    EXPECT_TRUE(decision_->worthwhile(thief_.load, here_.digest()));
    thief_.load.speed = 0.25;
    EXPECT_FALSE(decision_->worthwhile(thief_.load, here_.digest()));
    opinion o = decide();
    EXPECT_FALSE(o.give);
    EXPECT_NE(o.why.find("0.25 times as fast"), std::string::npos) << o.why;
}

/* What one node finds worthwhile to take the other must be willing to give. */
TEST_F(AgentDecisionTest, ThievesAndVictimsAgree)
{
    decide();
    random_source r(3);
    int both = 0;
    for (int i = 0; i < 2000; i++) {
        auto count = static_cast<rank_id>(1 + r.below(12));
        double cpus = 1 + static_cast<double>(r.below(8));
        std::destroy_at(&here_);
        std::construct_at(&here_, s_);
        ranks(count, 0, cpus, static_cast<double>(r.below(4)));
        thief_.load = {static_cast<float>(1 + r.below(8)),
                       static_cast<float>(r.below(20)),
                       1,
                       static_cast<std::uint32_t>(r.below(3)),
                       1 + static_cast<std::uint32_t>(r.below(16)),
                       std::uint64_t{1} << 33,
                       false};
        bool wanted = decision_->worthwhile(thief_.load, here_.digest());
        opinion o = decide();
        if (wanted) {
            EXPECT_TRUE(o.give) << o.why;
        }
        both += wanted;
    }
    EXPECT_GT(both, 100);
}

} // namespace
} // namespace zc::agent

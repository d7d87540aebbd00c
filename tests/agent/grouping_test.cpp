/* SPDX-License-Identifier: BSD-3-Clause */

/* What the agents feed the prediction engine, and what it can tell from that. */
#include <cmath>

#include <gtest/gtest.h>

#include "agent.h"
#include "rank_groups.h"
#include "thinning.h"

namespace zc::agent {
namespace {

constexpr job_id kJob = 5;
constexpr rank_id kRanks = 4;

/** Four ranks with two phases in turn: in the first 0 and 2 are partners, in the second 0 and 1. */
class alternating {
  public:
    alternating(const char *kind, double per_s, const pattern_settings &patterns = {})
        : groups_(make_grouping(kind, 0, patterns)), per_s_(per_s)
    {
        groups_->job(kJob, kRanks);
    }
    /** So long in one phase, in counted iterations whose times are not quite regular. */
    void phase(bool first, double seconds)
    {
        auto iterations = static_cast<long>(seconds * per_s_);
        for (long i = 0; i < iterations; i++) {
            now_s_ += (0.8 + 0.4 * random_.unit()) / per_s_;
            std::vector<zcp_event_t> events;
            for (rank_id r = 0; r < kRanks; r++)
                events.push_back({r, r ^ (first ? 2u : 1u), 1 << 16,
                                  static_cast<std::uint64_t>(now_s_ * 1e9), 0, 0});
            groups_->observe(kJob, events);
        }
    }
    rank_id partner_of_0() const { return groups_->around(kJob, 0, 2).at(1); }
    std::size_t with_0(std::uint32_t most = 2) const
    {
        return groups_->around(kJob, 0, most).size();
    }
    /** Of a job with one rank more, which sends nothing. */
    std::size_t with_idle() const { return groups_->around(kJob, kRanks, 2).size(); }
    void add_idle() { groups_->job(kJob, kRanks + 1); }

  private:
    std::unique_ptr<grouping> groups_;
    double per_s_;
    double now_s_ = 1;
    random_source random_{7};
};

class AgentPhasesTest : public testing::TestWithParam<double> {};

/* A rank that is moved now arrives in some two seconds, and stays. */
TEST_P(AgentPhasesTest, ForetellsPartnersOfTheNextPhaseAndTheMatrixDoesNot)
{
    for (const char *kind : {"zc", "matrix"}) {
        alternating job(kind, GetParam());
        for (int cycle = 0; cycle < 6; cycle++) {
            job.phase(true, 10);
            job.phase(false, 10);
        }
        job.phase(true, 5);
        EXPECT_EQ(job.partner_of_0(), 2u) << kind << " in the middle of the first phase";
        job.phase(true, 3.5); /* 1.5 s are left of it */
        EXPECT_EQ(job.partner_of_0(), kind == std::string("zc") ? 1u : 2u) << kind << " at its end";
    }
}

INSTANTIATE_TEST_SUITE_P(MessagesPerSecond, AgentPhasesTest, testing::Values(20, 200, 2000));

TEST(AgentGroupingOnceTest, LearnsAChangeThatWasNotToBeForetold)
{
    for (const char *kind : {"zc", "matrix"}) {
        alternating job(kind, 40);
        job.phase(true, 20.5);
        EXPECT_EQ(job.partner_of_0(), 2u) << kind;
        job.phase(false, 9);
        EXPECT_EQ(job.partner_of_0(), 1u) << kind;
    }
}

/* ---- the predictors of Singh & Graham ------------------------------------------- */

constexpr const char *kSeekPatterns[] = {"teiresias-basic", "teiresias-specific",
                                         "teiresias-levenshtein"};

TEST(AgentPatternsTest, ForetellThatAllGoesOn)
{
    for (const char *kind : kSeekPatterns) {
        alternating job(kind, 200);
        job.phase(true, 20);
        EXPECT_EQ(job.partner_of_0(), 2u) << kind;
    }
}

TEST(AgentPatternsTest, HistoryForetellsTheNextPhaseAndTheLatestSampleDoesNot)
{
    for (const char *kind : kSeekPatterns) {
        alternating job(kind, 1);
        for (int cycle = 0; cycle < 4; cycle++) {
            job.phase(true, 128); /* iterations of four messages: a sampling period */
            job.phase(false, 128);
        }
        job.phase(true, 128);
        EXPECT_EQ(job.partner_of_0(), kind == std::string("teiresias-basic") ? 2u : 1u) << kind;
    }
}

TEST(AgentPatternsTest, AreFoundAsTheSettingsSay)
{
    const auto found = [](const pattern_settings &patterns) {
        alternating job("teiresias-basic", 1, patterns);
        job.phase(true, 256);
        return job.with_0() == 2;
    };
    EXPECT_TRUE(found({}));
    EXPECT_TRUE(found({.support = 128}));
    EXPECT_FALSE(found({.support = 129})); /* occurrences in a sample */
    EXPECT_TRUE(found({.support = 129, .period = 1024}));
}

/* In each phase 0 and 1 have a partner of their own; a whole round is one pattern. */
TEST(AgentPatternsTest, AllThatAreInThePatternGoTogetherIfTheSettingsSaySo)
{
    pattern_settings all;
    all.group = pattern_settings::membership::all;
    for (const char *kind : kSeekPatterns) {
        alternating near(kind, 1), whole(kind, 1, all), with_idle(kind, 1, all);
        with_idle.add_idle();
        for (alternating *job : {&near, &whole, &with_idle})
            job->phase(true, 256);
        EXPECT_EQ(near.with_0(kRanks), 2u) << kind;
        EXPECT_EQ(whole.with_0(kRanks), kRanks) << kind;
        EXPECT_EQ(whole.with_0(3), kRanks) << kind << ": which of them can go is not known there";
        EXPECT_EQ(whole.partner_of_0(), 2u) << kind;
        EXPECT_EQ(with_idle.with_0(kRanks), kRanks) << kind;
        EXPECT_EQ(with_idle.with_idle(), 1u) << kind;
    }
}

/* One sampling period is over, and half of one of the other phase has come. */
TEST(AgentPatternsTest, AreOfThePeriodThatTheSettingsCallTheMostRecent)
{
    for (const auto &[recent, partner] :
         {std::pair{ZCP_GROUPS_RECENT_OVER, 2u}, {ZCP_GROUPS_RECENT_CURRENT, 1u}}) {
        pattern_settings patterns;
        patterns.recent = recent;
        alternating job("teiresias-basic", 1, patterns);
        job.phase(true, 128);
        job.phase(false, 64);
        EXPECT_EQ(job.partner_of_0(), partner);
    }
}

TEST(AgentPatternsTest, HaveTheMemoryTheyNeedWhateverTheSettings)
{
    for (const char *kind : kSeekPatterns) {
        for (const rank_id ranks : {2u, 64u, 4096u}) {
            auto groups = make_grouping(kind, 0, {32, 32, 2, kLongestPeriod, true});
            groups->job(kJob, ranks);
            std::vector<zcp_event_t> events(2 * kLongestPeriod);
            for (std::size_t i = 0; i < events.size(); i++)
                events[i] = {
                    static_cast<rank_id>(i % 2), static_cast<rank_id>(1 - i % 2), 100, i, 0, 0};
            groups->observe(kJob, events);
            EXPECT_EQ(groups->around(kJob, 0, 2).size(), 2u) << kind << ", ranks " << ranks;
        }
    }
}

/* ---- what goes with a rank that moves -------------------------------------------- */

std::vector<zcp_event_t> messages(rank_id src, rank_id dst, std::uint64_t from_ms,
                                  std::uint64_t to_ms)
{
    std::vector<zcp_event_t> out;
    for (std::uint64_t ms = from_ms; ms < to_ms; ms += 50)
        out.push_back({src, dst, 1000, ms * 1'000'000, 0, 0});
    return out;
}

class AgentPastTest : public testing::TestWithParam<const char *> {
  protected:
    AgentPastTest() : from_(make_grouping(GetParam())), to_(make_grouping(GetParam()))
    {
        from_->job(kJob, kRanks);
    }
    std::vector<rank_id> with(const grouping &g, rank_id rank) { return g.around(kJob, rank, 2); }

    std::unique_ptr<grouping> from_;
    std::unique_ptr<grouping> to_;
};

TEST_P(AgentPastTest, TheNewHomeKnowsWhatTheOldOneKnew)
{
    from_->observe(kJob, messages(0, 2, 0, 30'000));
    to_->job(kJob, kRanks);
    EXPECT_EQ(with(*to_, 0).size(), 1u);
    const std::vector<rank_id> moved{0};
    to_->inherit(kJob, from_->past(kJob, moved, 1500));
    EXPECT_EQ(with(*to_, 0), (std::vector<rank_id>{0, 2}));
}

TEST_P(AgentPastTest, IsKeptUntilTheJobIsSeen)
{
    from_->observe(kJob, messages(0, 2, 0, 30'000));
    const std::vector<rank_id> moved{0};
    to_->inherit(kJob, from_->past(kJob, moved, 1500));
    to_->job(kJob, kRanks);
    EXPECT_EQ(with(*to_, 0), (std::vector<rank_id>{0, 2}));
}

TEST_P(AgentPastTest, WhatIsKnownOfOthersStays)
{
    from_->observe(kJob, messages(0, 2, 0, 30'000));
    to_->job(kJob, kRanks);
    to_->observe(kJob, messages(3, 1, 0, 30'000));
    const std::vector<rank_id> moved{0};
    to_->inherit(kJob, from_->past(kJob, moved, 1500));
    EXPECT_EQ(with(*to_, 0), (std::vector<rank_id>{0, 2}));
    EXPECT_EQ(with(*to_, 3), (std::vector<rank_id>{3, 1}));
}

TEST_P(AgentPastTest, TellsTheLatestOfThoseThatMoveOnly)
{
    auto all = messages(0, 2, 0, 4000);
    const auto others = messages(1, 3, 4000, 6000);
    all.insert(all.end(), others.begin(), others.end());
    from_->observe(kJob, all);
    const std::vector<rank_id> moved{0};
    const auto told = from_->past(kJob, moved, 10);
    ASSERT_EQ(told.size(), 10u);
    for (std::size_t i = 0; i < told.size(); i++) {
        EXPECT_EQ(told[i].src, 0u);
        EXPECT_EQ(told[i].time_ns, (3500 + 50 * i) * 1'000'000);
    }
    EXPECT_TRUE(from_->past(kJob + 1, moved, 10).empty());
}

/* It goes, and comes back with what it took along. */
TEST_P(AgentPastTest, NothingIsCountedTwice)
{
    from_->observe(kJob, messages(0, 2, 0, 4000));
    to_->job(kJob, kRanks);
    const std::vector<rank_id> moved{0};
    const auto there = from_->past(kJob, moved, 1500);
    to_->inherit(kJob, there);
    to_->observe(kJob, messages(0, 1, 4000, 5000));
    from_->inherit(kJob, to_->past(kJob, moved, 1500));
    EXPECT_EQ(from_->past(kJob, moved, 1500).size(), there.size() + 20);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AgentPastTest,
                         testing::Values("zc", "matrix", "teiresias-basic", "teiresias-specific",
                                         "teiresias-levenshtein"));

/* Memory for each job that no engine of so many ranks fits in. */
TEST(AgentGroupingTest, AJobWhoseGroupsCannotBeLearnedIsNamed)
{
    auto groups = make_grouping("zc", 4096);
    EXPECT_EQ(groups->job(kJob, 1024), ENOSPC);
    EXPECT_EQ(groups->around(kJob, 0, 4), std::vector<rank_id>{0});
    EXPECT_EQ(groups->job(kJob + 1, 0), EINVAL);
    EXPECT_EQ(make_grouping("zc")->job(kJob, 1024), 0);
    EXPECT_EQ(make_grouping("single", 1)->job(kJob, 1024), 0);
}

TEST(AgentGroupingTest, TheAgentKnowsWhichJobsHaveNoGroups)
{
    settings s;
    s.grouping_bytes = 4096;
    agent a(s, {}, 1, 1);
    job_view job;
    job.job = kJob;
    job.placement.assign(1024, kNoNode);
    a.on_job(job);
    a.on_job(job);
    ASSERT_EQ(a.without_groups().size(), 1u);
    EXPECT_EQ(a.without_groups().at(kJob), ENOSPC);
    a.on_job_gone(kJob);
    EXPECT_TRUE(a.without_groups().empty());
}

TEST(AgentThinningTest, SlowSendersAreToldAsTheyAre)
{
    thinning t;
    for (std::uint64_t i = 0; i < 1000; i++) {
        zcp_event_t e{3, 4, 77, i * 100'000'000, 0, 0};
        ASSERT_TRUE(t.pass(e));
        ASSERT_EQ(e.bytes, 77u);
    }
}

TEST(AgentThinningTest, FastSendersAreToldSeldomAndNoByteIsLost)
{
    thinning t;
    std::uint64_t told = 0;
    std::uint64_t bytes = 0;
    std::uint64_t late = 0;
    constexpr std::uint64_t kMessages = 200'000; /* in 20 s */
    for (std::uint64_t i = 0; i < kMessages; i++) {
        zcp_event_t e{3, static_cast<std::uint32_t>(4 + i % 3), 100, i * 100'000, 0, 0};
        if (!t.pass(e))
            continue;
        told++;
        bytes += e.bytes;
        late += i > kMessages / 2;
    }
    EXPECT_LT(told, 2000u);
    EXPECT_GT(late, 100u); /* of the last 10 s */
    EXPECT_LT(late, 400u);
    EXPECT_GT(bytes, kMessages * 100 * 98 / 100); /* but for those not yet told */
    EXPECT_LE(bytes, kMessages * 100);
}

TEST(AgentThinningTest, ARareReceiverOfAFastSenderIsHeardOf)
{
    thinning t;
    bool rare = false;
    for (std::uint64_t i = 0; i < 1'000'000; i++) {
        zcp_event_t often{3, 4, 100, i * 100'000, 0, 0};
        t.pass(often);
        if (i % 300'000 == 299'999) {
            zcp_event_t seldom{3, 5, 1 << 30, i * 100'000, 0, 0};
            rare = t.pass(seldom) || rare;
        }
    }
    EXPECT_TRUE(rare);
}

TEST(AgentThinningTest, AfterAStormAllIsToldAgain)
{
    thinning t;
    std::uint64_t now = 0;
    for (int i = 0; i < 100'000; i++) {
        zcp_event_t e{3, 4, 1, now += 100'000, 0, 0};
        t.pass(e);
    }
    for (int i = 0; i < 2000; i++) {
        zcp_event_t e{3, 4, 1, now += 1'000'000'000, 0, 0};
        t.pass(e);
    }
    for (int i = 0; i < 100; i++) {
        zcp_event_t e{3, 4, 1, now += 1'000'000'000, 0, 0};
        EXPECT_TRUE(t.pass(e));
    }
}

} // namespace
} // namespace zc::agent

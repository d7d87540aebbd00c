/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <chrono>

#include "engine.h"

using namespace zcp_test;

namespace {

/* Four receives of one envelope into four buffers, with others between, long
 * enough for every predictor to have learned them. */
class LandingTest : public testing::TestWithParam<zcp_kind_t> {
  protected:
    LandingTest() : engine_(GetParam())
    {
        for (uint64_t i = 0; i < 4; i++) {
            period_.push_back(to(envelope(1), buffer(i)));
            period_.push_back(to(envelope(2, 1, 100 + i), 0x90000 + i));
        }
        engine_.receive(period_, 100);
    }

    static uint64_t buffer(uint64_t i) { return 0x10010 + (i % 4) * 0x20000; }

    engine engine_;
    std::vector<zcp_receive_t> period_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, LandingTest, testing::Values(ZCP_DEFAULT, ZCP_GRAPH, ZCP_DPD),
                         kind_label);

TEST_P(LandingTest, ConsecutiveMessagesGetConsecutiveBuffers)
{
    for (uint64_t i = 0; i < 4; i++)
        EXPECT_EQ(buffer(i), engine_.arrive(envelope(1)).addr) << i;
}

TEST_P(LandingTest, EachPredictedReceiveIsClaimedOnce)
{
    std::vector<uint32_t> ahead;
    for (int i = 0; i < 8; i++)
        ahead.push_back(engine_.arrive(envelope(1)).ahead);
    EXPECT_TRUE(std::is_sorted(ahead.begin(), ahead.end()));
    EXPECT_EQ(ahead.end(), std::adjacent_find(ahead.begin(), ahead.end()));
}

TEST_P(LandingTest, ClaimsOfOneEnvelopeDoNotTouchAnother)
{
    engine_.arrive(envelope(1));
    engine_.arrive(envelope(1));
    EXPECT_EQ(0x90000u, engine_.arrive(envelope(2, 1, 100)).addr);
}

TEST_P(LandingTest, NothingLiesBeyondTheHorizon)
{
    const size_t reachable = GetParam() == ZCP_DEFAULT ? 16 : 8; /* of the envelope; of all */
    for (size_t i = 0; i < reachable; i++)
        EXPECT_NE(0u, engine_.arrive(envelope(1)).ahead) << i;
    EXPECT_EQ(0u, engine_.arrive(envelope(1)).ahead);
}

TEST_P(LandingTest, ClaimsMoveWithTheStream)
{
    const zcp_landing_t first = engine_.arrive(envelope(1));
    engine_.arrive(envelope(1));
    engine_.settle(first, buffer(0));
    engine_.receive(period_[1]);
    /* One is settled, one is not: the next is again the second to come. */
    EXPECT_EQ(buffer(2), engine_.arrive(envelope(1)).addr);
}

TEST_P(LandingTest, SettlesInAnyOrder)
{
    std::vector<zcp_landing_t> open;
    for (int i = 0; i < 3; i++)
        open.push_back(engine_.arrive(envelope(1)));
    engine_.settle(open[2], buffer(0));
    engine_.settle(open[0], buffer(1));
    engine_.settle(open[1], buffer(2));
    EXPECT_EQ(3u, engine_.stats().settled);
    EXPECT_EQ(803u, engine_.stats().receives);
}

TEST_P(LandingTest, ACancelledClaimIsFreeAgain)
{
    engine_.cancel(engine_.arrive(envelope(1)));
    EXPECT_EQ(buffer(0), engine_.arrive(envelope(1)).addr);
    EXPECT_EQ(1u, engine_.stats().cancelled);
    EXPECT_EQ(0u, engine_.stats().settled);
}

TEST_P(LandingTest, CountsHitsCongruentMissesAndMisses)
{
    engine_.settle(engine_.arrive(envelope(1)), buffer(0));
    EXPECT_EQ(1u, engine_.stats().hits);

    const zcp_landing_t second = engine_.arrive(envelope(2, 1, 100));
    engine_.settle(second, second.addr + 0x5000);
    EXPECT_EQ(1u, engine_.stats().misses);
    EXPECT_EQ(1u, engine_.stats().congruent);

    const zcp_landing_t third = engine_.arrive(envelope(77));
    engine_.settle(third, 0x1000);
    EXPECT_EQ(1u, engine_.stats().unknown);
}

TEST_P(LandingTest, ASettledClaimCannotBeSettledAgain)
{
    const zcp_landing_t landing = engine_.arrive(envelope(1));
    engine_.settle(landing, buffer(0));
    const zcp_landing_t reuse = engine_.arrive(envelope(1)); /* takes its place in the table */
    engine_.settle(landing, buffer(0));
    engine_.cancel(landing);
    EXPECT_EQ(1u, engine_.stats().settled);
    EXPECT_EQ(0u, engine_.stats().cancelled);
    engine_.settle(reuse, buffer(1));
    EXPECT_EQ(2u, engine_.stats().hits);
}

TEST_P(LandingTest, IgnoresClaimsItNeverGave)
{
    for (const zcp_claim_t made_up : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
        zcp_settle(engine_.get(), made_up, 0x1000);
        zcp_cancel(engine_.get(), made_up);
    }
    EXPECT_EQ(0u, engine_.stats().settled);
    EXPECT_EQ(0u, engine_.stats().cancelled);
    EXPECT_EQ(800u, engine_.stats().receives);
}

TEST(LandingLimitTest, ShortHorizonIsKept)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.horizon = 2;
    engine engine(params);
    engine.receive(envelope(1), 0x1000);
    EXPECT_EQ(1u, engine.arrive(envelope(1)).ahead);
    EXPECT_EQ(2u, engine.arrive(envelope(1)).ahead);
    EXPECT_EQ(0u, engine.arrive(envelope(1)).ahead);
}

zcp_params_t silent_below(float confidence)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.min_confidence = confidence;
    return params;
}

TEST(LandingLimitTest, HighMinimumConfidenceSilencesTheUnproven)
{
    engine engine(silent_below(0.9f));
    engine.receive(envelope(1), 0x1000);
    EXPECT_EQ(0u, engine.arrive(envelope(1)).ahead);
    engine.receive({to(envelope(2), 0x2000)}, 30);
    EXPECT_EQ(0x2000u, engine.arrive(envelope(2)).addr);
}

TEST(LandingLimitTest, AnswersWithheldAreScoredAsUnknown)
{
    engine engine(silent_below(1.0f));
    engine.receive(envelope(1), 0x1000);
    engine.settle(engine.arrive(envelope(1)), 0x1000);
    EXPECT_EQ(1u, engine.stats().unknown);
    EXPECT_EQ(0u, engine.stats().hits);
}

/* A flood: everything sent before the first receive is posted. */
TEST(LandingLimitTest, AFloodOfOneEnvelopeSettlesCompletely)
{
    engine engine;
    engine.receive({to(envelope(1), 0xa000), to(envelope(1), 0xb000)}, 10);
    std::vector<zcp_landing_t> open;
    for (int i = 0; i < 4000; i++)
        open.push_back(engine.arrive(envelope(1)));
    EXPECT_EQ(0xa000u, open[0].addr);
    EXPECT_EQ(0xb000u, open[15].addr);
    EXPECT_EQ(0u, open[16].ahead);
    for (size_t i = 0; i < open.size(); i++)
        engine.settle(open[i], i % 2 ? 0xb000 : 0xa000);
    EXPECT_EQ(4000u, engine.stats().settled);
    EXPECT_EQ(4020u, engine.stats().receives); /* all of them taught something */
    EXPECT_EQ(16u, engine.stats().hits);
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1)).addr);
}

TEST(LandingLimitTest, TheLastOfAFloodCostsNoMoreThanTheFirst)
{
    using clock = std::chrono::steady_clock;
    engine engine;
    engine.receive({to(envelope(1), 0xa000)}, 10);
    const auto time_of = [&] {
        const auto start = clock::now();
        for (int i = 0; i < 400; i++)
            engine.arrive(envelope(1));
        return std::chrono::duration<double>(clock::now() - start).count();
    };
    const double first = time_of();
    for (int i = 0; i < 4; i++)
        time_of();
    /* The best of several, on a machine that may stall; a cost that grew with
     * the flood would be five times and more. */
    double last = time_of();
    for (int i = 0; i < 4; i++)
        last = std::min(last, time_of());
    EXPECT_LT(last, 3 * first + 0.0005);
}

TEST(LandingLimitTest, MessagesBeyondTheBoundAreUnknownButValid)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.max_bytes = 64 << 10;
    engine engine(params);
    engine.receive(envelope(1), 0x1000);
    std::vector<zcp_landing_t> open;
    for (int i = 0; i < 100000; i++)
        open.push_back(engine.arrive(envelope(i % 5000)));
    for (size_t i = 0; i < open.size(); i += 2)
        engine.settle(open[i], 0x1000);
    for (size_t i = 1; i < open.size(); i += 2)
        engine.cancel(open[i]);
    const zcp_stats_t stats = engine.stats();
    EXPECT_EQ(50000u, stats.settled);
    EXPECT_EQ(50000u, stats.cancelled);
    EXPECT_EQ(stats.settled, stats.hits + stats.misses + stats.unknown);
    EXPECT_LE(stats.bytes, params.max_bytes);
    /* All room is free again. */
    EXPECT_EQ(0x1000u, engine.arrive(envelope(2)).addr);
}

} // namespace

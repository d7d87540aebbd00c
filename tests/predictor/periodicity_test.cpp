/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

using namespace zcp_test;

namespace {

std::vector<zcp_receive_t> cycle(uint32_t length)
{
    std::vector<zcp_receive_t> period;
    for (uint32_t i = 0; i < length; i++)
        period.push_back(to(envelope(static_cast<int32_t>(i)), 0x1000u * (i + 1)));
    return period;
}

zcp_params_t with_window(uint32_t window)
{
    zcp_params_t params = params_of(ZCP_DPD);
    params.dpd_window = window;
    return params;
}

TEST(PeriodicityTest, NeedsAWholeWindowOfMatches)
{
    engine engine(with_window(8));
    const auto stream = repeated(cycle(3), 11);
    for (size_t i = 0; i < 10; i++)
        engine.receive(stream[i]);
    EXPECT_TRUE(engine.next(1).empty()); /* 7 matches at lag 3 */
    engine.receive(stream[10]);
    EXPECT_EQ(1u, engine.next(1).size());
}

TEST(PeriodicityTest, PredictsAWholeNumberOfPeriodsBack)
{
    engine engine(with_window(8));
    const auto period = cycle(3);
    engine.receive(period, 6);
    const auto coming = engine.next(10);
    ASSERT_EQ(10u, coming.size());
    for (size_t k = 0; k < coming.size(); k++)
        EXPECT_TRUE(same(period[k % 3], coming[k])) << k;
}

TEST(PeriodicityTest, TakesTheSmallestPeriod)
{
    engine engine(with_window(8));
    engine.receive(cycle(1), 12);
    engine.receive(cycle(2), 12);
    const auto coming = engine.next(4);
    EXPECT_FALSE(same(coming[0], coming[1]));
    EXPECT_TRUE(same(coming[0], coming[2]));
}

TEST(PeriodicityTest, FindsPeriodsUpToTheWindow)
{
    for (const uint32_t length : {64u, 65u}) {
        engine engine(with_window(64));
        engine.receive(cycle(length), 4);
        EXPECT_EQ(length <= 64, !engine.next(1).empty()) << length;
    }
}

TEST(PeriodicityTest, WindowOfOneIsTheLeast)
{
    engine engine(with_window(1));
    engine.receive(cycle(1), 2);
    EXPECT_EQ(1u, engine.next(1).size());
}

TEST(PeriodicityTest, IsPerfectOnNestedLoopsOnceFound)
{
    engine engine(ZCP_DPD);
    engine.receive(nested_period(), 4); /* 126 + 256 samples to be sure */
    EXPECT_EQ(1.0, accuracy(engine, repeated(nested_period(), 126 * 4), 1));
    EXPECT_EQ(10u, engine.next(10).size());
}

TEST(PeriodicityTest, HoldsThePeriodOverAGlitch)
{
    engine engine(with_window(16));
    engine.receive(cycle(3), 10);
    engine.receive(envelope(99), 0x99000); /* in place of the first of the cycle */
    EXPECT_TRUE(same(cycle(3)[1], engine.next(1)[0]));
}

TEST(PeriodicityTest, LearnsANewPhase)
{
    engine engine(with_window(16));
    engine.receive(cycle(3), 10);
    std::vector<zcp_receive_t> phase = cycle(5);
    for (zcp_receive_t &r : phase)
        r.addr += 0x100000;
    engine.receive(phase, 5);
    EXPECT_EQ(1.0, accuracy(engine, repeated(phase, 50), 1));
}

TEST(PeriodicityTest, IsSilentOnNoise)
{
    engine engine(ZCP_DPD);
    for (const zcp_receive_t &r : noise(5000)) {
        engine.receive(r);
        ASSERT_TRUE(engine.next(1).empty());
    }
}

} // namespace

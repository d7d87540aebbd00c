/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "rank_time.h"

namespace zc::agent {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

/** What @readings seconds of a rank show, each with these parts of a second. */
double shown(double ran, double waited, double mpi, double iterations, int readings = 30)
{
    rank_work work;
    for (int i = 0; i <= readings; i++) {
        const auto so_far = [&](double each) {
            return static_cast<std::uint64_t>(each * i * static_cast<double>(kSecondNs));
        };
        work.read(so_far(1), {so_far(ran), so_far(waited)}, so_far(mpi),
                  static_cast<std::uint64_t>(iterations * i), true);
    }
    return work.seconds();
}

TEST(AgentRankTimeTest, ARankAloneOnAProcessor)
{
    EXPECT_NEAR(shown(1, 0, 0.5, 50), 0.010, 1e-6);
}

/* In MPI, or outside? */
TEST(AgentRankTimeTest, ARankThatWaitsForAProcessorShowsNothing)
{
    EXPECT_EQ(shown(0.5, 0.5, 0.5, 25), 0);
    EXPECT_GT(shown(0.98, 0.02, 0.5, 50), 0);
}

TEST(AgentRankTimeTest, WhatItHasShownBeforeItHadToWaitIsKept)
{
    rank_work work;
    std::uint64_t now = 0, ran = 0, waited = 0, iterations = 0;
    for (int i = 0; i < 20; i++) {
        const bool crowded = i >= 10;
        now += kSecondNs;
        ran += kSecondNs / (crowded ? 4 : 1);
        waited += crowded ? kSecondNs * 3 / 4 : 0;
        iterations += crowded ? 25 : 100;
        work.read(now, {ran, waited}, 0, iterations, true);
    }
    EXPECT_NEAR(work.seconds(), 0.010, 1e-6);
}

TEST(AgentRankTimeTest, SleepingInMpiIsNoWork)
{
    EXPECT_NEAR(shown(0.5, 0, 0.5, 50), 0.010, 1e-6);
}

/* Outside MPI, as for a file. */
TEST(AgentRankTimeTest, SleepingElsewhereIsNoWork)
{
    EXPECT_NEAR(shown(0.2, 0, 0, 20), 0.010, 1e-6);
}

TEST(AgentRankTimeTest, LittleIsNotKnown)
{
    EXPECT_EQ(shown(1, 0, 0, 50, 2), 0);      /* two readings */
    EXPECT_EQ(shown(1, 0, 0, 0.01), 0);       /* no iteration */
    EXPECT_EQ(shown(0.00005, 0, 0, 1000), 0); /* hardly any work */
    EXPECT_EQ(shown(0, 1, 0, 10), 0);
}

TEST(AgentRankTimeTest, ReadingsThatDoNotCountAreLeftOut)
{
    rank_work work;
    std::uint64_t now = 0, ran = 0, iterations = 0;
    for (int i = 0; i < 20; i++) {
        const bool counts = i % 2 == 0;
        now += kSecondNs;
        ran += counts ? kSecondNs / 10 : kSecondNs; /* while the job is reconfigured */
        iterations += counts ? 10 : 0;
        work.read(now, {ran, 0}, 0, iterations, counts);
    }
    EXPECT_NEAR(work.seconds(), 0.010, 1e-6);
}

} // namespace
} // namespace zc::agent

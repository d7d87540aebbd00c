/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "processor_speed.h"

namespace zc::agent {
namespace {

/** Runs that take @seconds, and how many there were. */
struct runs {
    double seconds = 1;
    int made = 0;
    std::function<double()> counted()
    {
        return [this] {
            made++;
            return seconds;
        };
    }
};

TEST(AgentProcessorSpeedTest, TwiceAsFastIsTwiceTheSpeed)
{
    runs one{1e-4}, other{5e-5};
    processor_speed slow(one.counted()), fast(other.counted());
    EXPECT_NEAR(fast.at(0) / slow.at(0), 2, 0.11); /* in steps */
}

TEST(AgentProcessorSpeedTest, SmallDifferencesAreNone)
{
    runs one{1.00e-4}, other{1.02e-4};
    EXPECT_EQ(processor_speed(one.counted()).at(0), processor_speed(other.counted()).at(0));
}

TEST(AgentProcessorSpeedTest, IsMeasuredOnceAMinute)
{
    runs some{1e-4};
    processor_speed it(some.counted());
    it.at(0);
    const int at_first = some.made;
    for (int s = 1; s < 60; s++)
        it.at(s * kSecond);
    EXPECT_EQ(some.made, at_first);
    it.at(60 * kSecond);
    EXPECT_GT(some.made, at_first);
}

/* As when another process shares the core; what lasts is believed. */
TEST(AgentProcessorSpeedTest, ASlowMomentIsForgottenAndASlowProcessorIsNot)
{
    runs some{1e-4};
    processor_speed it(some.counted());
    const double whole = it.at(0);
    some.seconds = 3e-4;
    EXPECT_EQ(it.at(60 * kSecond), whole);
    for (int s = 120; s <= 540; s += 60)
        it.at(s * kSecond);
    EXPECT_LT(it.at(661 * kSecond), whole / 2);
    some.seconds = 1e-4;
    EXPECT_EQ(it.at(721 * kSecond), whole);
}

/* On this machine, beside whatever runs: how exact that is, the benchmark tells. */
TEST(AgentProcessorSpeedTest, ARealProcessorHasASpeed)
{
    processor_speed real;
    const double speed = real.at(0);
    EXPECT_GT(speed, 0.01);
    EXPECT_LT(speed, 100);
    EXPECT_EQ(real.at(kSecond), speed);
}

} // namespace
} // namespace zc::agent

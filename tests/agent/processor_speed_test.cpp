/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "processor_speed.h"

namespace zc::agent {
namespace {

/** Runs that take @seconds, and how many there were; so much longer for the first @disturbed waits,
 *  as when the other thread of the core is busy. */
struct runs {
    double seconds = 1;
    int made = 0;
    int disturbed = 0;
    processor_speed measured()
    {
        return processor_speed(
            [this] {
                made++;
                return disturbed > 0 ? 1.8 * seconds : seconds;
            },
            [this] { disturbed--; });
    }
};

TEST(AgentProcessorSpeedTest, TwiceAsFastIsTwiceTheSpeed)
{
    runs one{1e-4}, other{5e-5};
    processor_speed slow = one.measured(), fast = other.measured();
    EXPECT_NEAR(fast.at(0) / slow.at(0), 2, 0.11); /* in steps */
}

TEST(AgentProcessorSpeedTest, SmallDifferencesAreNone)
{
    runs one{1.00e-4}, other{1.02e-4};
    EXPECT_EQ(one.measured().at(0), other.measured().at(0));
}

TEST(AgentProcessorSpeedTest, ACoreSharedForATimeIsNoSlowProcessor)
{
    runs quiet{1e-4}, shared{1e-4};
    shared.disturbed = 20;
    EXPECT_EQ(quiet.measured().at(0), shared.measured().at(0));
}

TEST(AgentProcessorSpeedTest, ACoreSharedAtTheBeginningIsSoonNoSlowProcessor)
{
    runs some{1e-4};
    processor_speed it = some.measured();
    const double whole = it.at(0);
    runs shared{1.8e-4};
    processor_speed other = shared.measured();
    EXPECT_LT(other.at(0), whole / 1.5);
    shared.seconds = 1e-4;
    EXPECT_EQ(other.at(kSecond), whole);
}

TEST(AgentProcessorSpeedTest, ASecondCostsLittle)
{
    runs some{1e-4};
    processor_speed it = some.measured();
    it.at(0);
    const int at_first = some.made;
    for (int s = 1; s <= 60; s++)
        it.at(s * kSecond);
    EXPECT_EQ(some.made, at_first + 60 * 4);
}

/* As when another process shares the core; what lasts is believed. */
TEST(AgentProcessorSpeedTest, ASlowMomentIsForgottenAndASlowProcessorIsNot)
{
    runs some{1e-4};
    processor_speed it = some.measured();
    const double whole = it.at(0);
    some.seconds = 3e-4;
    for (int s = 1; s <= 600; s++)
        EXPECT_EQ(it.at(s * kSecond), whole);
    EXPECT_LT(it.at(661 * kSecond), whole / 2);
    some.seconds = 1e-4;
    EXPECT_EQ(it.at(662 * kSecond), whole);
}

/* On this machine, beside whatever runs: how exact that is, the benchmark tells. */
TEST(AgentProcessorSpeedTest, ARealProcessorHasASpeed)
{
    processor_speed real;
    const double speed = real.at(0);
    EXPECT_GT(speed, 0.01);
    EXPECT_LT(speed, 100);
    EXPECT_GE(real.at(kSecond), speed);
}

} // namespace
} // namespace zc::agent

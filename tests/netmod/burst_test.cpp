/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <gtest/gtest.h>

extern "C" {
#include "zc_burst.h"
}

namespace {

constexpr uint64_t kPrompt = 1000, kLate = 1'000'000;

struct Burst : testing::Test {
    MPIDI_ZC_burst_t burst;

    Burst() { MPIDI_ZC_burst_init(&burst, false); }
    void over(unsigned times, unsigned followers, uint64_t ns)
    {
        for (unsigned i = 0; i < times; ++i)
            MPIDI_ZC_burst_over(&burst, followers, ns);
    }
    bool may_wait() const { return MPIDI_ZC_burst_may_wait(&burst); }
    /** Bursts that must be seen before messages wait. */
    unsigned watched()
    {
        unsigned bursts = 0;
        for (; !may_wait(); ++bursts)
            over(1, 10, kPrompt);
        return bursts;
    }
};

TEST_F(Burst, IsWatchedFirst)
{
    EXPECT_FALSE(may_wait());
    EXPECT_EQ(watched(), unsigned{MPIDI_ZC_BURST_WATCH_MIN});
}

TEST_F(Burst, OneThatIsNotPromptBeginsTheWatchAnew)
{
    over(MPIDI_ZC_BURST_WATCH_MIN - 1, 10, kPrompt);
    over(1, 10, kLate);
    EXPECT_EQ(watched(), unsigned{MPIDI_ZC_BURST_WATCH_MIN});
}

TEST_F(Burst, AlternatingWithComputationNeverWaits)
{
    for (int i = 0; i < 100'000; ++i) {
        over(1, 10, i % 2 ? kLate : kPrompt);
        ASSERT_FALSE(may_wait()) << i;
    }
}

TEST_F(Burst, OneFollowerAloneDoesNotPay)
{
    over(1000, 1, kPrompt);
    EXPECT_FALSE(may_wait());
    watched();
    over(1, 1, kPrompt);
    EXPECT_FALSE(may_wait());
}

TEST_F(Burst, DisappointmentsMakeItCautious)
{
    unsigned expected = MPIDI_ZC_BURST_WATCH_MIN;
    watched();
    for (int i = 0; i < 30; ++i) {
        over(1, 10, kLate);
        EXPECT_EQ(watched(), expected);
        expected = std::min(2 * expected, unsigned{MPIDI_ZC_BURST_WATCH_MAX});
    }
    EXPECT_EQ(expected, unsigned{MPIDI_ZC_BURST_WATCH_MAX});
}

TEST_F(Burst, IfItMustItAlwaysWaits)
{
    MPIDI_ZC_burst_init(&burst, true);
    for (unsigned i = 0; i < 3 * MPIDI_ZC_BURST_FORGET; ++i) {
        ASSERT_TRUE(may_wait());
        over(1, 1 + i % 3, i < 2 * MPIDI_ZC_BURST_FORGET ? kPrompt : kLate);
    }
}

TEST_F(Burst, ALongTimeWithoutOneIsForgiven)
{
    watched();
    for (int i = 0; i < 5; ++i) {
        over(1, 10, kLate);
        watched();
    }
    over(MPIDI_ZC_BURST_FORGET, 10, kPrompt);
    over(1, 10, kLate);
    EXPECT_EQ(watched(), unsigned{MPIDI_ZC_BURST_WATCH_MIN});
}

} // namespace

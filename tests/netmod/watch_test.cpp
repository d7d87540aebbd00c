/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

extern "C" {
#include "zc_watch.h"
}

namespace {

constexpr auto kInside = MPIDI_ZC_LOOK_INSIDE;
constexpr auto kPassed = MPIDI_ZC_LOOK_PASSED;
constexpr auto kAway = MPIDI_ZC_LOOK_AWAY;

class Watch : public testing::Test {
  protected:
    Watch() { MPIDI_ZC_watch_begin(&watch); }

    void saw(MPIDI_ZC_look_t look, bool timer = false)
    {
        MPIDI_ZC_watch_saw(&watch, look, timer, shared);
        slept_ns += watch.sleep_ns;
        ++looks;
    }

    MPIDI_ZC_watch_t watch = {};
    bool shared = true;
    long slept_ns = 0;
    int looks = 0;
};

TEST_F(Watch, SpareLooksLessOftenWhileTheApplicationIsInside)
{
    shared = false;
    for (long expected = 2 * MPIDI_ZC_WATCH_MIN_NS; expected < MPIDI_ZC_WATCH_MAX_NS;
         expected *= 2) {
        saw(kInside);
        EXPECT_EQ(watch.sleep_ns, expected);
        EXPECT_EQ(watch.timer_accepted, expected >= MPIDI_ZC_WATCH_FAR_NS);
    }
    saw(kInside);
    saw(kInside);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_MAX_NS);
    EXPECT_FALSE(watch.timer_wanted);
}

TEST_F(Watch, SpareLooksOftenOutside)
{
    shared = false;
    saw(kInside, true);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_MAX_NS);
    saw(kPassed);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_MIN_NS);
    saw(kAway);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_MIN_NS);
}

TEST_F(Watch, SharedAsksTheApplicationToSetTheTimer)
{
    saw(kInside);
    EXPECT_TRUE(watch.timer_accepted);
    EXPECT_TRUE(watch.timer_wanted);
    saw(kAway, true);
    EXPECT_TRUE(watch.timer_accepted);
    EXPECT_FALSE(watch.timer_wanted) << "every call would set it";
}

TEST_F(Watch, SharedMakesSureOnce)
{
    saw(kPassed);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_SURE_NS);
    EXPECT_FALSE(watch.timer_accepted);
    saw(kPassed);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_SHARED_NS);
    EXPECT_TRUE(watch.timer_accepted);
    saw(kPassed);
    EXPECT_EQ(watch.sleep_ns, MPIDI_ZC_WATCH_SURE_NS);
}

TEST_F(Watch, SharedAcceptsFewTimersWhenTheyExpireInVain)
{
    int timers = 0;
    for (int i = 0; i < 1000; ++i) {
        const bool timer = watch.timer_accepted;
        timers += timer;
        saw(kInside, timer);
    }
    EXPECT_GT(timers, 1);
    EXPECT_LT(timers, 1000 / MPIDI_ZC_WATCH_HOLD_MAX);
    EXPECT_FALSE(watch.timer_wanted && !watch.timer_accepted);
    /* After one that was not in vain, timers are accepted again. */
    while (!watch.timer_accepted)
        saw(kInside);
    saw(kAway, true);
    saw(kInside);
    EXPECT_TRUE(watch.timer_accepted);
}

/* Each look costs the application some 5 us: whatever it does without the timer, fewer than
 * two come in each SHARED_NS. */
TEST_F(Watch, SharedLooksSeldom)
{
    for (unsigned seed = 1; seed < 200; ++seed) {
        MPIDI_ZC_watch_begin(&watch);
        saw(kInside);
        slept_ns = looks = 0;
        unsigned state = seed * 2654435761U;
        for (int i = 0; i < 1000; ++i) {
            state = state * 1664525U + 1013904223U;
            saw(state >> 31 ? kInside : kPassed);
        }
        EXPECT_GE(slept_ns / looks, (MPIDI_ZC_WATCH_SHARED_NS + MPIDI_ZC_WATCH_SURE_NS) / 2);
    }
}

} // namespace

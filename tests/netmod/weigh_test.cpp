/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

extern "C" {
#include "zc_weigh.h"
}

namespace {

constexpr size_t kMib = 1 << 20;

TEST(Weigh, WhatIsNotKnownLands)
{
    const MPIDI_ZC_times_t none = {};
    MPIDI_ZC_times_t some = {};
    MPIDI_ZC_weigh_t unknown = {}, known = {};
    MPIDI_ZC_times_saw(&some, kMib, 100);
    MPIDI_ZC_times_saw(&known.deliveries, kMib, 100);
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&unknown, &none, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&unknown, &some, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&known, &none, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&unknown, &none, SIZE_MAX, kMib));
}

TEST(Weigh, TheShorterWayIsTaken)
{
    MPIDI_ZC_weigh_t fast = {}, slow = {};
    MPIDI_ZC_times_t network = {};
    MPIDI_ZC_times_saw(&fast.deliveries, kMib, 100000);
    MPIDI_ZC_times_saw(&slow.deliveries, kMib, 900000);
    MPIDI_ZC_times_saw(&network, kMib, 300000);
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&fast, &network, 0, kMib));
    EXPECT_FALSE(MPIDI_ZC_weigh_lands(&slow, &network, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&slow, &network, 0, 2 * kMib)) << "another size";
}

TEST(Weigh, ARateThatIsGivenCounts)
{
    MPIDI_ZC_weigh_t deliveries = {};
    MPIDI_ZC_times_t transfers = {};
    MPIDI_ZC_times_saw(&deliveries.deliveries, kMib, 100000);
    MPIDI_ZC_times_saw(&transfers, kMib, 1);
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&deliveries, &transfers, 1, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&deliveries, &transfers, 1250000000, kMib));
    EXPECT_FALSE(MPIDI_ZC_weigh_lands(&deliveries, &transfers, 25000000000, kMib));
    EXPECT_FALSE(MPIDI_ZC_weigh_lands(&deliveries, &transfers, SIZE_MAX, kMib));
}

TEST(Weigh, SizesOfOneClassAreComparedByTheByte)
{
    MPIDI_ZC_times_t times = {};
    MPIDI_ZC_times_saw(&times, kMib + kMib / 2, 150000);
    EXPECT_EQ(MPIDI_ZC_times_expect(&times, kMib), 100000U);
    EXPECT_EQ(MPIDI_ZC_times_expect(&times, kMib + kMib / 2), 150000U);
    EXPECT_EQ(MPIDI_ZC_times_expect(&times, 2 * kMib), 0U);
}

TEST(Weigh, TheShortestTimeCountsUntilItIsLongAgo)
{
    MPIDI_ZC_times_t times = {};
    MPIDI_ZC_times_saw(&times, kMib, 640000);
    MPIDI_ZC_times_saw(&times, kMib, 64000);
    MPIDI_ZC_times_saw(&times, kMib, 5000000);
    EXPECT_EQ(MPIDI_ZC_times_expect(&times, kMib), 65001U);
    for (int i = 0; i < 1000; ++i)
        MPIDI_ZC_times_saw(&times, kMib, 640000);
    EXPECT_EQ(MPIDI_ZC_times_expect(&times, kMib), 640000U);
}

/* The first delivery may have been held up by anything. */
TEST(Weigh, ASlowDeliveryIsNotForEver)
{
    MPIDI_ZC_weigh_t weigh = {};
    MPIDI_ZC_times_t transfers = {};
    MPIDI_ZC_times_saw(&transfers, kMib, 900000);
    MPIDI_ZC_times_saw(&weigh.deliveries, kMib, 40000000);
    int left = 0;
    for (int i = 0; i < 1000; ++i) {
        if (MPIDI_ZC_weigh_lands(&weigh, &transfers, 0, kMib))
            MPIDI_ZC_times_saw(&weigh.deliveries, kMib, 100000);
        else
            ++left;
    }
    EXPECT_GT(left, 0);
    EXPECT_LT(left, MPIDI_ZC_WEIGH_PROBE);
}

TEST(Weigh, OnAFastNetworkFewLand)
{
    MPIDI_ZC_weigh_t weigh = {};
    MPIDI_ZC_times_t transfers = {};
    MPIDI_ZC_times_saw(&transfers, kMib, 45000);
    int landed = 0;
    for (int i = 0; i < 3200; ++i) {
        if (MPIDI_ZC_weigh_lands(&weigh, &transfers, 0, kMib)) {
            MPIDI_ZC_times_saw(&weigh.deliveries, kMib, 100000);
            ++landed;
        }
    }
    EXPECT_GT(landed, 0);
    EXPECT_LE(landed, 1 + 3200 / MPIDI_ZC_WEIGH_PROBE);
}

TEST(Weigh, AnySizeHasAClass)
{
    MPIDI_ZC_times_t times = {};
    for (const size_t bytes : {size_t{1}, size_t{2}, kMib, SIZE_MAX / 2, SIZE_MAX}) {
        MPIDI_ZC_times_saw(&times, bytes, 0);
        EXPECT_GT(times.ns[MPIDI_ZC_weigh_class(bytes)], 0U);
    }
    EXPECT_EQ(MPIDI_ZC_weigh_class(0), 0);
}

} // namespace

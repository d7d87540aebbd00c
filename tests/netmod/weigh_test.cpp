/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

extern "C" {
#include "zc_weigh.h"
}

namespace {

constexpr size_t kMib = 1 << 20;

void delivered(MPIDI_ZC_weigh_t &weigh, uint64_t ns)
{
    for (int i = 0; i < MPIDI_ZC_WEIGH_LEAST; ++i)
        MPIDI_ZC_weigh_delivered(&weigh, kMib, ns);
}

TEST(Weigh, WhatIsNotKnownLands)
{
    const MPIDI_ZC_times_t none = {};
    MPIDI_ZC_times_t some = {};
    MPIDI_ZC_weigh_t unknown = {}, known = {};
    MPIDI_ZC_times_saw(&some, kMib, 100);
    delivered(known, 100);
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&unknown, &none, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&unknown, &some, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&known, &none, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&unknown, &none, SIZE_MAX, kMib));
}

TEST(Weigh, TheShorterWayIsTaken)
{
    MPIDI_ZC_weigh_t fast = {}, slow = {};
    MPIDI_ZC_times_t network = {};
    delivered(fast, 100000);
    delivered(slow, 900000);
    MPIDI_ZC_times_saw(&network, kMib, 300000);
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&fast, &network, 0, kMib));
    EXPECT_FALSE(MPIDI_ZC_weigh_lands(&slow, &network, 0, kMib));
    EXPECT_TRUE(MPIDI_ZC_weigh_lands(&slow, &network, 0, 2 * kMib)) << "another size";
}

TEST(Weigh, ARateThatIsGivenCounts)
{
    MPIDI_ZC_weigh_t deliveries = {};
    MPIDI_ZC_times_t transfers = {};
    delivered(deliveries, 100000);
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

/* It pays for pages that were not touched before. */
TEST(Weigh, TheFirstDeliveryAloneLeavesNone)
{
    MPIDI_ZC_weigh_t weigh = {};
    MPIDI_ZC_times_t transfers = {};
    MPIDI_ZC_times_saw(&transfers, kMib, 300000);
    MPIDI_ZC_weigh_delivered(&weigh, kMib, 5000000);
    for (int i = 0; i < 100; ++i)
        EXPECT_TRUE(MPIDI_ZC_weigh_lands(&weigh, &transfers, 0, kMib));
    MPIDI_ZC_weigh_delivered(&weigh, kMib, 100000);
    MPIDI_ZC_weigh_delivered(&weigh, kMib, 4000000);
    for (int i = 0; i < 100; ++i)
        EXPECT_TRUE(MPIDI_ZC_weigh_lands(&weigh, &transfers, 0, kMib));
}

/* The first deliveries may have been held up by anything. */
TEST(Weigh, SlowDeliveriesAreNotForEver)
{
    MPIDI_ZC_weigh_t weigh = {};
    MPIDI_ZC_times_t transfers = {};
    MPIDI_ZC_times_saw(&transfers, kMib, 900000);
    delivered(weigh, 40000000);
    int left = 0;
    for (int i = 0; i < 1000; ++i) {
        if (MPIDI_ZC_weigh_lands(&weigh, &transfers, 0, kMib))
            MPIDI_ZC_weigh_delivered(&weigh, kMib, 100000);
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
            MPIDI_ZC_weigh_delivered(&weigh, kMib, 100000);
            ++landed;
        }
    }
    EXPECT_GT(landed, 0);
    EXPECT_LE(landed, MPIDI_ZC_WEIGH_LEAST + 3200 / MPIDI_ZC_WEIGH_PROBE);
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

/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <gtest/gtest.h>

using namespace zc;

namespace {

zc_stats_t after(std::initializer_list<tally> deliveries, std::size_t len)
{
    counters c;
    for (const tally &t : deliveries)
        c.add(t, t.summary(len));
    zc_stats_t out{};
    c.report(out);
    return out;
}

/** Some of it refused, most of that as copy-on-write. */
tally exchanged(std::size_t by_mremap, std::size_t by_module)
{
    tally t;
    t.rebound[ZC_MEANS_MREMAP] = by_mremap;
    t.rebound[ZC_MEANS_KMOD] = by_module;
    t.copied[ZC_REASON_PINNED] = 5;
    t.copied[ZC_REASON_COW] = 6;
    return t;
}

} // namespace

TEST(TallyTest, NothingExchangedAndNothingRefusedIsACopyWithoutReason)
{
    zc_delivery_t how = tally{}.summary(100);
    EXPECT_EQ(how.bytes_rebound, 0u);
    EXPECT_EQ(how.bytes_copied, 100u);
    EXPECT_EQ(how.means, ZC_MEANS_COPY);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
}

TEST(TallyTest, TheMeansOfMostBytesAndTheReasonOfMostBytesCount)
{
    zc_delivery_t how = exchanged(30, 40).summary(100);
    EXPECT_EQ(how.bytes_rebound, 70u);
    EXPECT_EQ(how.bytes_copied, 30u);
    EXPECT_EQ(how.means, ZC_MEANS_KMOD);
    EXPECT_EQ(how.reason, ZC_REASON_COW);
}

TEST(CountersTest, ADeliveryCountsOncePerReasonAndOnceByMeans)
{
    tally t = exchanged(50, 20);
    zc_stats_t s = after({t, t}, 100);
    EXPECT_EQ(s.deliveries, 2u);
    EXPECT_EQ(s.bytes_rebound, 140u);
    EXPECT_EQ(s.bytes_copied, 60u);
    EXPECT_EQ(s.rebound_by_means[ZC_MEANS_MREMAP], 2u);
    EXPECT_EQ(s.rebound_by_means[ZC_MEANS_KMOD], 0u);
    EXPECT_EQ(s.bytes_rebound_by_means[ZC_MEANS_MREMAP], 100u);
    EXPECT_EQ(s.bytes_rebound_by_means[ZC_MEANS_KMOD], 40u);
    EXPECT_EQ(s.copied_by_reason[ZC_REASON_PINNED], 2u);
    EXPECT_EQ(s.copied_by_reason[ZC_REASON_COW], 2u);
    EXPECT_EQ(s.bytes_copied_by_reason[ZC_REASON_COW], 12u);
    EXPECT_EQ(s.copied_by_reason[ZC_REASON_NONE], 0u);
}

TEST(CountersTest, TheEdgesHaveNoReason)
{
    tally t;
    t.rebound[ZC_MEANS_KMOD] = 90;
    zc_stats_t s = after({t}, 100);
    EXPECT_EQ(s.bytes_copied, 10u);
    for (int i = 0; i < ZC_REASON_COUNT; i++)
        EXPECT_EQ(s.bytes_copied_by_reason[i], 0u);
}

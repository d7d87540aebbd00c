/* SPDX-License-Identifier: BSD-3-Clause */
#include "sent_rates.h"

#include <gtest/gtest.h>

namespace zc::agent {
namespace {

constexpr std::uint64_t kTick = 1'000'000'000; /* a second */

std::vector<zcp_event_t> messages(rank_id to, std::size_t count, std::uint64_t bytes)
{
    return std::vector<zcp_event_t>(count, {0, to, bytes, 0, 0, 0});
}

TEST(AgentSentRatesTest, TheFirstReadingTellsNoRate)
{
    sent_rates rates;
    rates.add(kTick, messages(1, 10, 1000), 0);
    EXPECT_TRUE(rates.flows().empty());
}

TEST(AgentSentRatesTest, WhatIsSentSteadilyIsItsRate)
{
    sent_rates rates;
    rates.add(kTick, {}, 0);
    for (std::uint64_t i = 1; i < 40; i++) /* each half second */
        rates.add(kTick + i * kTick / 2, messages(3, 10, 1000), 0);
    ASSERT_EQ(rates.flows().size(), 1u);
    EXPECT_EQ(rates.flows()[0].peer, 3u);
    EXPECT_NEAR(rates.flows()[0].bytes_per_s, 20'000, 20);
    EXPECT_NEAR(rates.flows()[0].messages_per_s, 20, 0.1);
}

TEST(AgentSentRatesTest, MissedMessagesCountAsTheOthersDo)
{
    sent_rates rates;
    rates.add(kTick, {}, 0);
    auto seen = messages(1, 10, 1000);
    const auto more = messages(2, 30, 1000);
    seen.insert(seen.end(), more.begin(), more.end());
    for (std::uint64_t i = 2; i < 40; i++)
        rates.add(i * kTick, seen, 360);
    ASSERT_EQ(rates.flows().size(), 2u);
    EXPECT_NEAR(rates.flows()[0].messages_per_s, 100, 0.1);
    EXPECT_NEAR(rates.flows()[1].messages_per_s, 300, 0.3);
}

TEST(AgentSentRatesTest, AReadingThatMissedAllTellsNothing)
{
    sent_rates rates;
    rates.add(kTick, {}, 0);
    rates.add(2 * kTick, messages(1, 10, 1000), 0);
    const double before = rates.flows().at(0).messages_per_s;
    rates.add(3 * kTick, {}, 100'000);
    EXPECT_EQ(rates.flows().at(0).messages_per_s, before);
}

TEST(AgentSentRatesTest, WhatIsNoMoreSentIsForgotten)
{
    sent_rates rates;
    rates.add(kTick, {}, 0);
    rates.add(2 * kTick, messages(1, 10, 1000), 0);
    rates.add(3 * kTick, {}, 0);
    ASSERT_EQ(rates.flows().size(), 1u);
    EXPECT_NEAR(rates.flows()[0].messages_per_s, 0.7 * 0.3 * 10, 1e-9);
    for (std::uint64_t i = 4; i < 40; i++)
        rates.add(i * kTick, {}, 0);
    EXPECT_TRUE(rates.flows().empty());
}

TEST(AgentSentRatesTest, ATimeThatDoesNotPassTellsNothing)
{
    sent_rates rates;
    rates.add(kTick, {}, 0);
    rates.add(kTick, messages(1, 10, 1000), 0);
    EXPECT_TRUE(rates.flows().empty());
}

} // namespace
} // namespace zc::agent

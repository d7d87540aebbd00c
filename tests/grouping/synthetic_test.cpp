/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include "support.h"

using namespace zc::groups;

namespace {

TEST(SyntheticTest, SameSeedSameStream)
{
    const recipe r{16, 1000, 0.1, 8, 42};
    const auto a = fem(r).events;
    const auto b = fem(r).events;
    ASSERT_EQ(1000u, a.size());
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), [](const auto &x, const auto &y) {
        return x.src == y.src && x.dst == y.dst && x.time_ns == y.time_ns;
    }));
}

TEST(SyntheticTest, ButterflyPartnersDifferInOneBit)
{
    for (const zcp_event_t &e : butterfly({32, 1000, 0, 0, 1}).events) {
        const uint32_t difference = e.src ^ e.dst;
        EXPECT_EQ(0u, difference & (difference - 1));
        EXPECT_NE(0u, difference);
    }
}

TEST(SyntheticTest, OnlyTheMasterTalksToAll)
{
    for (const zcp_event_t &e : master_slave({32, 1000, 0, 0, 1}).events)
        EXPECT_TRUE(e.src == 0 || e.dst == 0);
}

TEST(SyntheticTest, MasterSlaveHasThreePhases)
{
    std::vector<std::pair<uint32_t, uint32_t>> expected;
    for (int round = 0; round < 2; round++) {
        for (const uint32_t share : {1, 2, 3, 1, 2, 3})
            expected.emplace_back(0, share);
        expected.insert(expected.end(), {{1, 2}, {2, 3}, {3, 1}, {1, 0}, {2, 0}, {3, 0}});
    }
    const auto events = master_slave_phases({4, expected.size(), 0, 0, 1}, 2, 1).events;
    ASSERT_EQ(expected.size(), events.size());
    for (size_t i = 0; i < events.size(); i++)
        EXPECT_EQ(expected[i], std::pair(events[i].src, events[i].dst)) << i;
}

TEST(SyntheticTest, JitterKeepsTheOrderOfASender)
{
    const auto clean = butterfly({16, 2000, 0, 0, 1}).events;
    const auto shaken = butterfly({16, 2000, 0, 50, 1}).events;
    bool moved = false;
    for (uint32_t sender = 0; sender < 16; sender++) {
        std::vector<uint32_t> before;
        std::vector<uint32_t> after;
        for (size_t i = 0; i < clean.size(); i++) {
            if (clean[i].src == sender)
                before.push_back(clean[i].dst);
            if (shaken[i].src == sender)
                after.push_back(shaken[i].dst);
            moved = moved || clean[i].src != shaken[i].src;
        }
        EXPECT_EQ(before, after);
    }
    EXPECT_TRUE(moved);
}

} // namespace

/* SPDX-License-Identifier: BSD-3-Clause */
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "placement.h"

namespace zc::control {
namespace {

TEST(PlacementTest, CountsWhatIsThereAndWhatIsOnItsWay)
{
    placement where;
    where.add("job", "b");
    where.add("another", "c");
    where.add("another", "c");
    EXPECT_EQ(where.take("job", {"b", "c"}), "c");
    EXPECT_EQ(where.take("job", {"b", "c"}), "b"); /* of several the first */
    EXPECT_EQ(where.take("job", {"b", "c"}), "c");
}

TEST(PlacementTest, CountsWhatHasNotComeNoMore)
{
    placement where;
    EXPECT_EQ(where.take("job", {"b", "c"}), "b");
    where.give_back("job", "b");
    EXPECT_EQ(where.take("job", {"b", "c"}), "b");
    EXPECT_EQ(where.take("job", {"b"}), "b"); /* there is no other, though it has more */
    EXPECT_EQ(where.take("job", {"b", "c"}), "c");
}

TEST(PlacementTest, GivesEachHostItsPartIfAllAskAtOnce)
{
    constexpr int kRanks = 30;
    placement where;
    std::vector<std::string> went(kRanks);
    {
        std::vector<std::jthread> all;
        for (std::string &each : went)
            all.emplace_back([&] { each = where.take("job", {"b", "c", "d"}); });
    }
    std::map<std::string, int> ranks;
    for (const std::string &host : went)
        ranks[host]++;
    EXPECT_EQ(ranks, (std::map<std::string, int>{{"b", 10}, {"c", 10}, {"d", 10}}));
}

} // namespace
} // namespace zc::control

/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <cerrno>
#include <map>

#include "support.h"

namespace {

using flows = std::vector<zcp_flow_t>;
using groups = std::vector<uint32_t>;

zcp_flow_t flow(uint32_t src, uint32_t dst, uint64_t bytes)
{
    return {src, dst, bytes, 1, 0};
}

groups cut(const flows &f, uint32_t ranks, uint32_t max_size)
{
    groups out(ranks);
    EXPECT_GT(zcp_flows_cut(f.data(), f.size(), ranks, max_size, out.data()), 0);
    return out;
}

groups around(const flows &f, uint32_t ranks, uint32_t rank, uint32_t max_size)
{
    groups out(max_size);
    const int64_t nr = zcp_flows_around(f.data(), f.size(), ranks, rank, max_size, out.data());
    EXPECT_GT(nr, 0);
    out.resize(static_cast<size_t>(std::max<int64_t>(nr, 0)));
    return out;
}

double inside(const flows &f, const groups &group_of)
{
    double sum = 0;
    for (const zcp_flow_t &one : f) {
        if (one.src != one.dst && group_of[one.src] == group_of[one.dst])
            sum += static_cast<double>(one.bytes) + one.messages;
    }
    return sum;
}

flows random_flows(zc::groups::dice &dice, uint32_t ranks, size_t nr)
{
    flows out;
    for (size_t i = 0; i < nr; i++)
        out.push_back(flow(dice.below(ranks), dice.below(ranks), dice.below(1000)));
    return out;
}

TEST(CutTest, PutsTogetherWhoTalks)
{
    EXPECT_EQ((groups{0, 1, 0, 1}), cut({flow(0, 2, 9), flow(3, 1, 9)}, 4, 2));
    EXPECT_EQ((groups{0, 1, 0, 1, 2}), cut({flow(0, 2, 9), flow(3, 1, 9)}, 5, 3));
}

TEST(CutTest, LeavesRanksWithoutTrafficAlone)
{
    EXPECT_EQ((groups{0, 1, 2, 3}), cut({}, 4, 4));
    EXPECT_EQ((groups{0, 1, 2, 3}), cut({flow(1, 1, 100)}, 4, 4));
}

/* The heaviest pair first would leave 0 and 3 apart: 10 + 0 instead of 9 + 9. */
TEST(CutTest, GivesUpTheHeaviestPairWhereThatPays)
{
    const flows f = {flow(0, 1, 9), flow(1, 2, 10), flow(2, 3, 9)};
    EXPECT_EQ((groups{0, 0, 1, 1}), cut(f, 4, 2));
}

TEST(CutTest, FindsTheSubcubesOfAHypercube)
{
    flows f;
    for (uint32_t rank = 0; rank < 16; rank++) {
        for (uint32_t distance = 1; distance < 16; distance *= 2)
            f.push_back(flow(rank, rank ^ distance, 1000));
    }
    EXPECT_NEAR(0.5, inside(f, cut(f, 16, 4)) / inside(f, groups(16, 0)), 1e-9);
}

TEST(CutTest, NeverExceedsTheSize)
{
    zc::groups::dice dice(4);
    for (int round = 0; round < 200; round++) {
        const uint32_t ranks = 1 + dice.below(60);
        const uint32_t max_size = 1 + dice.below(ranks + 3);
        const groups found = cut(random_flows(dice, ranks, dice.below(300)), ranks, max_size);
        std::map<uint32_t, uint32_t> size;
        uint32_t next = 0;
        for (const uint32_t group : found) {
            EXPECT_LE(++size[group], max_size);
            EXPECT_LE(group, next); /* numbered by their lowest rank */
            next = std::max(next, group + 1);
        }
    }
}

TEST(CutTest, DoesNotDependOnTheOrderOfFlows)
{
    zc::groups::dice dice(5);
    for (int round = 0; round < 50; round++) {
        flows f = random_flows(dice, 20, 150);
        const groups first = cut(f, 20, 5);
        const groups from_three = around(f, 20, 3, 5);
        for (size_t i = f.size(); i > 1; i--)
            std::swap(f[i - 1], f[dice.below(static_cast<uint32_t>(i))]);
        EXPECT_EQ(first, cut(f, 20, 5));
        EXPECT_EQ(from_three, around(f, 20, 3, 5));
    }
}

/** Most that any grouping of six ranks in groups of up to @max_size keeps inside. */
double best_inside(const flows &f, uint32_t max_size)
{
    double best = 0;
    groups g(6, 0);
    while (true) {
        bool fits = true;
        for (uint32_t group = 0; group < 6; group++)
            fits = fits && std::count(g.begin(), g.end(), group) <= max_size;
        if (fits)
            best = std::max(best, inside(f, g));
        size_t i = 0;
        while (i < 6 && ++g[i] == 6)
            g[i++] = 0;
        if (i == 6)
            return best;
    }
}

TEST(CutTest, IsAsGoodAsTrialOfAllGroupingsOnSixRanks)
{
    zc::groups::dice dice(6);
    for (int round = 0; round < 25; round++) {
        const flows f = random_flows(dice, 6, 5 + dice.below(25));
        const uint32_t max_size = 2 + dice.below(2);
        EXPECT_GE(inside(f, cut(f, 6, max_size)), 0.98 * best_inside(f, max_size));
    }
}

TEST(CutTest, CopesWithThousandsOfRanks)
{
    zc::groups::dice dice(7);
    flows f;
    for (uint32_t rank = 0; rank + 1 < 4096; rank++)
        f.push_back(flow(rank, rank + 1, 1000 + dice.below(10)));
    const groups found = cut(f, 4096, 64);
    EXPECT_GT(inside(f, found) / inside(f, groups(4096, 0)), 0.95);
}

TEST(CutTest, IgnoresRanksOutsideTheWorld)
{
    EXPECT_EQ((groups{0, 0}), cut({flow(0, 1, 1), flow(7, 1, 99), flow(0, UINT32_MAX, 9)}, 2, 2));
}

TEST(CutTest, RefusesBadArguments)
{
    uint32_t out[4];
    EXPECT_EQ(-EINVAL, zcp_flows_cut(nullptr, 1, 4, 2, out));
    EXPECT_EQ(-EINVAL, zcp_flows_cut(nullptr, 0, 0, 2, out));
    EXPECT_EQ(-EINVAL, zcp_flows_cut(nullptr, 0, 4, 0, out));
    EXPECT_EQ(-EINVAL, zcp_flows_cut(nullptr, 0, 4, 2, nullptr));
    EXPECT_EQ(-EINVAL, zcp_flows_around(nullptr, 0, 4, 4, 2, out));
}

TEST(AroundTest, TakesTheClosestFirst)
{
    const flows f = {flow(0, 1, 10), flow(0, 2, 30), flow(2, 3, 25), flow(4, 5, 99)};
    EXPECT_EQ((groups{0, 2, 3, 1}), around(f, 6, 0, 4));
    EXPECT_EQ((groups{0, 2}), around(f, 6, 0, 2));
    EXPECT_EQ((groups{0, 2, 3, 1}), around(f, 6, 0, 6)) << "4 and 5 have nothing to do with it";
}

TEST(AroundTest, OfEqualsTakesTheOneWithLessToDoElsewhere)
{
    const flows f = {flow(0, 1, 10), flow(0, 2, 10), flow(1, 3, 100)};
    EXPECT_EQ((groups{0, 2}), around(f, 4, 0, 2));
}

} // namespace

/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include <gtest/gtest.h>

#include "basics.h"
#include "placement.h"

namespace zc::agent {
namespace {

placement_problem flat(std::uint32_t ranks, std::vector<std::uint32_t> room)
{
    placement_problem p;
    p.room = std::move(room);
    std::size_t n = p.room.size();
    p.cost.assign(n * n, 1);
    for (std::size_t i = 0; i < n; i++)
        p.cost[i * n + i] = 0;
    p.now.assign(ranks, 0);
    p.fixed.assign(ranks, false);
    return p;
}

void expect_fits(const placement_problem &p, const std::vector<std::uint32_t> &where)
{
    ASSERT_EQ(where.size(), p.now.size());
    for (std::uint32_t n = 0; n < p.room.size(); n++)
        EXPECT_LE(std::count(where.begin(), where.end(), n), p.room[n]);
    for (std::size_t r = 0; r < where.size(); r++) {
        if (p.fixed[r]) {
            EXPECT_EQ(where[r], p.now[r]);
        }
    }
}

TEST(AgentPlacementTest, CliquesStayWhole)
{
    placement_problem p = flat(12, {4, 4, 4});
    for (rank_id a = 0; a < 12; a++) {
        for (rank_id b = 0; b < 12; b++) {
            if (a != b && a % 3 == b % 3)
                p.flows.push_back({a, b, 1000, 1, 1});
        }
    }
    auto where = place(p);
    expect_fits(p, where);
    EXPECT_EQ(placement_cost(p, where), 0);
}

TEST(AgentPlacementTest, WhatMustPartGoesToTheNearNode)
{
    /* Node 0 and 1 are near each other, 2 is far; six ranks in a clique do not fit on one. */
    placement_problem p = flat(6, {3, 3, 3});
    p.cost = {0, 1, 50, 1, 0, 50, 50, 50, 0};
    for (rank_id a = 0; a < 6; a++) {
        for (rank_id b = 0; b < 6; b++) {
            if (a != b)
                p.flows.push_back({a, b, 100, 1, 1});
        }
    }
    auto where = place(p);
    expect_fits(p, where);
    EXPECT_EQ(std::count(where.begin(), where.end(), 2u), 0);
}

TEST(AgentPlacementTest, FixedPartnersDraw)
{
    placement_problem p = flat(4, {0, 2, 2});
    p.room = {2, 2, 2};
    p.now = {1, 2, 0, 0};
    p.fixed = {true, true, false, false};
    p.flows = {{2, 1, 1000, 1, 1}, {3, 0, 1000, 1, 1}};
    auto where = place(p);
    EXPECT_EQ(where, (std::vector<std::uint32_t>{1, 2, 2, 1}));
}

TEST(AgentPlacementTest, NobodyMovesForNothing)
{
    placement_problem p = flat(4, {4, 4});
    p.now = {0, 0, 1, 1};
    p.flows = {{0, 1, 10, 1, 1}, {2, 3, 10, 1, 1}};
    EXPECT_EQ(place(p), p.now);
}

TEST(AgentPlacementTest, RefusesWhatDoesNotFit)
{
    EXPECT_TRUE(place(flat(5, {2, 2})).empty());
    placement_problem p = flat(2, {4});
    p.now = {0, 7};
    EXPECT_TRUE(place(p).empty());
    p = flat(2, {4});
    p.cost = {0, 1};
    EXPECT_TRUE(place(p).empty());
    EXPECT_TRUE(place(placement_problem{}).empty());
}

/* Random problems: room is kept, it is never worse than where they were, and repeats. */
TEST(AgentPlacementTest, IsNeverWorseThanStaying)
{
    random_source r(5);
    for (int i = 0; i < 60; i++) {
        auto nodes = static_cast<std::uint32_t>(1 + r.below(6));
        auto ranks = static_cast<std::uint32_t>(1 + r.below(30));
        placement_problem p = flat(ranks, std::vector<std::uint32_t>(nodes, 30));
        for (double &c : p.cost)
            c = c > 0 ? 1 + r.unit() * 10 : 0;
        for (rank_id k = 0; k < ranks; k++) {
            p.now[k] = static_cast<std::uint32_t>(r.below(nodes));
            p.fixed[k] = r.chance(0.2);
        }
        for (std::uint32_t n = 0; n < nodes; n++)
            p.room[n] =
                static_cast<std::uint32_t>(std::count(p.now.begin(), p.now.end(), n) + r.below(3));
        for (std::uint64_t k = r.below(100); k > 0; k--)
            p.flows.push_back({static_cast<rank_id>(r.below(ranks)),
                               static_cast<rank_id>(r.below(ranks)), r.below(100'000), 1, 1});
        auto where = place(p);
        expect_fits(p, where);
        EXPECT_LE(placement_cost(p, where), placement_cost(p, p.now) * (1 + 1e-9));
        EXPECT_EQ(place(p), where);
    }
}

} // namespace
} // namespace zc::agent

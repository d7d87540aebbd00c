/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_set.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using zc::page_set;
using zc::range;

namespace {

using ranges = std::vector<range>;

} // namespace

TEST(PageSetTest, JoinsNeighboursAndOverlaps)
{
    page_set s;
    s.insert({0, 10});
    s.insert({20, 30});
    s.insert({10, 20});
    EXPECT_EQ(s.ranges(), (ranges{{0, 30}}));
    s.insert({5, 40});
    EXPECT_EQ(s.ranges(), (ranges{{0, 40}}));
}

TEST(PageSetTest, ErasingTheMiddleLeavesTwo)
{
    page_set s;
    s.insert({0, 30});
    s.erase({10, 20});
    EXPECT_EQ(s.ranges(), (ranges{{0, 10}, {20, 30}}));
    EXPECT_EQ(s.bytes(), 20u);
    EXPECT_EQ(s.bytes_in({5, 25}), 10u);
}

TEST(PageSetTest, MissingAndCommonComplementEachOther)
{
    page_set s;
    s.insert({10, 20});
    s.insert({30, 40});
    EXPECT_EQ(s.missing_from({0, 50}), (ranges{{0, 10}, {20, 30}, {40, 50}}));
    EXPECT_EQ(s.common_with({15, 35}), (ranges{{15, 20}, {30, 35}}));
    EXPECT_TRUE(s.missing_from({12, 18}).empty());
}

TEST(PageSetTest, EmptyRangesChangeNothing)
{
    page_set s;
    s.insert({5, 5});
    EXPECT_TRUE(s.ranges().empty());
    s.insert({0, 10});
    s.erase({5, 5});
    EXPECT_EQ(s.bytes(), 10u);
}

TEST(PageSetTest, AgreesWithASetOfNumbers)
{
    std::mt19937 random(7);
    page_set s;
    std::set<std::uintptr_t> model;
    for (int step = 0; step < 3000; step++) {
        std::uintptr_t begin = random() % 100, len = random() % 20;
        range r{begin, begin + len};
        bool insert = random() % 2;
        insert ? s.insert(r) : s.erase(r);
        for (std::uintptr_t i = r.begin; i < r.end; i++) {
            if (insert)
                model.insert(i);
            else
                model.erase(i);
        }
        ASSERT_EQ(s.bytes(), model.size());
        for (std::size_t i = 1; i < s.ranges().size(); i++)
            ASSERT_LT(s.ranges()[i - 1].end, s.ranges()[i].begin);
        for (const range &have : s.ranges())
            for (std::uintptr_t i = have.begin; i < have.end; i++)
                ASSERT_TRUE(model.contains(i));
    }
}

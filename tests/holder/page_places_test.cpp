/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_places.h"

#include <gtest/gtest.h>

namespace zc::holder {
namespace {

constexpr std::uint64_t kBase = 0x10000, kDue = 16;

std::uint64_t page(std::uint64_t number)
{
    return kBase + 4096 * number;
}

class PagePlacesTest : public ::testing::Test {
  protected:
    PagePlacesTest() { pages_.set({kBase, 4096 * kDue, 0}); }
    /** Numbers of pages of the store, for each page from @begin on; -1: none is due. */
    std::string due(std::uint64_t begin, std::uint64_t count) const
    {
        std::string all;
        for (std::uint64_t i = 0; i < count; i++) {
            const auto found = pages_.find(page(begin + i));
            all += (found ? std::to_string(*found / 4096) : "-") + " ";
        }
        return all;
    }
    page_places pages_;
};

TEST_F(PagePlacesTest, AreFoundWhereTheyWere)
{
    EXPECT_EQ(due(0, 3), "0 1 2 ");
    EXPECT_EQ(pages_.find(page(1) + 8), 4096 + 8);
    EXPECT_FALSE(pages_.find(kBase - 1));
    EXPECT_FALSE(pages_.find(page(kDue)));
}

TEST_F(PagePlacesTest, ComeInOrderUntilThereAreNone)
{
    std::uint64_t next = 0;
    while (!pages_.is_empty()) {
        const stored_pages run = pages_.first(4096 * 3);
        EXPECT_EQ(run.address, page(next));
        EXPECT_EQ(run.from, 4096 * next);
        EXPECT_EQ(run.bytes, 4096 * std::min<std::uint64_t>(3, kDue - next));
        pages_.drop(run.address, run.bytes);
        next += run.bytes / 4096;
    }
    EXPECT_EQ(next, kDue);
}

TEST_F(PagePlacesTest, AreForgottenInTheMiddle)
{
    pages_.drop(page(2), 2 * 4096);
    EXPECT_EQ(due(0, 6), "0 1 - - 4 5 ");
    pages_.set({page(kDue + 4), 4096, 4096 * 99});
    pages_.drop(page(5), 4096 * 100); /* of both runs */
    EXPECT_EQ(due(0, 24), "0 1 - - 4 - - - - - - - - - - - - - - - - - - - ");
}

TEST_F(PagePlacesTest, AreWhereTheirMemoryWasMoved)
{
    pages_.drop(page(3), 4096);
    pages_.move(page(2), page(100), 4 * 4096);
    EXPECT_EQ(due(0, 8), "0 1 - - - - 6 7 ");
    EXPECT_EQ(due(99, 6), "- 2 - 4 5 - ");
}

TEST_F(PagePlacesTest, ReplaceWhatWasWhereTheyAreMoved)
{
    pages_.move(page(0), page(6), 2 * 4096);
    EXPECT_EQ(due(0, 10), "- - 2 3 4 5 0 1 8 9 ");
    pages_.drop(page(2), 4096);
    pages_.move(page(2), page(8), 4096); /* to which nothing is due any more */
    EXPECT_EQ(due(2, 8), "- 3 4 5 0 1 - 9 ");
}

TEST_F(PagePlacesTest, TheLastPlaceCounts)
{
    EXPECT_TRUE(pages_.set(page(3), 4096 * 70));
    EXPECT_FALSE(pages_.set(page(3), 4096 * 70)) << "it is known";
    EXPECT_EQ(due(2, 3), "2 70 4 ");
    EXPECT_EQ(pages_.bytes(), 4096 * kDue);
    EXPECT_TRUE(pages_.set(page(kDue + 1), 0));
    EXPECT_EQ(pages_.bytes(), 4096 * (kDue + 1));
}

/** Far from each other, as the mappings of a process are. */
TEST_F(PagePlacesTest, OnlyThoseOfRangesAreKept)
{
    constexpr std::uint64_t kFar = 0x7ff79a752000;
    pages_.set({kFar, 4096 * 3000, 4096 * 100});
    page_places all = pages_;
    all.keep({{page(1), page(3)}, {page(50), page(60)}, {kFar + 4096, kFar + 4096 * 2999}});
    EXPECT_EQ(all.bytes(), 4096 * (2 + 2998));
    EXPECT_FALSE(all.find(page(0)));
    EXPECT_EQ(all.find(page(2)), 4096 * 2);
    EXPECT_FALSE(all.find(kFar));
    EXPECT_EQ(all.find(kFar + 4096 * 2998), 4096 * (100 + 2998));
    EXPECT_FALSE(all.find(kFar + 4096 * 2999));
    all.keep({});
    EXPECT_TRUE(all.is_empty());
    EXPECT_FALSE(pages_.is_empty()) << "the other one has its own";
}

TEST_F(PagePlacesTest, TheSumIsOfAddressesAndPlaces)
{
    page_places other = pages_;
    EXPECT_EQ(other.sum(), pages_.sum());
    other.set(page(1), 4096 * 2);
    EXPECT_NE(other.sum(), pages_.sum());
    other = pages_;
    other.move(kBase, kBase + 0x10000000, 4096 * kDue);
    EXPECT_NE(other.sum(), pages_.sum());
}

TEST_F(PagePlacesTest, MayLieOutsideOfAStore)
{
    EXPECT_TRUE(pages_.lie_in(4096 * kDue));
    EXPECT_FALSE(pages_.lie_in(4096 * kDue - 1));
    EXPECT_FALSE(pages_.lie_in(0));
    pages_.set(page(1), ~std::uint64_t{4095});
    EXPECT_FALSE(pages_.lie_in(~std::uint64_t{0} - 1));
}

TEST_F(PagePlacesTest, SomeOfARangeMayBeThere)
{
    page_places all;
    all.set({0x4000, 0x4000, 0});
    for (const std::uint64_t begin : {0x3000, 0x4000, 0x5000, 0x7000})
        EXPECT_TRUE(all.has_any(begin, 0x2000)) << begin;
    EXPECT_TRUE(all.has_any(0, 0x10000));
    EXPECT_FALSE(all.has_any(0x2000, 0x2000));
    EXPECT_FALSE(all.has_any(0x8000, 0x1000));
}

} // namespace
} // namespace zc::holder

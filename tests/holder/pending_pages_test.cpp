/* SPDX-License-Identifier: BSD-3-Clause */
#include "pending_pages.h"

#include <gtest/gtest.h>

namespace zc::holder {
namespace {

constexpr std::uint64_t kBase = 0x10000, kDue = 16;

std::uint64_t page(std::uint64_t number)
{
    return kBase + 4096 * number;
}

class PendingPagesTest : public ::testing::Test {
  protected:
    PendingPagesTest() { pages_.add({kBase, 4096 * kDue, 0}); }
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
    pending_pages pages_;
};

TEST_F(PendingPagesTest, AreFoundWhereTheyWere)
{
    EXPECT_EQ(due(0, 3), "0 1 2 ");
    EXPECT_EQ(pages_.find(page(1) + 8), 4096 + 8);
    EXPECT_FALSE(pages_.find(kBase - 1));
    EXPECT_FALSE(pages_.find(page(kDue)));
}

TEST_F(PendingPagesTest, ComeInOrderUntilThereAreNone)
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

TEST_F(PendingPagesTest, AreForgottenInTheMiddle)
{
    pages_.drop(page(2), 2 * 4096);
    EXPECT_EQ(due(0, 6), "0 1 - - 4 5 ");
    pages_.add({page(kDue + 4), 4096, 4096 * 99});
    pages_.drop(page(5), 4096 * 100); /* of both runs */
    EXPECT_EQ(due(0, 24), "0 1 - - 4 - - - - - - - - - - - - - - - - - - - ");
}

TEST_F(PendingPagesTest, AreWhereTheirMemoryWasMoved)
{
    pages_.drop(page(3), 4096);
    pages_.move(page(2), page(100), 4 * 4096);
    EXPECT_EQ(due(0, 8), "0 1 - - - - 6 7 ");
    EXPECT_EQ(due(99, 6), "- 2 - 4 5 - ");
}

TEST_F(PendingPagesTest, ReplaceWhatWasWhereTheyAreMoved)
{
    pages_.move(page(0), page(6), 2 * 4096);
    EXPECT_EQ(due(0, 10), "- - 2 3 4 5 0 1 8 9 ");
    pages_.drop(page(2), 4096);
    pages_.move(page(2), page(8), 4096); /* to which nothing is due any more */
    EXPECT_EQ(due(2, 8), "- 3 4 5 0 1 - 9 ");
}

TEST_F(PendingPagesTest, SomeOfARangeMayBeThere)
{
    pending_pages all;
    all.add({0x4000, 0x4000, 0});
    for (const std::uint64_t begin : {0x3000, 0x4000, 0x5000, 0x7000})
        EXPECT_TRUE(all.has_any(begin, 0x2000)) << begin;
    EXPECT_TRUE(all.has_any(0, 0x10000));
    EXPECT_FALSE(all.has_any(0x2000, 0x2000));
    EXPECT_FALSE(all.has_any(0x8000, 0x1000));
}

} // namespace
} // namespace zc::holder

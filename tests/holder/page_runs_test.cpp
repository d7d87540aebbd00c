/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_runs.h"

#include <gtest/gtest.h>

namespace zc::holder {
namespace {

constexpr std::uint64_t kOnePage = 4096, kFollows = page_runs::kFollows;

/** What another host reads, behind a head of one figure. */
std::vector<stored_pages> told_by(const page_runs &runs)
{
    constexpr std::size_t kHead = sizeof "{\"kind\":1}\n" - 1;
    return page_runs::of(std::string_view(runs.line("kind")).substr(kHead));
}

TEST(PageRunsTest, AreReadAsTheyWereWritten)
{
    page_runs runs;
    runs.add(0x7ff79a752000, kOnePage, 0x123456789000);
    runs.add(0, ~std::uint64_t{0}, 0);
    runs.add(1, 2, kFollows);
    const auto found = told_by(runs);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].address, 0x7ff79a752000u);
    EXPECT_EQ(found[0].bytes, kOnePage);
    EXPECT_EQ(found[0].from, 0x123456789000u);
    EXPECT_EQ(found[1].bytes, ~std::uint64_t{0});
    EXPECT_EQ(found[2].from, kFollows);
    EXPECT_EQ(runs.line("kind").substr(0, 11), "{\"kind\":3}\n");
}

/** The form of other hosts does not depend on this one. */
TEST(PageRunsTest, HaveTheLowestByteFirst)
{
    page_runs runs;
    runs.add(0x0102, 3, 4);
    EXPECT_EQ(runs.line("k"), std::string("{\"k\":1}\n") + std::string("\x02\x01\0\0\0\0\0\0", 8) +
                                  std::string("\3\0\0\0\0\0\0\0", 8) +
                                  std::string("\4\0\0\0\0\0\0\0", 8));
}

TEST(PageRunsTest, AreLongerByWhatContinuesThem)
{
    page_runs runs;
    runs.add(0, kOnePage, 7 * kOnePage);
    runs.add(kOnePage, kOnePage, 8 * kOnePage);
    runs.add(2 * kOnePage, kOnePage, kFollows);
    runs.add(3 * kOnePage, kOnePage, kFollows);
    ASSERT_EQ(told_by(runs).size(), 2u);
    EXPECT_EQ(told_by(runs)[0].bytes, 2 * kOnePage);
    EXPECT_EQ(told_by(runs)[1].bytes, 2 * kOnePage);
    for (const stored_pages &next :
         {stored_pages{5 * kOnePage, kOnePage, kFollows}, /* a hole */
          {4 * kOnePage, kOnePage, 9 * kOnePage},         /* it has come */
          {4 * kOnePage, kOnePage, 2 * kOnePage - 1}}) {  /* kFollows, and two */
        page_runs more = runs;
        more.add(next.address, next.bytes, next.from);
        EXPECT_EQ(told_by(more).size(), 3u);
    }
    runs.add(6 * kOnePage, kOnePage, 2 * kOnePage);
    runs.add(7 * kOnePage, kOnePage, 2 * kOnePage); /* the same once more */
    EXPECT_EQ(told_by(runs).size(), 4u);
}

TEST(PageRunsTest, MayBeNone)
{
    page_runs runs;
    EXPECT_TRUE(runs.is_empty());
    EXPECT_TRUE(page_runs::of("").empty());
    runs.add(0, kOnePage, 0);
    EXPECT_FALSE(runs.is_empty());
}

} // namespace
} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_memory.h"

#include <malloc.h>
#include <set>

#include <gtest/gtest.h>

#include "forked.h"

namespace zc::holder {
namespace {

/** All pages that are read, in one go through the memory. */
std::multiset<std::string> all_pages(rank_memory &memory)
{
    std::multiset<std::string> found;
    memory.rewind();
    for (read_memory next; memory.read(next);) {
        EXPECT_LE(next.pages.size(), rank_memory::kAtOnce);
        std::size_t bytes = 0;
        for (const page_range &each : next.ranges)
            bytes += each.end - each.begin;
        EXPECT_EQ(next.pages.size(), bytes);
        EXPECT_EQ(bytes % kPage, 0u);
        for (std::size_t at = 0; at < bytes; at += kPage)
            found.insert(next.pages.substr(at, kPage));
    }
    return found;
}

TEST(RankMemoryTest, ReadsEachPageThatWasWritten)
{
    constexpr std::size_t kMany = 1000; /* more than are read at once */
    char *at = pages_of_memory(kMany);
    forked other([&] { write_pages(at, 0, kMany); });
    rank_memory memory(other.pid());
    const auto found = all_pages(memory);
    for (std::size_t i = 0; i < kMany; i++)
        ASSERT_EQ(found.count(page_of(i)), 1u) << i;
    EXPECT_EQ(all_pages(memory).count(page_of(0)), 1u) << "the second time";
}

TEST(RankMemoryTest, LeavesOutWhatIsNotThere)
{
    constexpr std::size_t kMany = 100000; /* pages of address space */
    malloc_trim(0);                       /* of what tests before this one have had */
    char *at = pages_of_memory(kMany);
    forked other([&] {
        write_pages(at + 7 * kPage, 7, 1);
        write_pages(at + (kMany - 1) * kPage, 8, 1);
    });
    rank_memory memory(other.pid());
    const auto found = all_pages(memory);
    EXPECT_EQ(found.count(page_of(7)), 1u);
    EXPECT_EQ(found.count(page_of(8)), 1u);
    EXPECT_LT(found.size(), kMany / 2);
}

TEST(RankMemoryTest, LeavesOutWhatIsShared)
{
    char *shared = pages_of_memory(1, MAP_SHARED);
    forked other([&] { write_pages(shared, 1, 1); });
    rank_memory memory(other.pid());
    EXPECT_EQ(all_pages(memory).count(page_of(1)), 0u);
}

/** In the middle of a mapping that was there when its list was made. */
TEST(RankMemoryTest, ReadsTheRestIfAPartIsUnmappedMeanwhile)
{
    constexpr std::size_t kMany = 6 * rank_memory::kAtOnce / kPage;
    char *at = pages_of_memory(kMany);
    char *told = pages_of_memory(1, MAP_SHARED);
    forked other([&] { write_pages(at, 0, kMany); },
                 [&] {
                     if (*static_cast<volatile char *>(told) == 1) {
                         munmap(at + rank_memory::kAtOnce, 2 * rank_memory::kAtOnce);
                         *static_cast<volatile char *>(told) = 2;
                     }
                 });
    rank_memory memory(other.pid());
    memory.rewind();
    *told = 1;
    while (*static_cast<volatile char *>(told) != 2)
        usleep(1000);
    std::multiset<std::string> found;
    for (read_memory next; memory.read(next);) {
        for (std::size_t i = 0; i < next.pages.size(); i += kPage)
            found.insert(next.pages.substr(i, kPage));
    }
    EXPECT_EQ(found.count(page_of(0)), 1u);
    EXPECT_EQ(found.count(page_of(kMany - 1)), 1u);
    EXPECT_EQ(found.count(page_of(2 * rank_memory::kAtOnce / kPage)), 0u);
}

TEST(RankMemoryTest, OfAProcessThatHasEndedThereIsNone)
{
    forked other([] {});
    rank_memory memory(other.pid());
    memory.rewind();
    other.end();
    read_memory next;
    while (memory.read(next))
        EXPECT_TRUE(next.pages.empty() && next.ranges.empty());
    memory.rewind();
    EXPECT_FALSE(memory.read(next));
}

} // namespace
} // namespace zc::holder

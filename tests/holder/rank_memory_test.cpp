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

/** Several parts of memory with nothing between, and what may not be read any more in the middle of
 * them: the one that it is in ends there, and those behind it are read. */
TEST(RankMemoryTest, ReadsTheOtherPartsIfOneMayNotBeReadAnyMore)
{
    constexpr std::size_t kParts = 4, kOfPart = 8, kApart = 2 * kOfPart; /* pages */
    char *at = pages_of_memory(kParts * kApart);
    char *told = pages_of_memory(1, MAP_SHARED);
    forked other(
        [&] {
            for (std::size_t part = 0; part < kParts; part++)
                write_pages(at + part * kApart * kPage, part * kApart, kOfPart);
        },
        [&] {
            if (*static_cast<volatile char *>(told) == 1) {
                mprotect(at + (kApart + 3) * kPage, kPage, PROT_NONE);
                mprotect(at + 2 * kApart * kPage, kPage, PROT_NONE);
                *static_cast<volatile char *>(told) = 2;
            }
        });
    rank_memory memory(other.pid());
    memory.rewind();
    *told = 1;
    while (*static_cast<volatile char *>(told) != 2)
        usleep(1000);
    std::set<std::uint64_t> found; /* pages, as their addresses are */
    const auto begin = reinterpret_cast<std::uint64_t>(at);
    for (read_memory next; memory.read(next);) {
        std::size_t content = 0;
        for (const page_range &each : next.ranges) {
            for (std::uint64_t page = each.begin; page < each.end;
                 page += kPage, content += kPage) {
                const std::uint64_t number = (page - begin) / kPage;
                if (page < begin || number >= kParts * kApart)
                    continue;
                EXPECT_EQ(next.pages.substr(content, kPage), page_of(number)) << number;
                found.insert(number);
            }
        }
        EXPECT_EQ(content, next.pages.size());
    }
    for (std::size_t page = 0; page < kOfPart; page++) {
        EXPECT_EQ(found.count(page), 1u) << page;
        EXPECT_EQ(found.count(kApart + page), page < 3 ? 1u : 0u) << page;
        EXPECT_EQ(found.count(2 * kApart + page), 0u) << page;
        EXPECT_EQ(found.count(3 * kApart + page), 1u) << page;
    }
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

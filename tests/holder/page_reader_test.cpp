/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_reader.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "forked.h"

namespace zc::holder {
namespace {

constexpr std::size_t kEach = 3; /* pages of a part */

/** Pages @number of all, and after them a half. */
void read_part_of(std::size_t number, std::string &pages)
{
    for (std::size_t i = 0; i < kEach; i++)
        pages += page_of(number * kEach + i);
    pages += std::string(kPage / 2, 'x');
}

class PageReaderTest : public ::testing::TestWithParam<unsigned> {};

/** Though they are read at once, and some take longer than others. */
TEST_P(PageReaderTest, ReturnsAllPartsInOrder)
{
    constexpr std::size_t kParts = 1000;
    known_pages there;
    there.add(there.sum_of(page_of(7)), 5 * kPage);
    page_reader all(
        kParts,
        [](std::size_t number, std::string &pages) {
            if (number % 97 == 0)
                usleep(2000);
            read_part_of(number, pages);
        },
        &there, GetParam());
    for (std::size_t number = 0; number < kParts; number++) {
        ASSERT_FALSE(all.is_at_end());
        const read_part part = all.next();
        std::string wanted;
        read_part_of(number, wanted);
        ASSERT_EQ(part.pages, wanted) << number;
        ASSERT_EQ(part.places.size(), kEach);
        for (std::size_t i = 0; i < kEach; i++)
            ASSERT_EQ(part.places[i],
                      number * kEach + i == 7 ? std::optional(5 * kPage) : std::nullopt);
    }
    EXPECT_TRUE(all.is_at_end());
}

TEST_P(PageReaderTest, FindsNothingWhereTheOtherHostHasNothing)
{
    page_reader all(1, read_part_of, nullptr, GetParam());
    EXPECT_EQ(all.next().places, std::vector<std::optional<std::uint64_t>>(kEach));
}

TEST_P(PageReaderTest, HasNoPartsAtAll)
{
    const page_reader none(0, read_part_of, nullptr, GetParam());
    EXPECT_TRUE(none.is_at_end());
}

TEST_P(PageReaderTest, ThrowsWhereAPartCannotBeRead)
{
    page_reader all(
        100,
        [](std::size_t number, std::string &pages) {
            if (number == 42)
                throw std::runtime_error("part 42");
            read_part_of(number, pages);
        },
        nullptr, GetParam());
    for (std::size_t number = 0; number < 42; number++)
        all.next();
    EXPECT_THROW(all.next(), std::runtime_error);
}

/** What is read ahead takes memory. */
TEST_P(PageReaderTest, ReadsNoMoreAheadThanItMay)
{
    std::atomic<std::size_t> begun{0};
    page_reader all(
        1000,
        [&](std::size_t number, std::string &pages) {
            begun++;
            read_part_of(number, pages);
        },
        nullptr, GetParam());
    usleep(50000);
    EXPECT_LE(begun, std::size_t{2} * GetParam());
    all.next();
    usleep(50000);
    EXPECT_LE(begun, std::size_t{2} * GetParam() + 1);
}

TEST_P(PageReaderTest, CanBeGivenUp)
{
    page_reader all(1000, read_part_of, nullptr, GetParam());
    all.next();
}

INSTANTIATE_TEST_SUITE_P(Threads, PageReaderTest, ::testing::Values(1, 2, 8));

} // namespace
} // namespace zc::holder

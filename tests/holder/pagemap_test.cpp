/* SPDX-License-Identifier: BSD-3-Clause */
#include "pagemap.h"

#include <fstream>

#include <gtest/gtest.h>

#include "error.h"
#include "memory_directory.h"

namespace zc::holder {
namespace {

constexpr std::uint64_t kLazy = 2, kPresent = 4;
constexpr std::uint64_t kHigh = 0x7ff79a752000;

std::string number(std::uint32_t value)
{
    return {reinterpret_cast<const char *>(&value), sizeof value};
}

std::string varint(std::uint64_t value)
{
    std::string bytes;
    for (; value >= 0x80; value >>= 7)
        bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}

std::string field(std::uint64_t which, std::uint64_t value)
{
    return varint(which << 3) + varint(value);
}

std::string message(const std::string &bytes)
{
    return number(static_cast<std::uint32_t>(bytes.size())) + bytes;
}

std::string entry(std::uint64_t address, std::uint64_t pages, std::uint64_t flags)
{
    return message(field(1, address) + field(2, 0) + field(4, flags) + field(5, pages));
}

class PagemapTest : public ::testing::Test {
  protected:
    void write(const std::string &bytes)
    {
        std::ofstream(directory_.path() + "/pagemap-7.img", std::ios::binary) << bytes;
    }
    void write_entries(const std::string &entries) { write(head_ + entries); }
    std::vector<page_range> read() const { return left_out(directory_.path(), 7); }

    const std::string head_ = number(0x54564319) + number(0x56084025) + message(field(1, 1));
    memory_directory directory_;
};

TEST_F(PagemapTest, OnlyWhatIsNotThereIsLeftOut)
{
    write_entries(entry(0x1000, 2, kPresent) + entry(0x8000, 3, kLazy | kPresent) +
                  entry(kHigh, 300, kLazy));
    const auto found = read();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].begin, kHigh);
    EXPECT_EQ(found[0].end, kHigh + 300 * 4096);
}

TEST_F(PagemapTest, WhatIsSideBySideIsOne)
{
    write_entries(entry(0x1000, 2, kLazy) + entry(0x3000, 1, kLazy) + entry(0x5000, 1, kLazy));
    const auto found = read();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].end, 0x4000U);
    EXPECT_EQ(found[1].begin, 0x5000U);
}

TEST_F(PagemapTest, NumbersOfPagesOfOlderVersionsAreRead)
{
    write_entries(message(field(1, 0x1000) + field(2, 9) + field(4, kLazy)));
    ASSERT_EQ(read().size(), 1U);
    EXPECT_EQ(read()[0].end, 0xa000U);
}

TEST_F(PagemapTest, NothingIsLeftOutOfAnEmptyOne)
{
    write_entries("");
    EXPECT_TRUE(read().empty());
}

TEST_F(PagemapTest, WhatIsNoneIsRefused)
{
    EXPECT_THROW(read(), error); /* it is not there */
    for (const std::string &bytes :
         {std::string(), number(1) + number(2), head_ + number(5), head_ + number(1) + "\x80",
          head_ + message("\x0f"), head_.substr(0, head_.size() - 1),
          head_ + message(std::string(12, '\xff'))}) {
        write(bytes);
        EXPECT_THROW(read(), error) << bytes.size();
    }
}

} // namespace
} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#include "crc32c.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace zc::holder {
namespace {

/** Bit by bit, by the reversed polynomial of Castagnoli. */
std::uint32_t by_bits(std::uint32_t crc, const std::string &bytes, std::size_t at, std::size_t size)
{
    crc = ~crc;
    for (std::size_t i = at; i < at + size; i++) {
        crc ^= static_cast<unsigned char>(bytes[i]);
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

TEST(Crc32cTest, IsThatOfTheLiterature)
{
    EXPECT_EQ(zc_crc32c(0, "123456789", 9), 0xe3069283u);
    EXPECT_EQ(zc_crc32c(0, std::string(32, '\0').data(), 32), 0x8a9136aau); /* RFC 3720, B.4 */
}

/** Bytes are summed in three lanes, as many as make whole ones. */
TEST(Crc32cTest, IsTheSameForAnyLength)
{
    std::string bytes;
    for (std::uint32_t i = 0; bytes.size() < 20'000; i++)
        bytes += static_cast<char>(i * i * 2654435761u >> 24);
    for (const std::size_t begin : {0, 1, 5}) {
        for (std::size_t size = 0; size + begin < bytes.size(); size += size < 40 ? 1 : 337)
            ASSERT_EQ(zc_crc32c(7, bytes.data() + begin, size), by_bits(7, bytes, begin, size))
                << begin << " " << size;
        for (const std::size_t size : {1359, 1360, 4079, 4080, 4081, 8160, 12'240})
            ASSERT_EQ(zc_crc32c(0, bytes.data() + begin, size), by_bits(0, bytes, begin, size))
                << begin << " " << size;
    }
}

TEST(Crc32cTest, GoesOnWhereItWas)
{
    const std::string bytes(9'999, 'x');
    const std::uint32_t first = zc_crc32c(0, bytes.data(), 5'001);
    EXPECT_EQ(zc_crc32c(first, bytes.data() + 5'001, 4'998), zc_crc32c(0, bytes.data(), 9'999));
}

} // namespace
} // namespace zc::holder

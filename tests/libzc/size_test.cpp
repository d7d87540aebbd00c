/* SPDX-License-Identifier: BSD-3-Clause */
#include "zc/zc.h"

#include <cerrno>
#include <cstdint>
#include <gtest/gtest.h>

namespace {

std::size_t parsed(const char *text)
{
    std::size_t bytes = 12345;
    EXPECT_EQ(zc_parse_size(text, &bytes), 0) << text;
    return bytes;
}

int error_of(const char *text)
{
    std::size_t bytes = 12345;
    int err = zc_parse_size(text, &bytes);
    EXPECT_EQ(bytes, 12345u) << "set although " << text << " is wrong";
    return err;
}

} // namespace

TEST(SizeTest, TakesPlainNumbers)
{
    EXPECT_EQ(parsed("0"), 0u);
    EXPECT_EQ(parsed("65536"), 65536u);
    EXPECT_EQ(parsed("18446744073709551615"), SIZE_MAX);
}

TEST(SizeTest, TakesUnitsInEitherCase)
{
    EXPECT_EQ(parsed("64k"), 65536u);
    EXPECT_EQ(parsed("64K"), 65536u);
    EXPECT_EQ(parsed("4M"), 4u << 20);
    EXPECT_EQ(parsed("1g"), 1u << 30);
}

TEST(SizeTest, TakesInfAndAuto)
{
    EXPECT_EQ(parsed("inf"), SIZE_MAX);
    EXPECT_EQ(parsed("auto"), 0u);
}

TEST(SizeTest, RefusesNull)
{
    std::size_t bytes;
    EXPECT_EQ(zc_parse_size(nullptr, &bytes), -EINVAL);
    EXPECT_EQ(zc_parse_size("1", nullptr), -EINVAL);
}

TEST(SizeTest, RefusesWhatIsNoNumber)
{
    for (const char *text : {"", " ", "k", "-1", "+1", " 1", "1 k", "0x10", "1.5M", "infinite"})
        EXPECT_EQ(error_of(text), -EINVAL) << '"' << text << '"';
}

TEST(SizeTest, RefusesUnknownOrRepeatedUnits)
{
    for (const char *text : {"1t", "1kk", "1kB", "1b"})
        EXPECT_EQ(error_of(text), -EINVAL) << text;
}

TEST(SizeTest, RefusesWhatDoesNotFit)
{
    EXPECT_EQ(error_of("18446744073709551616"), -ERANGE);
    EXPECT_EQ(error_of("18014398509481984k"), -ERANGE);
    EXPECT_EQ(parsed("18014398509481983k"), 18014398509481983u << 10);
}

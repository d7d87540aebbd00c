/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "error.h"
#include "layout.h"

namespace zc::migrate {
namespace {

using parts = std::vector<layout::part>;

int code_of(parts of, std::int64_t extent)
{
    try {
        layout(std::move(of), extent);
        return 0;
    } catch (const error &problem) {
        return problem.code();
    }
}

TEST(LayoutTest, ElementsOfOneTypeAreUnits)
{
    const layout row({{0, element::f64, 12}}, 96);
    EXPECT_TRUE(row.is_dense());
    EXPECT_EQ(row.units(), 12u);
    EXPECT_EQ(row.unit_bytes(), 8u);
    EXPECT_EQ(row.name(), "float64[12]");
    EXPECT_FALSE(layout({{0, element::f64, 12}}, 104).is_dense());
    EXPECT_FALSE(layout({{8, element::f64, 12}}, 96).is_dense());
    EXPECT_FALSE(layout({{8, element::f64, 1}, {0, element::f64, 1}}, 16).is_dense());
}

TEST(LayoutTest, WhatRepeatsIsOneUnit)
{
    parts all;
    for (int i = 0; i < 500; i++) {
        all.push_back({i * 48, element::f64, 3});
        all.push_back({i * 48 + 32, element::i32, 1});
    }
    const layout list(all, 500 * 48);
    EXPECT_EQ(list.name(), "{float64[3],int32}[500]");
    EXPECT_EQ(list.unit_bytes(), 28u);
    EXPECT_EQ(list.units(), 500u);
    /* The end of one and the beginning of the next are alike. */
    EXPECT_EQ(layout({{0, element::i32, 1},
                      {8, element::f64, 1},
                      {16, element::i32, 2},
                      {24, element::f64, 1},
                      {32, element::i32, 1}},
                     40)
                  .name(),
              "{int32,float64,int32}[2]");
    EXPECT_EQ(layout({{0, element::i32, 1}, {8, element::f64, 2}}, 24).name(),
              "{int32,float64[2]}");
}

TEST(LayoutTest, PacksAndUnpacksAnyPart)
{
    /* Out of order, with gaps, one part before the address. */
    const layout odd({{16, element::u8, 3}, {-4, element::u8, 2}, {5, element::u8, 4}}, 24);
    EXPECT_EQ(odd.begin(), -4);
    EXPECT_EQ(odd.end(3), 67);
    std::vector<std::byte> memory(80), whole(27);
    for (std::size_t i = 0; i < memory.size(); i++)
        memory[i] = static_cast<std::byte>(i);
    odd.pack(memory.data() + 4, 0, whole);
    const int wanted[] = {20, 21, 22, 0, 1, 9, 10, 11, 12, 44, 45, 46, 24, 25};
    for (std::size_t i = 0; i < std::size(wanted); i++)
        EXPECT_EQ(static_cast<int>(whole[i]), wanted[i]) << i;
    for (std::size_t first = 0; first < whole.size(); first++)
        for (std::size_t length = 1; first + length <= whole.size(); length++) {
            std::vector<std::byte> some(length);
            odd.pack(memory.data() + 4, first, some);
            ASSERT_EQ(0, std::memcmp(some.data(), whole.data() + first, length));
        }
    std::vector<std::byte> back(80, std::byte{0xee});
    for (std::size_t first = 0; first < whole.size(); first += 5)
        odd.unpack(back.data() + 4, first,
                   std::span(whole).subspan(first, std::min<std::size_t>(5, 27 - first)));
    std::vector<std::byte> again(27);
    odd.pack(back.data() + 4, 0, again);
    EXPECT_EQ(again, whole);
    EXPECT_EQ(std::ranges::count(back, std::byte{0xee}), 80 - 27) << "wrote into a gap";
}

TEST(LayoutTest, RefusesWhatItCannotKeep)
{
    EXPECT_EQ(code_of({}, 8), EINVAL);
    EXPECT_EQ(code_of({{0, element::f64, 0}}, 8), EINVAL);
    EXPECT_EQ(code_of({{0, element::f64, 1}}, -8), ENOTSUP);
    EXPECT_EQ(code_of(parts(layout::kMostParts + 1, {0, element::u8, 1}), 1), ENOTSUP);
    EXPECT_EQ(code_of({{0, element::f64, 1 << 17}, {1 << 20, element::i32, 1}}, 2 << 20), ENOTSUP);
    parts unlike;
    for (std::size_t i = 0; i <= layout::kMostMembers; i++)
        unlike.push_back(
            {static_cast<std::int64_t>(i) * 1000, i % 2 ? element::u8 : element::f32, i + 1});
    EXPECT_EQ(code_of(unlike, 1 << 20), ENOTSUP);
}

} // namespace
} // namespace zc::migrate

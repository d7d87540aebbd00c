/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot.h"

#include <gtest/gtest.h>

using namespace zc;

TEST(SlotTest, HasRoomForAnyOffset)
{
    for (placement place : {placement::page, placement::table, placement::huge})
        for (std::size_t len : {std::size_t{1}, kPage, kPage + 1, std::size_t{100'000},
                                std::size_t{5} << 20, std::size_t{70} << 20}) {
            slot_kind kind = slot_kind_for(place, len);
            std::size_t unit = place == placement::page ? kPage : kHuge;
            addr_t last = slot_place(kind, range_at(0, kind.span_bytes), unit - 1);
            EXPECT_LE(last + len, kind.span_bytes) << len;
        }
}

TEST(SlotTest, WastesAtMostAQuarterAndOneUnit)
{
    for (std::size_t len = kPage; len < std::size_t{64} << 20; len += len / 7 + 1) {
        slot_kind kind = slot_kind_for(placement::page, len);
        EXPECT_LE(kind.span_bytes, round_up(len, kPage) * 5 / 4 + 2 * kPage) << len;
    }
}

TEST(SlotTest, SimilarLengthsShareAKind)
{
    EXPECT_EQ(slot_kind_for(placement::page, 1'000'000), slot_kind_for(placement::page, 1'040'000));
    EXPECT_NE(slot_kind_for(placement::page, 1 << 20), slot_kind_for(placement::table, 1 << 20));
}

TEST(SlotTest, PlacesDataCongruently)
{
    range span = range_at(64 * kHuge, 8 * kHuge);
    slot_kind small = slot_kind_for(placement::page, 4 * kHuge);
    slot_kind table = slot_kind_for(placement::table, 4 * kHuge);
    addr_t expected = 1000 * kHuge + 5 * kPage + 16;
    EXPECT_EQ(slot_place(small, span, expected), span.begin + 16);
    EXPECT_EQ(slot_place(table, span, expected), span.begin + 5 * kPage + 16);
}

TEST(SlotTest, KeepsCutsSortedAndInside)
{
    slot s;
    s.span = {100, 200};
    for (addr_t at : {150u, 120u, 150u, 100u, 200u, 50u, 180u})
        s.add_cut(at);
    EXPECT_EQ(s.cuts, (std::vector<addr_t>{120, 150, 180}));
}

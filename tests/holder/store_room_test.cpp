/* SPDX-License-Identifier: BSD-3-Clause */
#include "store_room.h"

#include <gtest/gtest.h>

namespace zc::holder {
namespace {

constexpr std::uint64_t kEnough = std::uint64_t{1} << 40;

TEST(StoreRoomTest, AStoreTakesARanksMemoryTwice)
{
    EXPECT_EQ(room_ahead(1000, {kEnough, kEnough}), 2000u);
    EXPECT_EQ(room_ahead(1000, {3000, 3000}), 2000u);
    EXPECT_EQ(room_ahead(1000, {2999, 3000}), 1999u);
    EXPECT_EQ(room_ahead(1000, {3000, 2999}), 1999u);
}

/** It is not worth it then, or it would not fit. */
TEST(StoreRoomTest, AStoreForLessThanAQuarterMoreIsNone)
{
    EXPECT_EQ(room_ahead(1000, {2250, 2250}), 1250u);
    EXPECT_EQ(room_ahead(1000, {2249, 2250}), 0u);
    EXPECT_EQ(room_ahead(1000, {0, kEnough}), 0u);
    EXPECT_EQ(room_ahead(kEnough, {kEnough, kEnough}), 0u);
}

/** It is there beside the image, where images are, and beside both in memory. */
TEST(StoreRoomTest, ARankThatRunsBeforeItHasItsMemoryNeedsMore)
{
    EXPECT_EQ(room_to_fill(1000, {4000, 3000}), 2000u);
    EXPECT_EQ(room_to_fill(1000, {3250, 2250}), 1250u);
    EXPECT_EQ(room_to_fill(1000, {3249, 2250}), 0u);
    EXPECT_EQ(room_to_fill(1000, {3250, 2249}), 0u);
}

TEST(StoreRoomTest, ThisHostHasSome)
{
    EXPECT_GT(memory_of_host().available, 0u);
    EXPECT_GT(memory_of_host().shared, 0u);
}

} // namespace
} // namespace zc::holder

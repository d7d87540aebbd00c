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
    EXPECT_GT(memory_of_host().of_kernel, 0u);
    EXPECT_GT(memory_of_host().allowed, 0u);
    EXPECT_GT(memory_of_host().shared, 0u);
}

TEST(StoreRoomTest, NoNumberIsTooLarge)
{
    for (const std::uint64_t kib : {~std::uint64_t{0}, std::uint64_t{1} << 63, kEnough}) {
        EXPECT_EQ(room_ahead(kib, {kEnough, kEnough}), 0u);
        EXPECT_EQ(room_to_fill(kib, {kEnough, kEnough}), 0u);
        const std::string why = why_no_room("h", kib, {kEnough, kEnough}, {kEnough, kEnough});
        EXPECT_NE(why, "");
    }
    EXPECT_EQ(room_ahead(1000, {~std::uint64_t{0}, ~std::uint64_t{0}}), 2000u);
}

TEST(StoreRoomTest, AnOfferIsOfWhatIsAskedFor)
{
    const host_memory enough{kEnough, kEnough};
    const room_offer lazy = offer_of({1000}, enough);
    EXPECT_TRUE(lazy.lazy);
    EXPECT_EQ(lazy.store, 2000u);
    EXPECT_EQ(lazy.together.available, 4000u);
    EXPECT_EQ(lazy.together.shared, 3000u);
    const room_offer ahead = offer_of({.kib = 1000, .lazy = false}, enough);
    EXPECT_FALSE(ahead.lazy);
    EXPECT_EQ(ahead.store, 2000u);
    EXPECT_EQ(ahead.together.available, 3000u);
    EXPECT_EQ(ahead.together.shared, 3000u);
    const room_offer plain = offer_of({.kib = 1000, .ahead = false, .lazy = false}, enough);
    EXPECT_EQ(plain.store, 0u);
    EXPECT_EQ(plain.together.available, 2000u);
    EXPECT_EQ(plain.together.shared, 1000u);
    const room_offer small = offer_of({1000}, {3300, 2400});
    EXPECT_TRUE(small.lazy);
    EXPECT_EQ(small.store, 1300u);
    EXPECT_EQ(small.together.available, 3300u);
    EXPECT_EQ(offer_of({1000}, {2249, 2250}).store, 0u);
    EXPECT_EQ(offer_of({1000}, {2249, 2250}).together.available, 2000u);
}

TEST(StoreRoomTest, WhatHasNoRoomIsToldWhy)
{
    constexpr std::uint64_t kMib = 1024;
    EXPECT_EQ(why_no_room("h2", 1000, {2000, 1000}, {2000, 1000}), "");
    EXPECT_EQ(why_no_room("h2", 1500 * kMib, {2500 * kMib, kEnough}, {2500 * kMib, kEnough}),
              "h2 has 2500 MiB of memory, and 3000 MiB are needed");
    EXPECT_EQ(why_no_room("h2", 1500 * kMib, {4000 * kMib, kEnough}, {2500 * kMib, kEnough}),
              "h2 has 4000 MiB of memory, of which 1500 MiB are promised to other ranks, and 3000 "
              "MiB are needed");
    EXPECT_EQ(why_no_room("h2", 300 * kMib, {kEnough, 400 * kMib}, {kEnough, 200 * kMib}),
              "h2 has 400 MiB of memory in /dev/shm, of which 200 MiB are promised to other ranks, "
              "and 300 MiB are needed");
}

/** It may be tried where no other comes, as an image may be smaller than the rank. */
TEST(StoreRoomTest, ARankLargerThanThePlaceOfImagesComesAlone)
{
    constexpr std::uint64_t kGiB = 1 << 20;
    const host_memory has{64 * kGiB, 8 * kGiB};
    EXPECT_EQ(why_no_room("h", 9 * kGiB, has, has), "");
    EXPECT_EQ(why_no_room("h", 300, {kGiB, 200}, {kGiB, 200}), "");
    EXPECT_NE(why_no_room("h", 300, {kGiB, 200}, {kGiB, 100}), "");
    EXPECT_NE(why_no_room("h", 9 * kGiB, has, {60 * kGiB, 7 * kGiB}), "");
    EXPECT_NE(why_no_room("h", 9 * kGiB, has, {60 * kGiB, 0}), "");
}

TEST(StoreRoomTest, ARankLeavesWhenThereIsRoomForItsImageOrNoOtherImage)
{
    constexpr std::uint64_t kMib = 1024;
    for (const bool others : {false, true}) {
        EXPECT_EQ(why_not_yet("h", 1000, {1000, 1000}, others), "");
        EXPECT_EQ(why_not_yet("h", 300 * kMib, {kEnough, 200 * kMib}, others) == "", !others);
        EXPECT_EQ(why_not_yet("h", 300 * kMib, {200 * kMib, kEnough}, others) == "", !others);
    }
    EXPECT_EQ(why_not_yet("h", 300 * kMib, {200 * kMib, kEnough}, true),
              "h has 200 MiB of memory for images beside those of other ranks, and 300 MiB are "
              "needed");
}

} // namespace
} // namespace zc::holder

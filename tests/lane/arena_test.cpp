/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_arena.h"

#include "zcl/lane.h"

#include <gtest/gtest.h>

using namespace zcl;

namespace {
constexpr std::size_t kBytes = 64 * ZCL_PAGE;
std::uintptr_t offset(const char *at)
{
    return reinterpret_cast<std::uintptr_t>(at) % ZCL_PAGE;
}
} // namespace

TEST(ArenaTest, RangesBeginWhereTheyAreAskedTo)
{
    arena a(kBytes);
    for (std::uint64_t at : {0ULL, 1ULL, 4095ULL, 3 * 4096ULL + 17}) {
        const arena::range r = a.hold(at, 1, 3 * ZCL_PAGE);
        ASSERT_EQ(r.len, 3 * ZCL_PAGE);
        EXPECT_EQ(offset(r.at), at % ZCL_PAGE);
        r.at[0] = r.at[r.len - 1] = 1;
    }
}

TEST(ArenaTest, RangesDoNotOverlap)
{
    arena a(kBytes);
    char *end = nullptr;
    for (int i = 0; i < 20; i++) {
        const arena::range r = a.hold(100, 5 * ZCL_PAGE, 5 * ZCL_PAGE);
        if (r.len == 0) {
            EXPECT_GE(i, 12);
            return;
        }
        EXPECT_GE(r.at, end);
        end = r.at + r.len;
    }
    FAIL() << "more than there is";
}

TEST(ArenaTest, GivesTheWidestGapIfNoneIsWideEnough)
{
    arena a(kBytes);
    const arena::range first = a.hold(0, 8 * ZCL_PAGE, 8 * ZCL_PAGE);
    const arena::range second = a.hold(0, 40 * ZCL_PAGE, 40 * ZCL_PAGE);
    ASSERT_TRUE(first.len && second.len);
    EXPECT_TRUE(a.release(first.at));
    const arena::range r = a.hold(0, 1, kBytes);
    EXPECT_GE(r.at, second.at + second.len);
    EXPECT_GE(r.len, 16 * ZCL_PAGE);
    EXPECT_EQ(a.hold(0, 9 * ZCL_PAGE, kBytes).len, 0u);
    EXPECT_EQ(a.hold(0, 1, kBytes).at, first.at);
}

TEST(ArenaTest, ReleasesOnlyWhatIsHeld)
{
    arena a(kBytes);
    char elsewhere;
    EXPECT_FALSE(a.release(&elsewhere));
    const arena::range r = a.hold(0, 1, ZCL_PAGE);
    EXPECT_FALSE(a.release(&elsewhere));
    EXPECT_FALSE(a.release(r.at + 1));
    EXPECT_TRUE(a.release(r.at));
    EXPECT_FALSE(a.release(r.at));
    EXPECT_TRUE(a.idle());
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "refusal.h"

#include <gtest/gtest.h>
#include <set>

using namespace zc;

namespace {

constexpr addr_t kAt = 64 * kHuge;
constexpr range kLong{kAt, kAt + 16 * kHuge};

} // namespace

TEST(RefusalTest, EveryCauseOfAPageOrMappingHasItsReason)
{
    EXPECT_EQ(refusal_reason(ZC_CAUSE_UNMAPPED), ZC_REASON_UNMAPPED);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_ACCESS), ZC_REASON_READ_ONLY);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_FILE), ZC_REASON_FILE);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_SHARED), ZC_REASON_SHARED);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_HUGETLB), ZC_REASON_HUGETLB);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_SPECIAL), ZC_REASON_STACK);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_LOCKED), ZC_REASON_LOCKED);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_USERFAULTFD), ZC_REASON_USERFAULTFD);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_POLICY), ZC_REASON_POLICY);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_COW), ZC_REASON_COW);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_PINNED), ZC_REASON_PINNED);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_PAGE_SIZE), ZC_REASON_PAGE_SIZE);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_NOTIFIER), ZC_REASON_NOTIFIER);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_RACED), ZC_REASON_RACED);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_INTERRUPTED), ZC_REASON_RACED);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_NO_MEMORY), ZC_REASON_NO_MEMORY);
    EXPECT_EQ(refusal_reason(ZC_CAUSE_POISONED), ZC_REASON_POISONED);
}

TEST(RefusalTest, MistakesAndTheUnknownAreTheKernels)
{
    for (zc_cause cause : {ZC_CAUSE_NONE, ZC_CAUSE_ALIGNMENT, ZC_CAUSE_OVERLAP, ZC_CAUSE_COUNT}) {
        EXPECT_EQ(refusal_reason(cause), ZC_REASON_SYSCALL);
        EXPECT_EQ(refused_part(cause, kLong, 0), kLong) << "no point in going on";
    }
}

TEST(RefusalTest, APageIsRefusedByItself)
{
    EXPECT_EQ(refused_part(ZC_CAUSE_PINNED, kLong, 0), range_at(kAt, kPage));
    EXPECT_EQ(refused_part(ZC_CAUSE_COW, range_at(kAt, kPage), 0), range_at(kAt, kPage));
}

TEST(RefusalTest, AHugePageIsRefusedToItsEnd)
{
    range rest{kAt + 5 * kPage, kLong.end};
    EXPECT_EQ(refused_part(ZC_CAUSE_PAGE_SIZE, rest, 0), (range{rest.begin, kAt + kHuge}));
    EXPECT_EQ(refused_part(ZC_CAUSE_PAGE_SIZE, kLong, 0), range_at(kAt, kHuge));
    range inside{kAt + 5 * kPage, kAt + 9 * kPage};
    EXPECT_EQ(refused_part(ZC_CAUSE_PAGE_SIZE, inside, 0), inside);
}

TEST(RefusalTest, WhatHoldsForTheProcessIsRefusedAtOnce)
{
    EXPECT_EQ(refused_part(ZC_CAUSE_NOTIFIER, kLong, 0), kLong);
}

/* However long the refused stretch, whatever the cause: few calls, and not
 * twice as much copied. */
TEST(RefusalTest, TakesLogarithmicallyManySteps)
{
    for (int i = ZC_CAUSE_NONE; i <= ZC_CAUSE_COUNT; i++) {
        auto cause = static_cast<zc_cause>(i);
        range rest = kLong;
        unsigned steps = 0;
        std::size_t last = 0;
        for (; !rest.empty(); steps++) {
            range refused = refused_part(cause, rest, steps);
            ASSERT_EQ(refused.begin, rest.begin);
            ASSERT_FALSE(refused.empty());
            ASSERT_TRUE(rest.contains(refused));
            ASSERT_TRUE(refused.end == rest.end || refused.size() >= last);
            last = refused.size();
            rest.begin = refused.end;
        }
        EXPECT_LE(steps, 14u) << i;
    }
    EXPECT_EQ(refused_part(ZC_CAUSE_COW, kLong, 1000).size(), kLong.size());
}

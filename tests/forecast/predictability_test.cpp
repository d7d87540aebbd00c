/* SPDX-License-Identifier: BSD-3-Clause */
#include "predictability.h"

#include <gtest/gtest.h>

#include "made_up_run.h"

namespace zc::forecast::test {

namespace {

predictability of_addresses(std::uint64_t stride)
{
    made_up_run made(2);
    std::uint64_t addr = 0x100000;
    for (int i = 0; i < 50; i++) {
        const std::int64_t at = 100 * kMs * (i + 1);
        made.message(0, 1, 1 << 20, {at, at, at + 60, at + 50, at + 50, at + 60}, addr);
        addr = addr * 6364136223846793005 * stride + 0x100000 + stride;
    }
    return prediction_of(made.end({9000 * kMs, 9000 * kMs}));
}

TEST(PredictabilityTest, OneBufferIsForeseen)
{
    const predictability p = of_addresses(0);
    EXPECT_EQ(p.asked, 50u);
    EXPECT_GE(p.right, 45u);
    EXPECT_EQ(p.right + p.wrong + p.unknown, p.asked);
}

TEST(PredictabilityTest, BuffersWithoutAnOrderAreNot)
{
    const predictability p = of_addresses(1);
    EXPECT_EQ(p.asked, 50u);
    EXPECT_LE(p.right, 10u);
    EXPECT_LT(p.hit_rate(), 0.21);
}

TEST(PredictabilityTest, SmallMessagesAreNotAsked)
{
    made_up_run made(2);
    made.message(0, 1, 1000, {10, 10, 11, 30, 30, 31});
    const predictability p = prediction_of(made.end({100, 100}));
    EXPECT_EQ(p.asked, 0u);
    EXPECT_EQ(p.hit_rate(), 1);
}

} // namespace

} // namespace zc::forecast::test

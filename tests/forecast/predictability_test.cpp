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
    return prediction_of(made.end({9000 * kMs, 9000 * kMs})).total;
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
    const prediction p = prediction_of(made.end({100, 100}));
    EXPECT_EQ(p.total.asked, 0u);
    EXPECT_EQ(p.total.hit_rate(), 1);
    EXPECT_EQ(p.answers[1], std::vector<answer>{answer::not_asked});
}

/* An engine that has seen nothing has no answer; then it is asked for one posted in time (not at
 * all), and for one that is not. */
TEST(PredictabilityTest, AnswersAreThoseOfPointToPointReceives)
{
    made_up_run made(2);
    made.message(0, 1, 1 << 20, {10, 10, 31, 30, 30, 31});
    made.message(0, 1, 1 << 20, {50, 50, 51, 40, 40, 51});
    made.message(0, 1, 1 << 20, {60, 60, 71, 70, 70, 71});
    zct::run run = made.end({100, 100});
    zct::receive of_collective = run.ranks[1].receives[1];
    of_collective.kind = ZCT_BCAST;
    of_collective.send_number = -1;
    run.ranks[1].receives.insert(run.ranks[1].receives.begin(), of_collective);
    const prediction p = prediction_of(run);
    ASSERT_EQ(p.answers.size(), 2u);
    EXPECT_TRUE(p.answers[0].empty());
    ASSERT_EQ(p.answers[1].size(), 3u);
    EXPECT_EQ(p.answers[1][0], answer::unknown);
    EXPECT_EQ(p.answers[1][1], answer::not_asked);
    EXPECT_EQ(p.total.asked, 2u);
    const std::vector<message> messages = messages_of(run, p);
    ASSERT_EQ(messages.size(), 3u);
    for (std::size_t i = 0; i < messages.size(); i++)
        EXPECT_EQ(messages[i].foreseen, p.answers[1][i]);
}

} // namespace

} // namespace zc::forecast::test

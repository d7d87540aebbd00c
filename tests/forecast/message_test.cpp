/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <gtest/gtest.h>

#include "made_up_run.h"

namespace zc::forecast::test {

namespace {

constexpr std::uint64_t kBytes = 4 << 20;

message only(const message_times &t, std::uint64_t bytes = kBytes)
{
    made_up_run made(2);
    made.message(0, 1, bytes, t);
    const std::vector<message> all = messages_of(made.end({200 * kMs, 200 * kMs}));
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
}

TEST(MessageTest, ALateReceiverHoldsItsSender)
{
    const message m = only({10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    EXPECT_TRUE(m.unexpected());
    EXPECT_FALSE(m.surely_eager());
    EXPECT_EQ(m.held_ns(), 50 * kMs);
    EXPECT_EQ(m.transfer_wait_ns(), 4 * kMs);
    EXPECT_EQ(m.sender_wait_ns(), 0);
    EXPECT_EQ(m.lost_overlap_ns(), 0);
    EXPECT_FALSE(m.one_host);
}

TEST(MessageTest, ASendThatWasTakenHoldsNoSender)
{
    const message m = only({10 * kMs, 10 * kMs, 11 * kMs, 60 * kMs, 60 * kMs, 61 * kMs}, 8);
    EXPECT_TRUE(m.unexpected());
    EXPECT_TRUE(m.surely_eager());
    EXPECT_EQ(m.held_ns(), 0);
}

TEST(MessageTest, ANonblockingSendIsHeldFromItsWait)
{
    const message m = only({10 * kMs, 40 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    EXPECT_EQ(m.held_ns(), 20 * kMs);
}

TEST(MessageTest, ALateSenderKeepsTheReceiverWaiting)
{
    const message m = only({60 * kMs, 60 * kMs, 64 * kMs, 10 * kMs, 10 * kMs, 64 * kMs});
    EXPECT_FALSE(m.unexpected());
    EXPECT_EQ(m.sender_wait_ns(), 50 * kMs);
    EXPECT_EQ(m.held_ns(), 0);
    EXPECT_EQ(m.transfer_wait_ns(), 0);
}

/* Posted on both sides at 11 ms, but both wait for all of it at 60. */
TEST(MessageTest, WaitsOfBothSidesLoseOverlap)
{
    const message m = only({11 * kMs, 60 * kMs, 64 * kMs, 10 * kMs, 60 * kMs, 64 * kMs});
    EXPECT_EQ(m.lost_overlap_ns(), 8 * kMs);
    EXPECT_EQ(m.sender_wait_ns(), 0);
}

TEST(MessageTest, OnlyWhatHasBothEndsIsAMessage)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {1, 1, 4, 2, 2, 4});
    zct::run run = made.end({9, 9});
    run.ranks[1].receives[0].send_number = -1;
    EXPECT_TRUE(messages_of(run).empty());
}

} // namespace

} // namespace zc::forecast::test

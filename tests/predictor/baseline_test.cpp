/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

using namespace zcp_test;

namespace {

TEST(LastTest, AnswersTheLastAddressOfSenderAndTag)
{
    engine engine(ZCP_LAST);
    engine.receive(envelope(1, 1, 1000), 0x1000);
    engine.receive(envelope(1, 1, 2000), 0x2000);
    engine.receive(envelope(1, 2, 1000), 0x3000);
    EXPECT_EQ(0x2000u, engine.arrive(envelope(1, 1, 1000)).addr);
    EXPECT_EQ(0x3000u, engine.arrive(envelope(1, 2, 5)).addr);
    EXPECT_EQ(0u, engine.arrive(envelope(2, 1, 1000)).ahead);
}

TEST(LastTest, TellsCommunicatorsApart)
{
    engine engine(ZCP_LAST);
    engine.receive({1, 1, 1, 8}, 0x1000);
    engine.receive({2, 1, 1, 8}, 0x2000);
    EXPECT_EQ(0x1000u, engine.arrive({1, 1, 1, 8}).addr);
}

TEST(LastSizeTest, TellsSizesApart)
{
    engine engine(ZCP_LAST_SIZE);
    engine.receive(envelope(1, 1, 1000), 0x1000);
    engine.receive(envelope(1, 1, 2000), 0x2000);
    EXPECT_EQ(0x1000u, engine.arrive(envelope(1, 1, 1000)).addr);
    EXPECT_EQ(0u, engine.arrive(envelope(1, 1, 3000)).ahead);
}

TEST(LastSizeTest, IsWrongOnDoubleBuffersAndFallsSilent)
{
    engine engine(ZCP_LAST_SIZE);
    for (int i = 0; i < 100; i++)
        engine.settle(engine.arrive(envelope(1)), i % 2 ? 0xb000 : 0xa000);
    EXPECT_EQ(0u, engine.stats().hits);
    EXPECT_GT(engine.stats().unknown, 90u);
}

TEST(OffsetTest, AnswersTheOffsetOfALongMalloc)
{
    engine engine(ZCP_OFFSET);
    const zcp_landing_t landing = engine.arrive(envelope(1));
    EXPECT_EQ(0x10u, landing.addr);
    EXPECT_EQ(4096u, landing.modulus);
    EXPECT_TRUE(engine.next(4).empty());
    engine.settle(landing, 0x7f0000001010);
    EXPECT_EQ(1u, engine.stats().hits); /* no more than the class was answered */
    EXPECT_EQ(0u, engine.stats().misses);
}

TEST(LastSenderTest, KnowsNoTag)
{
    engine engine(ZCP_LAST_SENDER);
    engine.receive(envelope(1, 7), 0xa000);
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1, 8)).addr);
    EXPECT_EQ(0u, engine.arrive(envelope(1, 8, 99)).ahead);
}

TEST(OffsetTest, ConfidenceFollowsCongruence)
{
    engine engine(ZCP_OFFSET);
    for (uint64_t i = 0; i < 20; i++) {
        engine.settle(engine.arrive(envelope(1)), i * 0x1000 + 0x10);
        engine.settle(engine.arrive(envelope(2)), i * 0x1000 + 0x20);
    }
    EXPECT_GT(engine.arrive(envelope(1)).confidence, 0.9f);
    EXPECT_EQ(0u, engine.arrive(envelope(2)).ahead);
}

} // namespace

/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

using namespace zcp_test;

namespace {

/** Share of right answers when every message of @stream is unexpected, @depth in flight. */
double landed(engine &engine, const std::vector<zcp_receive_t> &stream, size_t depth = 1)
{
    const uint64_t hits = engine.stats().hits;
    std::vector<zcp_landing_t> open;
    for (size_t i = 0; i < stream.size() + depth - 1; i++) {
        if (i < stream.size())
            open.push_back(engine.arrive(stream[i].envelope));
        if (i + 1 >= depth)
            engine.settle(open[i + 1 - depth], stream[i + 1 - depth].addr);
    }
    return static_cast<double>(engine.stats().hits - hits) / static_cast<double>(stream.size());
}

std::vector<zcp_receive_t> buffers(std::initializer_list<uint64_t> addrs, size_t total)
{
    std::vector<zcp_receive_t> period;
    for (uint64_t addr : addrs)
        period.push_back(to(envelope(1), addr));
    return repeated(period, total);
}

TEST(KeyedTest, OneReceiveIsEnoughForAConstantBuffer)
{
    engine engine;
    engine.receive(envelope(1), 0x5010);
    const zcp_landing_t landing = engine.arrive(envelope(1));
    EXPECT_EQ(0x5010u, landing.addr);
    EXPECT_EQ(1u, landing.ahead);
}

TEST(KeyedTest, ConfidenceGrowsWithSuccess)
{
    engine engine;
    engine.receive(envelope(1), 0x5010);
    const float first = engine.arrive(envelope(1)).confidence;
    engine.receive({to(envelope(2), 0x6010)}, 20);
    EXPECT_GT(engine.arrive(envelope(2)).confidence, first);
    EXPECT_GT(engine.arrive(envelope(2)).confidence, 0.95f);
}

TEST(KeyedTest, FollowsDoubleBuffersAtEveryDepth)
{
    for (const size_t depth : {1, 2, 3, 10, 16}) {
        engine engine;
        engine.receive(buffers({0xa000, 0xb000}, 6));
        EXPECT_EQ(1.0, landed(engine, buffers({0xa000, 0xb000}, 100), depth)) << depth;
    }
}

TEST(KeyedTest, FollowsTripleBuffersAtEveryDepth)
{
    for (const size_t depth : {1, 2, 3, 4, 10, 16}) {
        engine engine;
        engine.receive(buffers({0xa000, 0xb000, 0xc000}, 9));
        EXPECT_EQ(1.0, landed(engine, buffers({0xa000, 0xb000, 0xc000}, 99), depth)) << depth;
    }
}

TEST(KeyedTest, LearnsDoubleBuffersInTwoRounds)
{
    engine engine;
    engine.receive(buffers({0xa000, 0xb000}, 4));
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1)).addr);
    EXPECT_EQ(0xb000u, engine.arrive(envelope(1)).addr);
}

TEST(KeyedTest, FollowsNestedBuffers)
{
    /* A A B, three times, then C: period 10. */
    engine engine;
    const auto stream = buffers({1, 1, 2, 1, 1, 2, 1, 1, 2, 3}, 200);
    engine.receive(stream);
    EXPECT_EQ(1.0, landed(engine, stream));
    EXPECT_EQ(1.0, landed(engine, stream, 10));
}

TEST(KeyedTest, FollowsRingsOfBuffersOfAnyLength)
{
    for (const uint64_t ring : {4, 5, 6, 12, 32}) {
        std::vector<zcp_receive_t> round;
        for (uint64_t i = 0; i < ring; i++)
            round.push_back(to(envelope(1), 0x10000 + 0x1230 * (i * i)));
        engine engine;
        engine.receive(round, 2);
        EXPECT_EQ(1.0, landed(engine, repeated(round, 5 * ring))) << ring;
    }
}

/* NAS CG: 25 times one buffer, once another. A plain longest match would expect
 * the odd one after every repetition, since that is what followed last time. */
TEST(KeyedTest, ExpectsAnOddBufferNotBeforeItsTime)
{
    std::vector<zcp_receive_t> period(26, to(envelope(1), 0xa000));
    period.back().addr = 0xb000;
    engine engine;
    engine.receive(period);
    EXPECT_GT(landed(engine, repeated(period, 25)), 0.9);
    engine.receive(period.back());
    EXPECT_EQ(1.0, landed(engine, repeated(period, 26 * 10)));
}

TEST(KeyedTest, IsRightOnNestedLoops)
{
    engine engine;
    engine.receive(nested_period(), 2);
    EXPECT_EQ(1.0, landed(engine, repeated(nested_period(), 126 * 4)));
    EXPECT_EQ(1.0, landed(engine, repeated(nested_period(), 126 * 4), 10));
}

TEST(KeyedTest, NextFollowsNestedLoops)
{
    engine engine;
    engine.receive(nested_period(), 3);
    const auto stream = repeated(nested_period(), 126 * 4);
    EXPECT_EQ(1.0, accuracy(engine, stream, 1));
    EXPECT_GT(accuracy(engine, stream, 10), 0.98); /* the first nine are not asked for */
}

TEST(KeyedTest, RelearnsAfterAPhaseChangeInOneRound)
{
    engine engine;
    engine.receive(buffers({0xa000, 0xb000}, 1000));
    engine.receive(buffers({0xc000, 0xd000, 0xe000}, 6));
    EXPECT_EQ(1.0, landed(engine, buffers({0xc000, 0xd000, 0xe000}, 30)));
}

TEST(KeyedTest, AMovedBufferIsFollowedAtOnce)
{
    engine engine;
    engine.receive({to(envelope(1), 0xa000)}, 1000);
    engine.receive(envelope(1), 0xb000);
    EXPECT_EQ(0xb000u, engine.arrive(envelope(1)).addr);
}

TEST(KeyedTest, AKeyThatHasSettledCanVaryAgain)
{
    engine engine;
    engine.receive(buffers({0xa000, 0xb000}, 20));
    engine.receive(buffers({0xc000}, 200)); /* long enough to forget the rest */
    EXPECT_EQ(1.0, landed(engine, buffers({0xc000}, 20), 16));
    engine.receive(buffers({0xd000, 0xe000}, 4));
    EXPECT_EQ(1.0, landed(engine, buffers({0xd000, 0xe000}, 20), 2));
}

TEST(KeyedTest, OneOddAddressDoesNotBreakAPattern)
{
    engine engine;
    engine.receive(buffers({0xa000, 0xb000}, 20));
    engine.receive(envelope(1), 0xf000); /* instead of a000 */
    EXPECT_EQ(0xb000u, engine.arrive(envelope(1)).addr);
}

TEST(KeyedTest, DriftingSizesFallBackToSenderAndTag)
{
    engine engine;
    for (uint64_t i = 0; i < 40; i++)
        engine.receive(envelope(1, 1, 100000 + i), i % 2 ? 0xb000 : 0xa000);
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1, 1, 777)).addr);
    EXPECT_EQ(0xb000u, engine.arrive(envelope(1, 1, 888)).addr); /* the claim above counts */
}

TEST(KeyedTest, DriftingSizesKeepTheHorizonToo)
{
    engine engine;
    engine.receive({to(envelope(1, 1, 1), 0xa000), to(envelope(1, 1, 2), 0xa000)});
    for (uint64_t i = 0; i < 16; i++)
        EXPECT_EQ(i + 1, engine.arrive(envelope(1, 1, 100 + i)).ahead);
    EXPECT_EQ(0u, engine.arrive(envelope(1, 1, 500)).ahead);
}

/* Of many new sizes most have no entry of their own: the one of their class must not count them
 * twice. */
TEST(KeyedTest, DriftingSizesInFlightAreCountedOnce)
{
    engine engine;
    for (uint64_t i = 0; i < 40; i++)
        engine.receive(envelope(1, 1, 100000 + i), i % 2 ? 0xb000 : 0xa000);
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1, 1, 100041)).addr);
    EXPECT_EQ(0xb000u, engine.arrive(envelope(1, 1, 100042)).addr);
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1, 1, 100043)).addr);
}

TEST(KeyedTest, AKnownSizeIsPreferredToSenderAndTag)
{
    engine engine;
    for (int i = 0; i < 50; i++)
        engine.receive(envelope(1, 1, 1000), 0xa000);
    engine.receive(envelope(1, 1, 99000), 0xb000);
    engine.receive(envelope(1, 1, 1000), 0xa000);
    EXPECT_EQ(0xb000u, engine.arrive(envelope(1, 1, 99000)).addr);
}

TEST(KeyedTest, SaysNothingOfAnUnseenSender)
{
    engine engine;
    engine.receive(envelope(1), 0xa000);
    EXPECT_EQ(0u, engine.arrive(envelope(2)).ahead);
}

TEST(KeyedTest, FallsSilentOnNoiseAndRecovers)
{
    engine engine;
    std::mt19937 random(9);
    for (int i = 0; i < 2000; i++)
        engine.settle(engine.arrive(envelope(1)), uint64_t{random()} * 16);
    zcp_stats_t before = engine.stats();
    EXPECT_LT(before.misses, 100u);
    EXPECT_EQ(before.settled, before.misses + before.unknown);

    for (int i = 0; i < 20; i++)
        engine.settle(engine.arrive(envelope(1)), 0xa000);
    EXPECT_GT(engine.stats().hits, 15u);
}

TEST(KeyedTest, NoiseOfOneSenderDoesNotDisturbAnother)
{
    engine engine;
    std::mt19937 random(9);
    for (int i = 0; i < 10000; i++)
        engine.receive(envelope(static_cast<int32_t>(random() % 100), 1), uint64_t{random()});
    for (int i = 0; i < 4; i++)
        engine.receive(envelope(1000), i % 2 ? 0xb000 : 0xa000);
    for (int i = 0; i < 1000; i++)
        engine.receive(envelope(static_cast<int32_t>(random() % 100), 1), uint64_t{random()});
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1000)).addr);
}

} // namespace

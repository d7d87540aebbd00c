/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

using namespace zcp_test;

namespace {

const zcp_receive_t A = to(envelope(1), 0xa000);
const zcp_receive_t B = to(envelope(2), 0xb000);
const zcp_receive_t C = to(envelope(3), 0xc000);
const zcp_receive_t D = to(envelope(4), 0xd000);

TEST(GraphTest, NeedsThreeSamplesAndOneSuccessor)
{
    engine engine(ZCP_GRAPH);
    engine.receive({A, A, A});
    EXPECT_TRUE(engine.next(1).empty());
    engine.receive(A);
    ASSERT_EQ(1u, engine.next(1).size());
    EXPECT_TRUE(same(A, engine.next(1)[0]));
}

TEST(GraphTest, WalksPredictedSamples)
{
    engine engine(ZCP_GRAPH);
    engine.receive({A, B, C, D}, 3);
    const auto coming = engine.next(10);
    ASSERT_EQ(10u, coming.size());
    const std::vector<zcp_receive_t> period = {A, B, C, D};
    for (size_t i = 0; i < coming.size(); i++)
        EXPECT_TRUE(same(period[i % 4], coming[i])) << i;
}

TEST(GraphTest, PredictsTheMostFrequentSuccessor)
{
    engine engine(ZCP_GRAPH);
    engine.receive({A, B, C, D, A, B, C, D, A, B, C, A, A, B, C});
    EXPECT_TRUE(same(D, engine.next(1)[0])); /* twice D, then once A */
}

TEST(GraphTest, TiesGoToTheMostRecentSuccessor)
{
    engine engine(ZCP_GRAPH);
    engine.receive({A, B, C, D, A, B, C, A, A, B, C});
    EXPECT_TRUE(same(A, engine.next(1)[0]));
}

/* What order 3 cannot do, by design: the exit of a long inner loop. */
TEST(GraphTest, MissesTheExitOfLongLoops)
{
    engine engine(ZCP_GRAPH);
    const auto stream = repeated(nested_period(), 126 * 20);
    const double right = accuracy(engine, stream, 1);
    EXPECT_GT(right, 0.95);
    EXPECT_LT(right, 0.99); /* two exits of 126 */
}

TEST(GraphTest, SamplesDifferInSenderSizeOrAddressOnly)
{
    engine engine(ZCP_GRAPH);
    /* The tag changes every time; sender, size and address do not. */
    for (int32_t tag = 0; tag < 8; tag++)
        engine.receive(envelope(1, tag), 0x1000);
    const auto coming = engine.next(3);
    ASSERT_EQ(3u, coming.size());
    EXPECT_EQ(0x1000u, coming[2].addr);
}

TEST(GraphTest, LandsWhereSenderAndSizeAgreeIfTheTagIsUnknown)
{
    engine engine(ZCP_GRAPH);
    for (int32_t tag = 0; tag < 8; tag++)
        engine.receive(envelope(1, tag), 0x1000);
    EXPECT_EQ(0x1000u, engine.arrive(envelope(1, 100)).addr);
    EXPECT_EQ(0u, engine.arrive(envelope(2, 100)).ahead);
}

TEST(GraphTest, KeepsTheCommonestOfManySuccessors)
{
    engine engine(ZCP_GRAPH);
    for (uint64_t i = 0; i < 50; i++) {
        engine.receive({A, B, C, D, A, B, C});
        engine.receive(envelope(9), 0x100000 + i * 0x1000); /* ever new */
    }
    engine.receive({A, B, C});
    EXPECT_TRUE(same(D, engine.next(1)[0]));
}

TEST(GraphTest, FindsNoPatternInNoise)
{
    engine engine(ZCP_GRAPH);
    EXPECT_LT(accuracy(engine, noise(20000), 1), 0.01);
}

} // namespace

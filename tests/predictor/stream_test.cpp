/* SPDX-License-Identifier: BSD-3-Clause */

/* The next receives of all, as the default engine foretells them. */
#include "engine.h"

using namespace zcp_test;

namespace {

/** Blocks of an all-to-all side by side, one per rank. */
std::vector<zcp_receive_t> blocks(int32_t ranks, uint64_t bytes, uint64_t base,
                                  uint64_t extra_of_first = 0)
{
    std::vector<zcp_receive_t> rows;
    for (int32_t rank = 0; rank < ranks; rank++) {
        const uint64_t size = bytes + (rank == 0 ? extra_of_first : 0);
        rows.push_back(to(envelope(rank, -1, size), base));
        base += size;
    }
    return rows;
}

/** Expects @engine to foretell all of @rows from @first on. */
void expect_coming(const engine &engine, const std::vector<zcp_receive_t> &rows, size_t first,
                   uint32_t count)
{
    const auto coming = engine.next(count);
    ASSERT_EQ(count, coming.size());
    for (uint32_t i = 0; i < count; i++)
        EXPECT_TRUE(same(rows[first + i], coming[i])) << i;
}

TEST(StreamTest, ExpectsASeriesToGoOnBeforeItWasEverSeen)
{
    engine engine;
    const auto rows = blocks(16, 20000, 0x100000);
    engine.receive({rows[0], rows[1]});
    expect_coming(engine, rows, 2, 8);
}

TEST(StreamTest, DoesNotInventASeriesFromOneReceive)
{
    engine engine;
    engine.receive(envelope(0), 0x1000);
    EXPECT_TRUE(engine.next(4).empty());
}

TEST(StreamTest, BlocksMoveWithTheOnesBeforeThem)
{
    engine engine;
    for (int i = 0; i < 3; i++)
        engine.receive(blocks(8, 20000, 0x100000));
    const auto grown = blocks(8, 20000, 0x100000, 12);
    engine.receive(grown[0]);
    expect_coming(engine, grown, 1, 7);
}

TEST(StreamTest, DriftingSizesDoNotBreakThePattern)
{
    engine engine;
    for (uint64_t step = 0; step < 20; step++) {
        engine.receive(envelope(1, 1, 100000 + 16 * step), 0xa000);
        engine.receive(envelope(2, 2, 3000), 0xb000);
        engine.receive(envelope(3, 3, 5000), 0xc000);
    }
    engine.receive(envelope(1, 1, 100320), 0xa000); /* a size never seen before */
    const auto coming = engine.next(2);
    ASSERT_EQ(2u, coming.size());
    EXPECT_EQ(0xb000u, coming[0].addr);
    EXPECT_EQ(0xc000u, coming[1].addr);
}

TEST(StreamTest, SizesThatAdvanceEvenlyGoOn)
{
    engine engine;
    constexpr uint64_t kStep = 16;
    const auto round = [](uint64_t step) {
        auto rows = blocks(4, 20000, 0x100000, kStep * step);
        rows.push_back(to(envelope(9, 2, 3000), 0x8000));
        return rows;
    };
    for (uint64_t step = 0; step < 5; step++)
        engine.receive(round(step));
    const auto coming = engine.next(10); /* two rounds, neither of them seen before */
    ASSERT_EQ(10u, coming.size());
    for (uint64_t i = 0; i < coming.size(); i++)
        EXPECT_TRUE(same(round(5 + i / 5)[i % 5], coming[i])) << i;
}

TEST(StreamTest, ASizeThatChangedOnceStaysAsItIs)
{
    engine engine;
    for (const uint64_t bytes : {20000, 20000, 20000, 20016, 20016})
        engine.receive({to(envelope(1, 1, bytes), 0xa000), to(envelope(2, 2, 3000), 0xb000)});
    const auto coming = engine.next(3);
    ASSERT_EQ(3u, coming.size());
    EXPECT_EQ(20016u, coming[0].envelope.bytes);
    EXPECT_EQ(20016u, coming[2].envelope.bytes);
}

/* 20 rounds of a short loop, then something else: the second time the end comes
 * as no surprise, though every suffix within the loop is alike. */
TEST(StreamTest, ALoopEndsAfterAsManyRounds)
{
    const auto pass = [](engine &engine) {
        engine.receive({to(envelope(1), 0x1000), to(envelope(2), 0x2000)}, 20);
    };
    engine engine;
    engine.receive(envelope(8), 0x8000);
    pass(engine);
    engine.receive(envelope(3), 0x3000);
    engine.receive(envelope(9), 0x9000); /* a different way in */
    pass(engine);
    const auto coming = engine.next(1);
    ASSERT_EQ(1u, coming.size());
    EXPECT_EQ(3, coming[0].envelope.source);
}

TEST(StreamTest, AnEndOfALoopIsForeseenFromAfar)
{
    engine engine;
    for (int i = 0; i < 2; i++) {
        engine.receive(envelope(8 + i), 0x8000);
        engine.receive({to(envelope(1), 0x1000), to(envelope(2), 0x2000)}, i == 0 ? 20 : 18);
        if (i == 0)
            engine.receive(envelope(3), 0x3000);
    }
    const auto coming = engine.next(5);
    ASSERT_EQ(5u, coming.size());
    EXPECT_EQ(1, coming[2].envelope.source);
    EXPECT_EQ(2, coming[3].envelope.source);
    EXPECT_EQ(3, coming[4].envelope.source);
}

TEST(StreamTest, ALoopOfVaryingLengthIsNotExpectedToEnd)
{
    engine engine;
    std::mt19937 random(1);
    for (int i = 0; i < 12; i++) {
        engine.receive(envelope(3), 0x3000);
        engine.receive({to(envelope(1), 0x1000), to(envelope(2), 0x2000)},
                       20 + static_cast<int>(random() % 40));
    }
    size_t right = 0;
    engine.receive(envelope(3), 0x3000);
    for (int i = 0; i < 100; i++) {
        const zcp_receive_t r = i % 2 ? to(envelope(2), 0x2000) : to(envelope(1), 0x1000);
        const auto coming = engine.next(1);
        right += coming.size() == 1 && same(coming[0], r);
        engine.receive(r);
    }
    EXPECT_GT(right, 85u);
}

TEST(StreamTest, FollowsDoubleBuffersInsideALongerPattern)
{
    engine engine;
    std::vector<zcp_receive_t> stream;
    for (uint64_t step = 0; step < 42; step++) {
        stream.push_back(to(envelope(1), step % 2 ? 0xa000 : 0xb000));
        stream.push_back(to(envelope(2), 0xc000 + step % 3 * 0x1000));
        stream.push_back(to(envelope(3), 0x1000));
    }
    engine.receive(stream);
    EXPECT_EQ(1.0, accuracy(engine, {stream.begin(), stream.begin() + 18}, 1));
}

} // namespace

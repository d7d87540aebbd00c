/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdlib>
#include <malloc.h>

#include "engine.h"

using namespace zcp_test;

namespace {

class MemoryTest : public testing::TestWithParam<zcp_kind_t> {};

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryTest,
                         testing::Values(ZCP_DEFAULT, ZCP_GRAPH, ZCP_DPD, ZCP_LAST, ZCP_LAST_SIZE,
                                         ZCP_LAST_SENDER, ZCP_OFFSET),
                         kind_label);

TEST_P(MemoryTest, HoldsNoMoreThanMaxBytes)
{
    for (const size_t kib : {64, 65, 100, 1024, 5000, 65536}) {
        for (const uint32_t horizon : {1u, 16u, 512u}) {
            zcp_params_t params = params_of(GetParam());
            params.max_bytes = kib << 10;
            params.horizon = horizon;
            engine engine(params);
            EXPECT_LE(engine.stats().bytes, params.max_bytes) << kib << " KiB, H " << horizon;
        }
    }
}

/* Millions of envelopes never seen before and never again, half of them left
 * unsettled: neither the engine's own count nor the heap may grow. */
TEST_P(MemoryTest, DoesNotGrowOnMillionsOfEnvelopes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr uint64_t kEvents = 200000;
#else
    constexpr uint64_t kEvents = 2000000;
#endif
    engine engine(GetParam());
    const uint64_t bytes = engine.stats().bytes;
    const size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (uint64_t i = 0; i < kEvents; i++) {
        const zcp_envelope_t e = {static_cast<uint32_t>(i % 7), static_cast<int32_t>(i / 3),
                                  static_cast<int32_t>(i % 1000), i};
        zcp_landing_t landing;
        ASSERT_GE(zcp_arrival(engine.get(), &e, &landing), 0);
        if (i % 2 == 0)
            engine.settle(landing, i * 64);
    }
    EXPECT_EQ(bytes, engine.stats().bytes);
    EXPECT_EQ(heap, mallinfo2().uordblks + mallinfo2().hblkhd);
    EXPECT_EQ(kEvents / 2, engine.stats().settled);
}

TEST(AgingTest, DeadKeysMakeRoomForLiveOnes)
{
    engine engine;
    for (int32_t i = 0; i < 1000000; i++)
        engine.receive(envelope(i), 0x1000);
    for (int32_t i = 0; i < 100; i++)
        engine.receive(envelope(2000000 + i), 0x2000);
    for (int32_t i = 0; i < 100; i++)
        EXPECT_EQ(0x2000u, engine.arrive(envelope(2000000 + i)).addr) << i;
}

TEST(AgingTest, HistoriesOfDeadKeysMakeRoomForLiveOnes)
{
    engine engine;
    for (int32_t i = 0; i < 20000; i++)
        engine.receive({to(envelope(i), 0x1000), to(envelope(i), 0x2000)}, 2);
    for (int32_t i = 0; i < 20; i++)
        engine.receive({to(envelope(50000 + i), 0xa000), to(envelope(50000 + i), 0xb000)}, 2);
    for (int32_t i = 0; i < 20; i++)
        EXPECT_EQ(0xa000u, engine.arrive(envelope(50000 + i)).addr) << i;
}

/* A third of 4,096 senders have two buffers: all of it is known at once. */
TEST(AgingTest, ThousandsOfSendersAreKnownAtOnce)
{
    engine engine;
    constexpr int32_t kSenders = 4096;
    uint64_t right = 0;
    for (int round = 0; round < 12; round++) {
        for (int32_t sender = 0; sender < kSenders; sender++) {
            const uint64_t base = 0x100000 * (static_cast<uint64_t>(sender) + 1);
            const uint64_t addr = base + (sender % 3 == 0 && round % 2 ? 0x80000 : 0);
            const zcp_landing_t landing = engine.arrive(envelope(sender));
            right += round >= 4 && landing.addr == addr;
            engine.settle(landing, addr);
        }
    }
    EXPECT_GE(right, uint64_t{8} * kSenders * 97 / 100);
}

/* Twice as many keys with two buffers as there is room for: those that have a
 * history keep it, and are right. */
TEST(AgingTest, TooManyVaryingKeysDoNotStarveAll)
{
    engine engine;
    constexpr int32_t kKeys = 3000;
    const uint64_t before = engine.stats().hits;
    for (int round = 0; round < 40; round++) {
        for (int32_t key = 0; key < kKeys; key++) {
            const uint64_t addr = round % 2 ? 0xa010 : 0xb020;
            engine.settle(engine.arrive(envelope(key)), addr);
        }
    }
    EXPECT_GT(engine.stats().hits - before, 40u * kKeys / 5);
}

TEST(AgingTest, AKeyInUseSurvivesAStreamOfStrangers)
{
    engine engine;
    for (int32_t i = 0; i < 100000; i++) {
        engine.receive(envelope(1000000 + i), 0x1000);
        if (i % 50 == 0)
            engine.receive(envelope(1), i % 100 ? 0xb000 : 0xa000);
    }
    EXPECT_EQ(0xa000u, engine.arrive(envelope(1)).addr);
}

} // namespace

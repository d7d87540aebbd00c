/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

extern "C" {
#include "zc_share.h"
}

namespace {

using Mask = std::vector<int>; /* processors */

constexpr auto kCrowded = MPIDI_ZC_SHARE_CROWDED;
constexpr auto kEnough = MPIDI_ZC_SHARE_ENOUGH;
constexpr auto kToSpare = MPIDI_ZC_SHARE_TO_SPARE;

Mask range(int first, int count)
{
    Mask mask(count);
    std::generate(mask.begin(), mask.end(), [&] { return first++; });
    return mask;
}

MPIDI_ZC_share_t share_of(const std::vector<Mask> &masks, int self)
{
    int highest = 0;
    for (const Mask &mask : masks)
        highest = std::max(highest, *std::max_element(mask.begin(), mask.end()));
    const int words = highest / MPIDI_ZC_SHARE_WORD + 1;
    std::vector<uint64_t> bits(masks.size() * words);
    for (size_t rank = 0; rank < masks.size(); ++rank)
        for (const int processor : masks[rank])
            MPIDI_ZC_share_add(&bits[rank * words], processor);
    MPIDI_ZC_share_t share = {};
    EXPECT_TRUE(MPIDI_ZC_share(bits.data(), static_cast<int>(masks.size()), words, self, &share));
    return share;
}

/* All ranks are in the same position. */
void expect_all(const std::vector<Mask> &masks, MPIDI_ZC_share_kind_t kind, int processors)
{
    for (size_t rank = 0; rank < masks.size(); ++rank) {
        const MPIDI_ZC_share_t share = share_of(masks, static_cast<int>(rank));
        EXPECT_EQ(share.kind, kind) << "rank " << rank;
        EXPECT_EQ(share.processors, processors) << "rank " << rank;
    }
}

std::vector<Mask> unbound(int ranks, int processors)
{
    return std::vector<Mask>(ranks, range(0, processors));
}

std::vector<Mask> bound(int ranks, int each)
{
    std::vector<Mask> masks;
    for (int rank = 0; rank < ranks; ++rank)
        masks.push_back(range(rank * each, each));
    return masks;
}

TEST(Share, OfUnboundRanksIsTheMachine)
{
    expect_all(unbound(1, 1), kEnough, 1);
    expect_all(unbound(1, 2), kToSpare, 2);
    expect_all(unbound(4, 8), kToSpare, 2);
    expect_all(unbound(7, 8), kToSpare, 1);
    expect_all(unbound(8, 8), kEnough, 1);
    expect_all(unbound(9, 8), kCrowded, 0);
    expect_all(unbound(64, 8), kCrowded, 0);
}

TEST(Share, CountsTheRanksThatCompete)
{
    EXPECT_EQ(share_of(unbound(1, 4), 0).ranks, 1);
    EXPECT_EQ(share_of(unbound(62, 64), 7).ranks, 62);
    EXPECT_EQ(share_of(bound(16, 8), 3).ranks, 1);
    EXPECT_EQ(share_of({range(0, 2), range(1, 2), range(4, 2)}, 0).ranks, 2);
}

TEST(Share, OfBoundRanksIsTheirOwn)
{
    expect_all(bound(64, 1), kEnough, 1);
    expect_all(bound(16, 8), kToSpare, 8);
    expect_all(bound(2, 3), kToSpare, 3);
}

TEST(Share, OfTwoOnEachCoreIsCrowdedAndOfSmtIsNot)
{
    std::vector<Mask> twice, siblings;
    for (int rank = 0; rank < 64; ++rank) {
        twice.push_back({rank / 2});
        siblings.push_back({rank, rank + 64});
    }
    expect_all(twice, kCrowded, 0);
    expect_all(siblings, kToSpare, 2);
}

TEST(Share, WhoIsInTheWayMovesOver)
{
    const std::vector<Mask> masks = {{0}, {0, 1}, {1, 2}};
    expect_all(masks, kEnough, 1);
    /* One more processor at the end of the row is to spare for all that can reach it. */
    const std::vector<Mask> longer = {{0}, {0, 1}, {1, 2, 3}};
    EXPECT_EQ(share_of(longer, 0).kind, kEnough);
    EXPECT_EQ(share_of(longer, 1).kind, kEnough);
    EXPECT_EQ(share_of(longer, 2).kind, kToSpare);
}

TEST(Share, CrowdedIsWhoCannotGetAwayOnly)
{
    const std::vector<Mask> masks = {{0}, {0}, {0, 1, 2, 3}, {5, 6}};
    EXPECT_EQ(share_of(masks, 0).kind, kCrowded);
    EXPECT_EQ(share_of(masks, 1).kind, kCrowded);
    EXPECT_EQ(share_of(masks, 2).kind, kToSpare);
    EXPECT_EQ(share_of(masks, 3).kind, kToSpare);
}

TEST(Share, OfThousandsOfProcessors)
{
    expect_all(bound(40, 100), kToSpare, 100);
    EXPECT_EQ(share_of(unbound(512, 4096), 17).processors, 8);
    EXPECT_EQ(share_of(unbound(512, 511), 17).kind, kCrowded);
    EXPECT_EQ(share_of(bound(1024, 1), 1023).kind, kEnough);
}

/* Against the marriage theorem, subset by subset: @self twice is a rank and its thread. */
bool all_placed(const std::vector<Mask> &masks)
{
    for (unsigned subset = 1; subset < 1u << masks.size(); ++subset) {
        unsigned all = 0;
        for (size_t rank = 0; rank < masks.size(); ++rank)
            for (const int processor : masks[rank])
                all |= subset >> rank & 1 ? 1u << processor : 0;
        if (__builtin_popcount(all) < __builtin_popcount(subset))
            return false;
    }
    return true;
}

TEST(Share, IsWhatTheMarriageTheoremSays)
{
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        std::vector<Mask> masks(1 + random() % 6);
        const int processors = 1 + static_cast<int>(random() % 7);
        for (Mask &mask : masks)
            do {
                mask.clear();
                for (int p = 0; p < processors; ++p)
                    if (random() % 3 == 0)
                        mask.push_back(p);
            } while (mask.empty());
        /* Only where the others can all be placed does it say something of this one alone. */
        if (!all_placed({masks.begin() + 1, masks.end()}))
            continue;
        std::vector<Mask> with_thread = masks;
        with_thread.push_back(masks[0]);
        const auto expected = !all_placed(masks)         ? kCrowded
                              : !all_placed(with_thread) ? kEnough
                                                         : kToSpare;
        ASSERT_EQ(share_of(masks, 0).kind, expected) << "round " << round;
    }
}

} // namespace

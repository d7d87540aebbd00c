/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"

#include "exchanger.h"
#include "support.h"
#include "vma.h"

#include <cmath>

using namespace zc;
using namespace zc::test;

namespace {

zc_costs_t example()
{
    zc_costs_t c{};
    c.size = sizeof(c);
    c.copy_ns_fixed = 100;
    c.copy_ns_per_byte = 0.1;
    c.copy_ns_per_byte_long = 0.2;
    c.mremap_ns_fixed = 20'000;
    c.mremap_ns_per_page = 10;
    c.mremap_ns_per_2m = 1'000;
    return c;
}

constexpr std::uint32_t kCopyOrMremap = means_bit(ZC_MEANS_COPY) | means_bit(ZC_MEANS_MREMAP);
constexpr way kCopy{}, kMremap{ZC_MEANS_MREMAP, ZC_MEANS_MREMAP},
    kKmod{ZC_MEANS_KMOD, ZC_MEANS_KMOD}, kMixed{ZC_MEANS_MREMAP, ZC_MEANS_KMOD};

zc_costs_t with_kmod()
{
    zc_costs_t c = example();
    c.kmod_ns_fixed = 2'000;
    c.kmod_ns_per_page = 8;
    c.kmod_ns_per_2m = 500;
    return c;
}

} // namespace

TEST(CostTest, CopyIsLinearInTwoParts)
{
    zc_costs_t c = example();
    EXPECT_DOUBLE_EQ(copy_ns(c, 0), 0);
    EXPECT_DOUBLE_EQ(copy_ns(c, 1000), 200);
    EXPECT_DOUBLE_EQ(copy_ns(c, 5 * MiB), 100 + 0.1 * (4 * MiB) + 0.2 * MiB);
}

TEST(CostTest, WholeTablesAreCheaperThanTheirPages)
{
    zc_costs_t c = example();
    extent e{5 * MiB, 5 * MiB};
    EXPECT_DOUBLE_EQ(way_ns(c, e, kMremap), 20'000 + 1280 * 10);
    e.in_units = 4 * MiB;
    EXPECT_DOUBLE_EQ(way_ns(c, e, kMremap), 20'000 + 2 * 1'000 + 256 * 10);
}

TEST(CostTest, CopiesShortAndRebindsLongMessages)
{
    zc_costs_t c = example();
    EXPECT_EQ(zc_cheapest(&c, 64 * KiB, 60 * KiB, 0, kCopyOrMremap), ZC_MEANS_COPY);
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB - kPage, 0, kCopyOrMremap), ZC_MEANS_MREMAP);
}

TEST(CostTest, CountsTheCopiedEdges)
{
    zc_costs_t c = example();
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB, 0, kCopyOrMremap), ZC_MEANS_MREMAP);
    EXPECT_EQ(zc_cheapest(&c, MiB, 100 * KiB, 0, kCopyOrMremap), ZC_MEANS_COPY);
}

TEST(CostTest, OnlyAllowedMeansAreChosen)
{
    zc_costs_t c = example();
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB, 0, means_bit(ZC_MEANS_COPY)), ZC_MEANS_COPY);
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB, 0, 0), ZC_MEANS_COPY);
}

TEST(CostTest, MeansWithoutACostAreNotAvailable)
{
    zc_costs_t c = example();
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB, 0, kAllMeans), ZC_MEANS_MREMAP);
    c.kmod_ns_fixed = 1'000;
    c.kmod_ns_per_page = 1;
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB, 0, kAllMeans), ZC_MEANS_KMOD);
    c.kmod_ns_fixed = c.mremap_ns_fixed = 0;
    EXPECT_EQ(zc_cheapest(&c, MiB, MiB, 0, kAllMeans), ZC_MEANS_COPY);
}

TEST(CostTest, TheModuleGoesByPagesUnlessTheyAreHuge)
{
    zc_costs_t c = with_kmod();
    extent e{5 * MiB, 5 * MiB, 4 * MiB};
    EXPECT_DOUBLE_EQ(way_ns(c, e, kKmod), 2'000 + 1280 * 8);
    e.huge = true;
    EXPECT_DOUBLE_EQ(way_ns(c, e, kKmod), 2'000 + 2 * 500 + 256 * 8);
}

TEST(CostTest, FurtherMappingsTakeFurtherMoves)
{
    zc_costs_t c = with_kmod();
    extent e{MiB, MiB};
    EXPECT_DOUBLE_EQ(way_ns(c, e, kMremap), 20'000 + 256 * 10);
    e.moves = 5;
    EXPECT_DOUBLE_EQ(way_ns(c, e, kMremap), 50'000 + 256 * 10);
    EXPECT_DOUBLE_EQ(way_ns(c, e, kKmod), 2'000 + 256 * 8);
}

TEST(CostTest, AMixtureIsTwoCallsForTheEndsAndOneMoveBetween)
{
    zc_costs_t c = with_kmod();
    extent e{65 * MiB, 65 * MiB - kPage, 62 * MiB};
    std::size_t ends = 3 * MiB - kPage;
    EXPECT_DOUBLE_EQ(way_ns(c, e, kMixed), 20'000 + 31 * 1'000 + 2 * 2'000 +
                                               static_cast<double>(ends / kPage) * 8 +
                                               copy_ns(c, kPage));
    c.mremap_ns_per_page = 20;
    EXPECT_EQ(cheapest_way(c, e, kAllMeans), kMixed);
    EXPECT_EQ(zc_cheapest(&c, e.len, e.rebindable, 1, kAllMeans), ZC_MEANS_MREMAP)
        << "which moves most of it";
}

TEST(CostTest, NothingIsMixedWithoutWholeUnitsOrPagesAround)
{
    zc_costs_t c = with_kmod();
    EXPECT_TRUE(std::isinf(way_ns(c, {65 * MiB, 65 * MiB, 0}, kMixed)));
    EXPECT_TRUE(std::isinf(way_ns(c, {64 * MiB, 64 * MiB, 64 * MiB}, kMixed)));
}

TEST(CostTest, EachMeansHasItsSizes)
{
    zc_costs_t c = with_kmod();
    auto at = [&](std::size_t len, int tables) {
        return zc_cheapest(&c, len, len, tables, kAllMeans);
    };
    EXPECT_EQ(at(16 * KiB, 0), ZC_MEANS_COPY);
    EXPECT_EQ(at(64 * KiB, 0), ZC_MEANS_KMOD);
    EXPECT_EQ(at(4 * MiB, 1), ZC_MEANS_KMOD);
    EXPECT_EQ(at(64 * MiB, 1), ZC_MEANS_MREMAP);
    EXPECT_EQ(at(64 * MiB, 2), ZC_MEANS_KMOD) << "huge pages";
    EXPECT_EQ(at(64 * MiB, 0), ZC_MEANS_KMOD);
}

TEST(CostTest, WaysTakeOnlyAllowedMeans)
{
    zc_costs_t c = with_kmod();
    extent e{65 * MiB, 65 * MiB, 62 * MiB};
    for (way w : {kCopy, kMremap, kKmod, kMixed}) {
        EXPECT_FALSE(std::isinf(way_ns(c, e, w, kAllMeans)));
        std::uint32_t needed = means_bit(w.units) | means_bit(w.pages);
        EXPECT_FALSE(std::isinf(way_ns(c, e, w, needed)));
        EXPECT_TRUE(std::isinf(way_ns(c, e, w, needed & (needed - 1))));
    }
    EXPECT_EQ(cheapest_way(c, e, 0), kCopy);
    EXPECT_NE(cheapest_way(c, {kPage, kPage}, kRebindingMeans), kCopy) << "at any price";
}

TEST(CostTest, OnlyMissingCostsOfTheModuleAreGuessed)
{
    zc_costs_t c = with_kmod_guessed(with_kmod());
    EXPECT_EQ(c.kmod_ns_fixed, with_kmod().kmod_ns_fixed);
    c = with_kmod_guessed(example());
    EXPECT_GT(c.kmod_ns_fixed, 0);
    EXPECT_EQ(c.mremap_ns_fixed, example().mremap_ns_fixed);
    EXPECT_TRUE(costs_plausible(c));
}

TEST(CostTest, NothingRebindableMeansCopy)
{
    zc_costs_t c = example();
    EXPECT_EQ(zc_cheapest(&c, 64 * MiB, 0, 1, kAllMeans), ZC_MEANS_COPY);
    EXPECT_EQ(zc_cheapest(nullptr, 64 * MiB, 64 * MiB, 1, kAllMeans), ZC_MEANS_COPY);
}

TEST(CostTest, LongerNeverTurnsBackToCopy)
{
    zc_costs_t c = example();
    bool rebound = false;
    for (std::size_t len = kPage; len < 256 * MiB; len += len / 8) {
        std::size_t whole = round_down(len, kPage);
        bool now = zc_cheapest(&c, len, whole, 1, kAllMeans) == ZC_MEANS_MREMAP;
        EXPECT_TRUE(now || !rebound) << len;
        rebound = now;
    }
    EXPECT_TRUE(rebound);
}

TEST(CostTest, PlausibleMeansFiniteAndNotNegative)
{
    zc_costs_t c = example();
    EXPECT_TRUE(costs_plausible(c));
    c.copy_ns_fixed = -1;
    EXPECT_FALSE(costs_plausible(c));
    c.copy_ns_fixed = NAN;
    EXPECT_FALSE(costs_plausible(c));
}

TEST(CostTest, CalibrationGivesPlausibleCosts)
{
    address_space space;
    exchanger device(false);
    zc_costs_t c{};
    ASSERT_EQ(calibrate(space, device, true, c), 0);
    EXPECT_TRUE(costs_plausible(c));
    EXPECT_EQ(c.size, sizeof(c));
    EXPECT_GT(c.copy_ns_per_byte, 0);
    EXPECT_GT(c.mremap_ns_fixed, 0);
    EXPECT_EQ(c.kmod_ns_fixed, 0);
}

TEST(CostTest, CalibrationLeavesNoMemoryBehind)
{
    address_space space;
    exchanger device(false);
    zc_costs_t c{};
    ASSERT_EQ(calibrate(space, device, true, c), 0);
    std::size_t before = count_mappings();
    for (int i = 0; i < 5; i++)
        ASSERT_EQ(calibrate(space, device, true, c), 0);
    EXPECT_TRUE(kSanitized || count_mappings() <= before + 2);
}

TEST(CostTest, CalibrationWithoutMremapLeavesItOut)
{
    kernel.move = [](addr_t, addr_t, std::size_t) { return -EPERM; };
    address_space space;
    exchanger device(false);
    zc_costs_t c{};
    EXPECT_EQ(calibrate(space, device, true, c), 0);
    EXPECT_EQ(c.mremap_ns_fixed, 0);
    kernel = kernel_calls_real;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What deliveries learn from how long they take. The clock stands still, but
 * for the time that the kernel calls below are said to take. */
#include "cost.h"
#include "support.h"

using namespace zc;
using namespace zc::test;

namespace {

std::uint64_t clock_ns;    /* what time it is */
std::uint64_t move_ns;     /* what one mremap takes */
std::uint64_t exchange_ns; /* what one exchange by the module takes */
int (*fake_control)(int, unsigned long, void *);

class DeliverLearningTest : public backend_fixture {
  protected:
    DeliverLearningTest() : backend_fixture(backend::mixed)
    {
        costs_.copy_ns_per_byte = costs_.copy_ns_per_byte_long = 0.1;
        costs_.mremap_ns_fixed = 20'000;
        costs_.mremap_ns_per_page = 0;
        costs_.kmod_ns_fixed = 2'000;
        costs_.kmod_ns_per_page = 10;
    }

    void start(std::uint32_t means)
    {
        params_.means = means;
        use_costs(costs_);
        clock_ns = 1;
        move_ns = exchange_ns = 0;
        kernel.now = [] { return clock_ns; };
        kernel.move = [](addr_t from, addr_t to, std::size_t len) {
            clock_ns += move_ns;
            return kernel_calls_real.move(from, to, len);
        };
        fake_control = kernel.control;
        kernel.control = [](int device, unsigned long request, void *argument) {
            clock_ns += exchange_ns;
            return fake_control(device, request, argument);
        };
        zc();
    }
    zc_costs_t costs()
    {
        zc_costs_t c{};
        c.size = sizeof(c);
        EXPECT_EQ(zc_costs(zc(), &c), 0);
        return c;
    }

    zc_costs_t costs_ = kCostsUnmeasured;
    buffer b_{MiB};
};

constexpr std::uint32_t kCopy = means_bit(ZC_MEANS_COPY), kMremap = means_bit(ZC_MEANS_MREMAP),
                        kKmod = means_bit(ZC_MEANS_KMOD);

} // namespace

TEST_F(DeliverLearningTest, AnExchangeThatTakesLongerIsChosenLater)
{
    start(kCopy | kMremap);
    move_ns = 35'000; /* two of them: 70 us instead of 20 */
    EXPECT_EQ(deliver(b_.data(), 512 * KiB, 1).means, ZC_MEANS_MREMAP);
    EXPECT_EQ(deliver(b_.data(), 512 * KiB, 2).means, ZC_MEANS_MREMAP) << "52 us still";
    EXPECT_EQ(deliver(b_.data(), 512 * KiB, 3).means, ZC_MEANS_COPY);
    EXPECT_GT(costs().mremap_ns_fixed, 1.5 * 20'000);
    EXPECT_EQ(costs().copy_ns_per_byte, 0.1);
}

TEST_F(DeliverLearningTest, WhatWasGivenUpIsTriedAgainAndTakenUp)
{
    start(kCopy | kMremap);
    move_ns = 35'000;
    for (unsigned i = 0; i < 4; i++)
        deliver(b_.data(), 512 * KiB, i);
    move_ns = 10'000;
    unsigned rebound = 0;
    for (unsigned i = 0; i < 500; i++)
        rebound += deliver(b_.data(), 512 * KiB, i).means == ZC_MEANS_MREMAP;
    EXPECT_GT(rebound, 100u);
    EXPECT_LT(costs().mremap_ns_fixed, 40'000);
}

TEST_F(DeliverLearningTest, TheModuleToo)
{
    start(kCopy | kKmod);
    exchange_ns = 5'000; /* instead of 3'280 */
    for (unsigned i = 0; i < 20; i++)
        EXPECT_EQ(deliver(b_.data(), 512 * KiB, i).means, ZC_MEANS_KMOD);
    EXPECT_DOUBLE_EQ(costs().kmod_ns_fixed, 2'000 * 5'000 / 3'280.0);
}

TEST_F(DeliverLearningTest, FarFromTheBreakEvenNothingIsTried)
{
    start(kCopy | kMremap | kKmod);
    buffer b(2 * MiB);
    for (unsigned i = 0; i < 200; i++) {
        EXPECT_EQ(deliver(b_.data(), 8 * KiB, i).means, ZC_MEANS_COPY);
        EXPECT_EQ(deliver(b.data(), 64 * KiB, i).means, ZC_MEANS_KMOD);
    }
}

TEST_F(DeliverLearningTest, CloseToItOneIn64GoesTheOtherWay)
{
    costs_.mremap_ns_fixed = 50'000;
    start(kCopy | kMremap);
    unsigned copied = 0;
    for (unsigned i = 0; i < 640; i++)
        copied += deliver(b_.data(), 512 * KiB + 64 * KiB, i).means == ZC_MEANS_COPY;
    EXPECT_EQ(copied, 10 + 3u);
}

TEST_F(DeliverLearningTest, TestsThatAlwaysRebindLearnNothing)
{
    start(kCopy | kMremap);
    params_.flags = ZC_FLAG_ALWAYS_REBIND;
    zc_t *zc = nullptr;
    ASSERT_EQ(zc_create(&params_, &zc), 0);
    move_ns = 1'000'000;
    zc_landing_t *l = nullptr;
    ASSERT_EQ(zc_landing_acquire(zc, MiB, b_.data(), &l), 0);
    ASSERT_EQ(zc_deliver(zc, l, b_.data(), MiB, nullptr), 0);
    zc_costs_t c{};
    c.size = sizeof(c);
    EXPECT_EQ(zc_costs(zc, &c), 0);
    EXPECT_EQ(c.mremap_ns_fixed, costs_.mremap_ns_fixed);
    zc_destroy(zc);
}

TEST_F(DeliverLearningTest, ARefusalTeachesNothing)
{
    start(kCopy | kKmod);
    fake_->refuse(range_at(b_.at() + 20 * kPage, kPage), ZC_CAUSE_PINNED);
    exchange_ns = 50'000;
    EXPECT_EQ(deliver(b_.data(), 512 * KiB, 1).reason, ZC_REASON_PINNED);
    EXPECT_EQ(costs().kmod_ns_fixed, costs_.kmod_ns_fixed);
}

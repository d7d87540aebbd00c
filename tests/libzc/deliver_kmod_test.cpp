/* SPDX-License-Identifier: BSD-3-Clause */
/* Deliveries by the kernel module, as a fake of it answers. */
#include "cost.h"
#include "support.h"

#include <cerrno>
#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

class DeliverKmodTest : public backend_fixture {
  protected:
    explicit DeliverKmodTest(backend b = backend::fake) : backend_fixture(b)
    {
        params_.log = [](void *arg, const char *line) {
            static_cast<std::vector<std::string> *>(arg)->push_back(line);
        };
        params_.log_arg = &lines_;
    }
    ~DeliverKmodTest() override
    {
        if (fake_) {
            EXPECT_EQ(fake_->wrong_arguments(), 0u);
        }
    }

    /** Page @i of those of a delivery to b + 16. */
    static range page(const buffer &b, std::size_t i, std::size_t count = 1)
    {
        return range_at(b.at() + (i + 1) * kPage, count * kPage);
    }

    std::vector<std::string> lines_;
};

/* Nothing is ever dear, so that what is chosen depends on what is measured. */
zc_costs_t some_costs()
{
    zc_costs_t c = kCostsUnmeasured;
    c.copy_ns_per_byte = c.copy_ns_per_byte_long = 0.1;
    c.mremap_ns_fixed = 20'000;
    c.mremap_ns_per_page = 20;
    c.mremap_ns_per_2m = 1'000;
    c.kmod_ns_fixed = 2'000;
    c.kmod_ns_per_page = 10;
    c.kmod_ns_per_2m = 500;
    return c;
}

} // namespace

TEST_F(DeliverKmodTest, ExchangesWholePagesAndCopiesTheEdges)
{
    buffer b(MiB);
    zc_delivery_t how = deliver_inside(b, 64 * KiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(how.means, ZC_MEANS_KMOD);
    EXPECT_EQ(how.bytes_rebound, 15 * kPage);
    EXPECT_EQ(fake_->calls(), std::vector<range>{page(b, 0, 15)});
    EXPECT_EQ(stats().rebound_by_means[ZC_MEANS_KMOD], 1u);
    EXPECT_EQ(stats().bytes_rebound_by_means[ZC_MEANS_KMOD], 15 * kPage);
    EXPECT_EQ(stats().bytes_copied, kPage);
    EXPECT_EQ(stats().kmod_error, 0);
    EXPECT_TRUE(lines_.empty());
}

/* Only the module is asked: no mapping moves, none is split, and what /proc
 * would say does not count. */
TEST_F(DeliverKmodTest, TheMappingsAreLeftAlone)
{
    kernel.move = [](addr_t, addr_t, std::size_t) { return -EPERM; };
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    bool locked = lock_memory(b.data() + 8 * kPage, kPage) == 0;
    deliver(b.data() + 16, 64 * KiB, 0);
    std::size_t mappings = count_mappings(), splits = stats().splits_now;
    for (unsigned i = 1; i < 20; i++)
        EXPECT_EQ(deliver(b.data() + 16 * i, 64 * KiB, i).reason, ZC_REASON_NONE);
    EXPECT_TRUE(kSanitized || count_mappings() <= mappings);
    EXPECT_EQ(stats().splits_now, splits);
    EXPECT_TRUE(!locked || vm_flags(b.at() + 8 * kPage).find(" lo") != std::string::npos);
}

TEST_F(DeliverKmodTest, ARefusedPageIsCopiedAndTheExchangeGoesOn)
{
    buffer b(MiB);
    for (std::size_t at : {0, 7, 14}) {
        fake_->refuse_nothing();
        fake_->refuse(page(b, at), ZC_CAUSE_PINNED);
        zc_delivery_t how = deliver(b.data() + 16, 64 * KiB, 1);
        EXPECT_EQ(how.bytes_rebound, 14 * kPage);
        EXPECT_EQ(how.means, ZC_MEANS_KMOD);
        EXPECT_EQ(how.reason, ZC_REASON_PINNED);
    }
    EXPECT_EQ(stats().copied_by_reason[ZC_REASON_PINNED], 3u);
    EXPECT_EQ(stats().bytes_copied_by_reason[ZC_REASON_PINNED], 3 * kPage);
    EXPECT_EQ(stats().rebound_by_means[ZC_MEANS_KMOD], 3u);
    ASSERT_EQ(lines_.size(), 1u);
    EXPECT_NE(lines_[0].find("copied 4096 bytes"), std::string::npos) << lines_[0];
}

TEST_F(DeliverKmodTest, SeveralReasonsInOneDelivery)
{
    buffer b(MiB);
    fake_->refuse(page(b, 2), ZC_CAUSE_PINNED);
    fake_->refuse(page(b, 5, 2), ZC_CAUSE_COW);
    zc_delivery_t how = deliver(b.data() + 16, 64 * KiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_COW) << "most bytes";
    EXPECT_EQ(stats().bytes_copied_by_reason[ZC_REASON_PINNED], kPage);
    EXPECT_GE(stats().bytes_copied_by_reason[ZC_REASON_COW], 2 * kPage);
    EXPECT_EQ(lines_.size(), 2u);
}

namespace {

class DeliverKmodCauseTest : public DeliverKmodTest,
                             public testing::WithParamInterface<zc_cause> {};

INSTANTIATE_TEST_SUITE_P(Causes, DeliverKmodCauseTest,
                         testing::Values(ZC_CAUSE_UNMAPPED, ZC_CAUSE_ACCESS, ZC_CAUSE_FILE,
                                         ZC_CAUSE_SHARED, ZC_CAUSE_HUGETLB, ZC_CAUSE_SPECIAL,
                                         ZC_CAUSE_LOCKED, ZC_CAUSE_USERFAULTFD, ZC_CAUSE_POLICY,
                                         ZC_CAUSE_COW, ZC_CAUSE_PINNED, ZC_CAUSE_PAGE_SIZE,
                                         ZC_CAUSE_NOTIFIER, ZC_CAUSE_RACED, ZC_CAUSE_NO_MEMORY,
                                         ZC_CAUSE_INTERRUPTED, ZC_CAUSE_POISONED, ZC_CAUSE_COUNT));

} // namespace

/* deliver() checks the bytes; here it is about the books. */
TEST_P(DeliverKmodCauseTest, EverywhereInTheMiddleAndOnTheLandingSide)
{
    constexpr std::size_t kLen = 6 * MiB;
    buffer b(kLen + MiB);
    std::memset(b.data(), 9, b.size());
    fake_->refuse(b.all(), GetParam());
    zc_delivery_t how = deliver(b.data() + 16, kLen, 1);
    EXPECT_EQ(how.bytes_rebound, 0u);
    EXPECT_EQ(how.means, ZC_MEANS_COPY);
    zc_reason_t reason = how.reason;
    EXPECT_NE(reason, ZC_REASON_NONE);
    EXPECT_EQ(stats().copied_by_reason[reason], 1u);
    EXPECT_EQ(stats().bytes_copied_by_reason[reason], kLen - kPage) << "all but the edges";
    EXPECT_LE(fake_->calls().size(), 4 * 14u);
    EXPECT_EQ(b.data()[15], 9);
    EXPECT_EQ(b.data()[16 + kLen], 9);

    if (GetParam() == ZC_CAUSE_NOTIFIER)
        return; /* holds for the process, not for a part of it */
    fake_->refuse_nothing();
    fake_->refuse(page(b, 600, 3), GetParam());
    how = deliver(b.data() + 16, kLen, 2);
    EXPECT_GT(how.bytes_rebound, 0u);
    EXPECT_EQ(how.reason, reason);

    zc_landing_t *l = acquire(kLen, b.data() + 16);
    char *data = static_cast<char *>(zc_landing_data(l));
    fill(data, kLen, 3);
    fake_->refuse_nothing();
    fake_->refuse(range_at(round_down(as_address(data), kPage) + 600 * kPage, kPage), GetParam());
    how = deliver_landing(l, b.data() + 16, kLen);
    EXPECT_EQ(first_wrong(b.data() + 16, kLen, 3), kLen);
    EXPECT_GT(how.bytes_rebound, 0u);
    EXPECT_EQ(how.reason, reason);
}

/* Every other page refused: some restarts, and then the rest is copied. */
TEST_F(DeliverKmodTest, RestartsAreBounded)
{
    buffer b(2 * MiB);
    for (std::size_t i = 0; i < 256; i += 2)
        fake_->refuse(page(b, i), ZC_CAUSE_COW);
    zc_delivery_t how = deliver(b.data() + 16, MiB, 1);
    EXPECT_EQ(fake_->calls().size(), 32u);
    EXPECT_EQ(how.reason, ZC_REASON_COW);
    EXPECT_EQ(how.bytes_rebound, 31 * kPage);
}

TEST_F(DeliverKmodTest, WhatIsLeftIsOnlyExchangedIfItPays)
{
    use_costs(some_costs());
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    fake_->refuse(page(b, 30), ZC_CAUSE_COW);
    EXPECT_EQ(deliver(b.data() + 16, 64 * kPage, 1).bytes_rebound, 62 * kPage);
    EXPECT_EQ(fake_->calls().size(), 2u);
    fake_->forget_calls();
    EXPECT_EQ(deliver(b.data() + 16, 36 * kPage, 1).bytes_rebound, 30 * kPage);
    EXPECT_EQ(fake_->calls().size(), 1u);
    EXPECT_EQ(stats().bytes_copied_by_reason[ZC_REASON_COW], 6 * kPage);
}

TEST_F(DeliverKmodTest, SignalsOnlyCostTime)
{
    fake_->interrupt_every(3);
    buffer b(MiB);
    zc_delivery_t how = deliver(b.data() + 16, 64 * KiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(how.bytes_rebound, 15 * kPage);
    EXPECT_EQ(fake_->calls().size(), 5u);
}

TEST_F(DeliverKmodTest, AnUnknownFailureIsCopied)
{
    buffer b(MiB);
    zc();
    fake_->call_error = -ENOTTY;
    zc_delivery_t how = deliver(b.data() + 16, 64 * KiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_SYSCALL);
    EXPECT_EQ(how.bytes_copied, 64 * KiB);
}

TEST_F(DeliverKmodTest, AMirroredAddressSpaceIsLeftAloneForAWhile)
{
    buffer b(MiB);
    fake_->refuse(b.all(), ZC_CAUSE_NOTIFIER);
    for (unsigned i = 0; i < 20; i++)
        EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, i).reason, ZC_REASON_NOTIFIER);
    EXPECT_EQ(fake_->calls().size(), 1u);
    EXPECT_EQ(stats().copied_by_reason[ZC_REASON_NOTIFIER], 20u);
}

TEST_F(DeliverKmodTest, MispredictedIsNeverAsked)
{
    buffer b(MiB);
    zc_landing_t *l = acquire(64 * KiB, b.data() + 24);
    EXPECT_EQ(deliver_landing(l, b.data() + 16, 64 * KiB).reason, ZC_REASON_NOT_CONGRUENT);
    l = acquire(64 * KiB, nullptr);
    EXPECT_EQ(deliver_landing(l, b.data() + 8, 64 * KiB).reason, ZC_REASON_UNPREDICTED);
    zc_landing_t *target = acquire(MiB, nullptr);
    EXPECT_EQ(deliver(static_cast<char *>(zc_landing_data(target)), MiB / 2, 1).reason,
              ZC_REASON_NO_MEANS);
    zc_landing_release(zc(), target);
    EXPECT_TRUE(fake_->calls().empty());
}

/* A slot on huge pages can only be exchanged where it fits modulo 2 MiB. */
TEST_F(DeliverKmodTest, HugePagesAtAnotherOffsetAreNeverAsked)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(16 * MiB);
    zc_landing_t *l = acquire(8 * MiB, b.data());
    EXPECT_EQ(deliver_landing(l, b.data() + MiB, 8 * MiB).reason, ZC_REASON_PAGE_SIZE);
    EXPECT_TRUE(fake_->calls().empty());
    EXPECT_EQ(deliver(b.data(), 8 * MiB, 1).reason, ZC_REASON_NONE);
    EXPECT_EQ(fake_->calls().size(), 1u);
}

TEST_F(DeliverKmodTest, AForkedChildUsesTheDeviceToo)
{
    buffer b(MiB);
    fill(b.data(), MiB, 1);
    zc_landing_t *l = acquire(MiB - 16, b.data() + 16);
    fill(static_cast<char *>(zc_landing_data(l)), MiB - 16, 2);
    forked_check child([&] {
        zc_delivery_t how{};
        return zc_deliver(zc(), l, b.data() + 16, MiB - 16, &how) == 0 &&
               how.means == ZC_MEANS_KMOD && first_wrong(b.data() + 16, MiB - 16, 2) == MiB - 16;
    });
    EXPECT_TRUE(child.passes());
    EXPECT_EQ(first_wrong(b.data(), MiB, 1), MiB);
    EXPECT_EQ(deliver_landing(l, b.data() + 16, MiB - 16).reason, ZC_REASON_NONE);
}

/* ---- when there is no device ---- */

TEST_F(DeliverKmodTest, WithoutADeviceEverythingIsCopied)
{
    constexpr std::pair<int, const char *> kErrors[] = {
        {-ENOENT, "zc: /dev/zc is not used: no /dev/zc"},
        {-EACCES, "zc: /dev/zc is not used: permission denied"},
    };
    buffer b(MiB);
    for (auto [error, line] : kErrors) {
        fake_->open_error = error;
        zc_t *zc = nullptr;
        lines_.clear();
        ASSERT_EQ(zc_create(&params_, &zc), 0);
        EXPECT_EQ(lines_, std::vector<std::string>{line});
        zc_landing_t *l = nullptr;
        zc_delivery_t how{};
        zc_stats_t s{};
        s.size = sizeof(s);
        ASSERT_EQ(zc_landing_acquire(zc, MiB, b.data(), &l), 0);
        ASSERT_EQ(zc_deliver(zc, l, b.data(), MiB, &how), 0);
        EXPECT_EQ(how.reason, ZC_REASON_NO_MEANS);
        EXPECT_EQ(zc_stats(zc, &s), 0);
        EXPECT_EQ(s.kmod_error, error);
        EXPECT_EQ(s.copied_by_reason[ZC_REASON_NO_MEANS], 1u);
        zc_destroy(zc);
    }
}

TEST_F(DeliverKmodTest, AnOldModuleIsNotUsed)
{
    fake_->features.features = 0;
    zc();
    ASSERT_EQ(lines_.size(), 1u);
    EXPECT_EQ(lines_[0], "zc: /dev/zc is not used: old ABI");
    EXPECT_EQ(stats().kmod_error, -EPROTO);
}

TEST_F(DeliverKmodTest, NoCostsWithoutADevice)
{
    fake_->open_error = -ENOENT;
    zc_costs_t c{};
    c.size = sizeof(c);
    ASSERT_EQ(zc_costs(zc(), &c), 0);
    EXPECT_EQ(c.kmod_ns_fixed, 0);
}

/* ---- beside mremap ---- */

namespace {

class DeliverMixedTest : public DeliverKmodTest {
  protected:
    DeliverMixedTest() : DeliverKmodTest(backend::mixed) {}
};

} // namespace

TEST_F(DeliverMixedTest, AMissingModuleIsNotLogged)
{
    fake_->open_error = -ENOENT;
    buffer b(MiB);
    EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, 1).means, ZC_MEANS_MREMAP);
    EXPECT_EQ(stats().kmod_error, -ENOENT);
    EXPECT_TRUE(lines_.empty());
}

TEST_F(DeliverMixedTest, ButThatItMayNotBeUsed)
{
    fake_->open_error = -EACCES;
    zc();
    EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(DeliverMixedTest, AMeansThatIsSwitchedOffIsNotOpened)
{
    params_.means = means_bit(ZC_MEANS_COPY) | means_bit(ZC_MEANS_MREMAP);
    EXPECT_EQ(stats().kmod_error, -ECANCELED);
    EXPECT_TRUE(lines_.empty());
}

TEST_F(DeliverMixedTest, EachSizeGoesItsCheapestWay)
{
    use_costs(some_costs());
    buffer b(66 * MiB);
    std::memset(b.data(), 9, b.size());
    EXPECT_EQ(deliver(b.data(), 16 * KiB, 1).reason, ZC_REASON_SMALL);
    EXPECT_EQ(deliver(b.data(), 64 * KiB, 2).means, ZC_MEANS_KMOD);
    EXPECT_EQ(deliver(b.data(), 2 * MiB, 3).means, ZC_MEANS_KMOD);
    params_.budget_bytes = 64 * MiB;
    EXPECT_EQ(deliver(b.data(), 32 * MiB, 4).means, ZC_MEANS_MREMAP);
}

/* Whole page tables are moved, and what is before and behind them exchanged. */
TEST_F(DeliverMixedTest, MovesTablesAndExchangesTheRest)
{
    use_costs(some_costs());
    constexpr std::size_t kAt = MiB + 16, kLen = 32 * MiB;
    buffer b(36 * MiB);
    std::memset(b.data(), 9, b.size());
    for (unsigned i = 0; i < 3; i++) {
        fake_->forget_calls();
        zc_delivery_t how = deliver(b.data() + kAt, kLen, i);
        EXPECT_EQ(how.reason, ZC_REASON_NONE);
        EXPECT_EQ(how.means, ZC_MEANS_MREMAP);
        EXPECT_EQ(how.bytes_rebound, kLen - kPage);
        EXPECT_EQ(fake_->calls(), (std::vector<range>{{b.at() + MiB + kPage, b.at() + 2 * MiB},
                                                      {b.at() + 32 * MiB, b.at() + 33 * MiB}}));
    }
    EXPECT_EQ(stats().bytes_rebound_by_means[ZC_MEANS_MREMAP], 3 * 30 * MiB);
    EXPECT_EQ(stats().bytes_rebound_by_means[ZC_MEANS_KMOD], 3 * (2 * MiB - kPage));
    EXPECT_EQ(b.data()[kAt - 1], 9);
    EXPECT_EQ(b.data()[kAt + kLen], 9);
}

TEST_F(DeliverMixedTest, ARefusalAtTheEndsLeavesTheTables)
{
    use_costs(some_costs());
    buffer b(36 * MiB);
    std::memset(b.data(), 9, b.size());
    fake_->refuse(range_at(b.at() + MiB, MiB), ZC_CAUSE_COW);
    zc_delivery_t how = deliver(b.data() + MiB, 32 * MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_COW);
    EXPECT_EQ(how.means, ZC_MEANS_MREMAP);
    EXPECT_EQ(how.bytes_copied, MiB);
}

TEST_F(DeliverMixedTest, TheModuleTakesWhatMremapMayNot)
{
    use_costs(some_costs());
    buffer b(36 * MiB);
    std::memset(b.data(), 9, b.size());
    ASSERT_EQ(madvise(b.data() + 8 * MiB, 64 * KiB, MADV_DONTDUMP), 0);
    /* /proc says no: more mappings than mremap is tried on. */
    for (std::size_t i = 0; i < 10; i++)
        ASSERT_EQ(madvise(b.data() + i * MiB, 64 * KiB, MADV_DONTDUMP), 0);
    zc_delivery_t how = deliver(b.data(), 32 * MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(how.means, ZC_MEANS_KMOD);
    EXPECT_EQ(fake_->calls(), std::vector<range>{range_at(b.at(), 32 * MiB)});
}

TEST_F(DeliverMixedTest, TheModuleTakesWhatWouldSplitTooManyMappings)
{
    use_costs(some_costs());
    params_.max_splits = 1;
    buffer b(36 * MiB);
    std::memset(b.data(), 9, b.size());
    zc_delivery_t how = deliver(b.data(), 32 * MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(how.means, ZC_MEANS_KMOD);
}

TEST_F(DeliverMixedTest, TheModuleTakesWhatMremapFailedToMove)
{
    use_costs(some_costs());
    static int calls;
    for (int failing : {1, 2}) {
        calls = -failing;
        kernel.move = [](addr_t from, addr_t to, std::size_t len) {
            return ++calls == 0 ? -EAGAIN : kernel_calls_real.move(from, to, len);
        };
        buffer b(36 * MiB);
        std::memset(b.data(), 9, b.size());
        zc_delivery_t how = deliver(b.data() + MiB, 32 * MiB, 7);
        EXPECT_EQ(how.reason, ZC_REASON_NONE);
        EXPECT_EQ(how.means, ZC_MEANS_KMOD);
        EXPECT_EQ(how.bytes_rebound, 32 * MiB);
    }
}

TEST_F(DeliverMixedTest, WhatNoMeansMayExchangeIsCopiedForTheModulesReason)
{
    use_costs(some_costs());
    buffer b(36 * MiB, MAP_SHARED | MAP_ANONYMOUS);
    fake_->refuse(b.all(), ZC_CAUSE_SHARED);
    zc_delivery_t how = deliver(b.data(), 32 * MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_SHARED);
    EXPECT_EQ(how.bytes_rebound, 0u);
    EXPECT_EQ(stats().copied_by_reason[ZC_REASON_SHARED], 1u);
}

TEST_F(DeliverMixedTest, AMirroredAddressSpaceIsMremaps)
{
    use_costs(some_costs());
    buffer b(4 * MiB);
    std::memset(b.data(), 9, b.size());
    fake_->refuse(b.all(), ZC_CAUSE_NOTIFIER);
    EXPECT_EQ(deliver(b.data(), 2 * MiB, 1).reason, ZC_REASON_NOTIFIER);
    for (unsigned i = 0; i < 5; i++)
        EXPECT_EQ(deliver(b.data(), 2 * MiB, i).means, ZC_MEANS_MREMAP);
    EXPECT_EQ(deliver(b.data(), 64 * KiB, 1).reason, ZC_REASON_NOTIFIER);
    EXPECT_EQ(deliver(b.data(), 8 * KiB, 1).reason, ZC_REASON_SMALL);
    EXPECT_EQ(fake_->calls().size(), 1u);
}

TEST_F(DeliverMixedTest, TwoMebibytesFarFromHugePagesOfAnotherOffset)
{
    use_costs(some_costs());
    buffer b(8 * MiB), other(8 * MiB);
    std::memset(b.data(), 9, b.size());
    zc_landing_t *l = acquire(6 * MiB, other.data() + 5 * kPage);
    fill(static_cast<char *>(zc_landing_data(l)), 6 * MiB, 5);
    zc_delivery_t how = deliver_landing(l, b.data() + 9 * kPage, 6 * MiB);
    EXPECT_EQ(how.means, ZC_MEANS_KMOD) << "not congruent modulo 2 MiB, so page by page";
    EXPECT_EQ(first_wrong(b.data() + 9 * kPage, 6 * MiB, 5), 6 * MiB);
}

/* ---- costs ---- */

TEST_F(DeliverMixedTest, CostsOfAMachineWithoutTheModuleAreCompleted)
{
    zc_costs_t c = some_costs(), got{};
    got.size = sizeof(got);
    c.kmod_ns_fixed = c.kmod_ns_per_page = c.kmod_ns_per_2m = 0;
    use_costs(c);
    ASSERT_EQ(zc_costs(zc(), &got), 0);
    EXPECT_EQ(got.mremap_ns_fixed, c.mremap_ns_fixed);
    EXPECT_GT(got.kmod_ns_fixed, 0);
}

TEST_F(DeliverMixedTest, CalibrationMeasuresTheModule)
{
    zc_costs_t c{};
    c.size = sizeof(c);
    ASSERT_EQ(zc_calibrate(zc(), &c), 0);
    EXPECT_GT(c.kmod_ns_fixed, 0);
    EXPECT_GT(c.kmod_ns_per_2m, 0);
    EXPECT_GT(c.mremap_ns_fixed, 0);
    EXPECT_TRUE(costs_plausible(c));
}

TEST_F(DeliverMixedTest, CalibrationGuessesWhereTheModuleRefuses)
{
    zc_costs_t c{};
    c.size = sizeof(c);
    zc();
    fake_->call_error = -EPERM;
    ASSERT_EQ(zc_calibrate(zc(), &c), 0);
    EXPECT_EQ(c.kmod_ns_fixed, with_kmod_guessed(kCostsUnmeasured).kmod_ns_fixed);
    EXPECT_GT(c.mremap_ns_fixed, 0);
}

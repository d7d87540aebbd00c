/* SPDX-License-Identifier: BSD-3-Clause */
/* Each wrong argument on its own, everything else valid. */
#include "support.h"

#include <cerrno>
#include <fstream>

using namespace zc;
using namespace zc::test;

namespace {

using ApiTest = fixture;

int create_error(const zc_params_t &p)
{
    zc_t *zc = nullptr;
    int err = zc_create(&p, &zc);
    EXPECT_EQ(zc == nullptr, err != 0) << "set only on success";
    zc_destroy(zc);
    return err;
}

} // namespace

TEST_F(ApiTest, CreateTakesDefaults)
{
    zc_t *zc = nullptr;
    EXPECT_EQ(zc_create(nullptr, &zc), 0);
    zc_destroy(zc);
    zc_params_t p{};
    p.size = sizeof(p);
    EXPECT_EQ(create_error(p), 0);
}

TEST_F(ApiTest, CreateTakesShorterParams)
{
    struct {
        std::size_t size = sizeof(std::size_t) * 2;
        std::size_t budget_bytes = MiB;
        char garbage[200];
    } old;
    std::memset(old.garbage, 0xff, sizeof(old.garbage));
    zc_t *zc = nullptr;
    ASSERT_EQ(zc_create(reinterpret_cast<zc_params_t *>(&old), &zc), 0);
    zc_landing_t *landing = nullptr;
    EXPECT_EQ(zc_landing_acquire(zc, MiB + 1, nullptr, &landing), -EMSGSIZE);
    zc_destroy(zc);
}

TEST_F(ApiTest, CreateRefusesSizeZero)
{
    params_.size = 0;
    EXPECT_EQ(create_error(params_), -EINVAL);
}

TEST_F(ApiTest, CreateRefusesUnknownFlags)
{
    params_.flags = 1u << 31;
    EXPECT_EQ(create_error(params_), -EINVAL);
}

TEST_F(ApiTest, CreateRefusesUnknownMeans)
{
    params_.means = 1u << ZC_MEANS_COUNT;
    EXPECT_EQ(create_error(params_), -EINVAL);
}

TEST_F(ApiTest, CreateRefusesNoOutput)
{
    EXPECT_EQ(zc_create(&params_, nullptr), -EINVAL);
}

TEST_F(ApiTest, CreateReportsAMissingCostFile)
{
    params_.cost_file = "/nonexistent/costs";
    EXPECT_EQ(create_error(params_), -ENOENT);
}

TEST_F(ApiTest, CreateReportsAMalformedCostFile)
{
    std::string path = testing::TempDir() + "zc_bad_costs";
    std::ofstream(path) << "{}";
    params_.cost_file = path.c_str();
    EXPECT_EQ(create_error(params_), -EBADMSG);
    (void)std::remove(path.c_str());
}

TEST_F(ApiTest, CreateTakesAnEndlessBudget)
{
    params_.budget_bytes = SIZE_MAX;
    EXPECT_EQ(create_error(params_), 0);
}

TEST_F(ApiTest, DestroyTakesNullAndLandingsInUse)
{
    zc_destroy(nullptr);
    std::size_t before = count_mappings();
    zc_t *other = nullptr;
    ASSERT_EQ(zc_create(&params_, &other), 0);
    zc_landing_t *landing = nullptr;
    ASSERT_EQ(zc_landing_acquire(other, MiB, nullptr, &landing), 0);
    zc_destroy(other);
    EXPECT_TRUE(kSanitized || count_mappings() <= before + 1);
}

TEST_F(ApiTest, AcquireRefusesNoContext)
{
    zc_landing_t *l = nullptr;
    EXPECT_EQ(zc_landing_acquire(nullptr, 1, nullptr, &l), -EINVAL);
}

TEST_F(ApiTest, AcquireRefusesLengthZero)
{
    zc_landing_t *l = nullptr;
    EXPECT_EQ(zc_landing_acquire(zc(), 0, nullptr, &l), -EINVAL);
}

TEST_F(ApiTest, AcquireRefusesNoOutput)
{
    EXPECT_EQ(zc_landing_acquire(zc(), 1, nullptr, nullptr), -EINVAL);
}

TEST_F(ApiTest, AcquireRefusesARangeThatWraps)
{
    zc_landing_t *l = nullptr;
    EXPECT_EQ(zc_landing_acquire(zc(), 2 * kPage, as_pointer(SIZE_MAX - kPage), &l), -EINVAL);
}

TEST_F(ApiTest, AcquireTellsNeverFromNotNow)
{
    zc_landing_t *l = nullptr;
    EXPECT_EQ(zc_landing_acquire(zc(), SIZE_MAX / 2, nullptr, &l), -EMSGSIZE);
    EXPECT_EQ(zc_landing_acquire(zc(), 65 * MiB, nullptr, &l), -EMSGSIZE);
    zc_landing_t *large = acquire(60 * MiB, nullptr);
    EXPECT_EQ(zc_landing_acquire(zc(), 10 * MiB, nullptr, &l), -ENOBUFS);
    EXPECT_EQ(stats().refused_budget, 1u);
    zc_landing_release(zc(), large);
    EXPECT_EQ(zc_landing_acquire(zc(), 10 * MiB, nullptr, &l), 0);
    zc_landing_release(zc(), l);
}

TEST_F(ApiTest, AcquireNeverTouchesTheExpectedAddress)
{
    zc_landing_t *l = acquire(8 * MiB, as_pointer(0x1234560));
    EXPECT_TRUE(congruent(as_address(zc_landing_data(l)), 0x1234560, kHuge));
    zc_landing_release(zc(), l);
}

TEST_F(ApiTest, DeliverRefusesMoreThanWasAcquired)
{
    buffer b(MiB);
    zc_landing_t *l = acquire(MiB - 1, b.data());
    EXPECT_EQ(zc_deliver(zc(), l, b.data(), MiB, nullptr), -EINVAL);
    EXPECT_EQ(zc_deliver(zc(), l, b.data(), MiB - 1, nullptr), 0) << "nothing was consumed";
}

TEST_F(ApiTest, DeliverRefusesNullAndWrapAround)
{
    buffer b(MiB);
    zc_landing_t *l = acquire(MiB, b.data());
    EXPECT_EQ(zc_deliver(nullptr, l, b.data(), 1, nullptr), -EINVAL);
    EXPECT_EQ(zc_deliver(zc(), nullptr, b.data(), 1, nullptr), -EINVAL);
    EXPECT_EQ(zc_deliver(zc(), l, nullptr, 1, nullptr), -EINVAL);
    EXPECT_EQ(zc_deliver(zc(), l, as_pointer(SIZE_MAX - 10), MiB, nullptr), -EINVAL);
    EXPECT_EQ(stats().deliveries, 0u);
    zc_landing_release(zc(), l);
}

TEST_F(ApiTest, DeliverTakesLengthZero)
{
    zc_landing_t *l = acquire(MiB, nullptr);
    zc_delivery_t how = deliver_landing(l, nullptr, 0);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(stats().in_use_now, 0u);
}

TEST_F(ApiTest, ReleaseAndDataTakeNull)
{
    zc_landing_release(zc(), nullptr);
    zc_landing_release(nullptr, nullptr);
    EXPECT_EQ(zc_landing_data(nullptr), nullptr);
}

TEST_F(ApiTest, EligibleRefusesLengthZeroAndWrapAround)
{
    buffer b(MiB);
    EXPECT_EQ(zc_eligible(zc(), b.data(), 0), -EINVAL);
    EXPECT_EQ(zc_eligible(zc(), as_pointer(SIZE_MAX), 2), -EINVAL);
    EXPECT_EQ(zc_eligible(nullptr, b.data(), 1), -EINVAL);
    EXPECT_EQ(zc_eligible(zc(), b.data(), MiB), 0);
    EXPECT_EQ(zc_eligible(zc(), b.data() + 1, kPage), ZC_REASON_SMALL);
}

TEST_F(ApiTest, StatsRefusesNullAndKeepsToTheCallersSize)
{
    zc_stats_t s{};
    EXPECT_EQ(zc_stats(zc(), nullptr), -EINVAL);
    EXPECT_EQ(zc_stats(zc(), &s), -EINVAL) << "size zero";
    std::memset(&s, 0xee, sizeof(s));
    s.size = offsetof(zc_stats_t, bytes_rebound);
    EXPECT_EQ(zc_stats(zc(), &s), 0);
    EXPECT_EQ(s.deliveries, 0u);
    EXPECT_EQ(s.bytes_rebound, 0xeeeeeeeeeeeeeeeeu);
    EXPECT_EQ(s.size, offsetof(zc_stats_t, bytes_rebound));
}

TEST_F(ApiTest, CostsAndCalibrateRefuseSizeZero)
{
    zc_costs_t c{};
    EXPECT_EQ(zc_costs(zc(), &c), -EINVAL);
    EXPECT_EQ(zc_calibrate(zc(), &c), -EINVAL);
    EXPECT_EQ(zc_costs(nullptr, &c), -EINVAL);
    EXPECT_EQ(zc_calibrate(nullptr, nullptr), -EINVAL);
}

TEST_F(ApiTest, CalibrateIsKept)
{
    zc_costs_t measured{}, kept{};
    measured.size = kept.size = sizeof(zc_costs_t);
    EXPECT_EQ(zc_calibrate(zc(), &measured), 0);
    EXPECT_EQ(zc_costs(zc(), &kept), 0);
    EXPECT_EQ(std::memcmp(&measured, &kept, sizeof(kept)), 0);
    EXPECT_EQ(zc_calibrate(zc(), nullptr), 0);
}

TEST_F(ApiTest, TrimTakesNull)
{
    EXPECT_EQ(zc_pool_trim(nullptr, 1), 0u);
}

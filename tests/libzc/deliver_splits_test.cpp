/* SPDX-License-Identifier: BSD-3-Clause */
/* How many mappings mremap leaves behind. */
#include "support.h"

using namespace zc;
using namespace zc::test;

namespace {

class DeliverSplitsTest : public fixture {
  protected:
    std::size_t below(std::size_t bound) { return random_() % bound; }

  private:
    std::mt19937_64 random_{2};
};

} // namespace

/* Wandering receives split mappings; rebinding must stop long before the
 * process cannot map any more, and stay right all the time. */
TEST_F(DeliverSplitsTest, WanderingReceivesNeverComeNearTheLimit)
{
    params_.max_splits = 2000;
    buffer b(64 * MiB);
    std::vector<char> model(b.size());
    zc_t *zc = this->zc();
    std::size_t before = count_mappings();
    for (int i = 0; i < 20'000; i++) {
        std::size_t len = 64 * KiB, at = below((b.size() - len) / 16) * 16;
        zc_landing_t *l = acquire(len, b.data() + at);
        std::memset(zc_landing_data(l), i, len);
        std::memset(model.data() + at, i, len);
        ASSERT_EQ(zc_deliver(zc, l, b.data() + at, len, nullptr), 0);
        if (!kSanitized && i % 1000 == 999) {
            ASSERT_LE(count_mappings(), before + params_.max_splits + 50);
        }
        ASSERT_LE(stats().splits_now, params_.max_splits);
    }
    EXPECT_EQ(std::memcmp(b.data(), model.data(), b.size()), 0);
    EXPECT_GT(stats().copied_by_reason[ZC_REASON_MAPPING_LIMIT], 0u);
    EXPECT_GT(stats().rebound_by_means[ZC_MEANS_MREMAP], 100u);
}

/* The same buffer over and over adds a handful of mappings, not more. */
TEST_F(DeliverSplitsTest, FixedBuffersStayBounded)
{
    buffer b(8 * MiB);
    for (unsigned i = 0; i < 20; i++)
        deliver(b.data() + 16, MiB, i);
    std::size_t settled = count_mappings(), splits = stats().splits_now;
    for (unsigned i = 0; i < 500; i++)
        ASSERT_EQ(deliver(b.data() + 16, MiB, i).reason, ZC_REASON_NONE);
    EXPECT_EQ(stats().splits_now, splits);
    if (!kSanitized) {
        EXPECT_LE(count_mappings(), settled + 2);
    }
}

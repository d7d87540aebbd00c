/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds with every means of exchange. */
#include "support.h"

using namespace zc;
using namespace zc::test;

namespace {

class DeliverBackendsTest : public backend_fixture, public testing::WithParamInterface<backend> {
  protected:
    DeliverBackendsTest() : backend_fixture(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Backends, DeliverBackendsTest, testing::ValuesIn(backends_under_test()),
                         [](const auto &of) { return name_of(of.param); });

} // namespace

TEST_P(DeliverBackendsTest, TellsBeforeItRebinds)
{
    struct call {
        void *addr = nullptr;
        std::size_t len = 0;
        char first = 0;
    } seen;
    params_.before_rebind = [](void *arg, void *addr, std::size_t len) {
        *static_cast<call *>(arg) = {addr, len, *static_cast<char *>(addr)};
    };
    params_.before_rebind_arg = &seen;
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    deliver(b.data() + 16, 64 * KiB, 1);
    EXPECT_EQ(seen.addr, b.data() + kPage);
    EXPECT_EQ(seen.len, 15 * kPage);
    EXPECT_EQ(seen.first, 9) << "too late";
    seen = {};
    deliver(b.data() + 16, 2000, 1);
    EXPECT_EQ(seen.addr, nullptr) << "nothing was rebound";
}

TEST_P(DeliverBackendsTest, RecyclingDoesNotFault)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    auto once = [&](unsigned i) {
        zc_landing_t *l = acquire(MiB - 100, b.data() + 50);
        std::memset(zc_landing_data(l), static_cast<int>(i), MiB - 100);
        ASSERT_EQ(deliver_landing(l, b.data() + 50, MiB - 100).reason, ZC_REASON_NONE);
        ASSERT_EQ(b.data()[50], static_cast<char>(i));
        ASSERT_EQ(b.data()[MiB - 51], static_cast<char>(i));
    };
    for (unsigned i = 0; i < 8; i++)
        once(i);
    std::uint64_t populated = stats().pages_populated;
    std::size_t mappings = count_mappings();
    long faults = minor_faults();
    for (unsigned i = 0; i < 300; i++)
        once(i);
    EXPECT_EQ(stats().pages_populated, populated);
    if (!kSanitized && !fake_) {
        EXPECT_LT(minor_faults() - faults, 50);
        EXPECT_LE(count_mappings(), mappings + 2);
    }
}

/* What the user had never touched is missing in the slot, and must be there
 * again before the next message lands. */
TEST_P(DeliverBackendsTest, UntouchedUserMemoryLeavesNoHoles)
{
    for (unsigned i = 0; i < 5; i++) {
        buffer b(MiB);
        zc_landing_t *l = acquire(MiB - 16, b.data() + 16);
        char *data = static_cast<char *>(zc_landing_data(l));
        range pages = touched_units(range_at(as_address(data), MiB - 16), kPage);
        EXPECT_EQ(resident_bytes(pages), pages.size()) << i;
        fill(data, MiB - 16, i);
        EXPECT_EQ(deliver_landing(l, b.data() + 16, MiB - 16).reason, ZC_REASON_NONE);
        EXPECT_EQ(first_wrong(b.data() + 16, MiB - 16, i), MiB - 16);
    }
    EXPECT_LE(stats().populated_max, params_.budget_bytes);
}

TEST_P(DeliverBackendsTest, UserMemoryThatWasOnlyRead)
{
    buffer b(MiB);
    for (std::size_t at = 0; at < MiB; at += kPage)
        EXPECT_EQ(const_cast<volatile char *>(b.data())[at], 0);
    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQ(deliver(b.data() + 16, MiB - 16, i).reason, ZC_REASON_NONE);
}

TEST_P(DeliverBackendsTest, HugePagesAreNotTradedForSmallOnes)
{
    if (fake_)
        GTEST_SKIP() << "to the fake device all pages are alike";
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(16 * MiB);
    buffer small(16 * MiB);
    advise(small.all(), MADV_NOHUGEPAGE);
    std::memset(small.data(), 9, small.size());
    zc_landing_t *l = acquire(8 * MiB, small.data());
    EXPECT_EQ(deliver_landing(l, b.data(), 8 * MiB).reason, ZC_REASON_PAGE_SIZE);
    EXPECT_EQ(huge_bytes(b.all()), b.size());
    l = acquire(8 * MiB, b.data());
    EXPECT_EQ(deliver_landing(l, small.data(), 8 * MiB).reason, ZC_REASON_PAGE_SIZE);
}

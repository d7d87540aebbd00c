/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded random deliveries against a model: an array of bytes and memcpy. */
#include "vma.h"

#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

/* Every other seed pretends to run on Linux 6.1, without the newer ioctls. */
class DeliverPropertyTest : public fixture, public testing::WithParamInterface<unsigned> {
  protected:
    DeliverPropertyTest() { kernel.newer_ioctls = GetParam() % 2 == 0; }

    /** Lands @len random bytes for @expected, delivers them to @dst, and does
     *  the like to the model. */
    zc_delivery_t step(const buffer &b, std::vector<char> &model, std::size_t at, std::size_t len,
                       const void *expected)
    {
        zc_landing_t *l = acquire(len, expected);
        char *data = static_cast<char *>(zc_landing_data(l));
        auto seed = static_cast<unsigned>(random_());
        fill(data, len, seed);
        fill(model.data() + at, len, seed);
        return deliver_landing(l, b.data() + at, len);
    }
    std::size_t below(std::size_t bound) { return random_() % bound; }

    std::mt19937_64 random_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeliverPropertyTest, testing::Range(1u, 9u));

} // namespace

/* Any address, length and prediction: only [dst, dst + len) changes. */
TEST_P(DeliverPropertyTest, OnlyTheReceivedBytesChange)
{
    params_.budget_bytes = 4 * MiB;
    buffer b(MiB);
    std::vector<char> model(MiB);
    fill(b.data(), MiB, 99);
    fill(model.data(), MiB, 99);
    std::size_t rebound = 0;
    for (int i = 0; i < 150; i++) {
        std::size_t len = 1 + below(i % 3 ? 20 * kPage : MiB / 2), at = below(MiB - len);
        const void *expected = below(5)   ? b.data() + at
                               : below(2) ? nullptr
                                          : b.data() + below(MiB);
        rebound += step(b, model, at, len, expected).bytes_rebound;
        ASSERT_EQ(std::memcmp(b.data(), model.data(), MiB), 0) << "step " << i;
        ASSERT_LE(stats().populated_now, params_.budget_bytes);
    }
    EXPECT_GT(rebound, 0u);
    EXPECT_LE(stats().populated_max, params_.budget_bytes);
}

/* Rows of all kinds of memory in one address range. */
TEST_P(DeliverPropertyTest, MixedMappings)
{
    constexpr std::size_t kPart = 32 * kPage, kParts = 12;
    buffer b(kPart * kParts);
    int fd = memfd_create("zc-test", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, kPart), 0);
    for (std::size_t i = 0; i < kParts; i++) {
        char *part = b.data() + i * kPart;
        switch (below(6)) {
        case 0:
            mmap(part, kPart, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0);
            break;
        case 1:
            mmap(part, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
            break;
        case 2:
            (void)lock_memory(part, 4 * kPage);
            break;
        case 3:
            madvise(part, kPart / 2, MADV_DONTDUMP);
            break;
        default:
            break;
        }
    }
    close(fd);
    std::vector<char> model(b.size());
    fill(b.data(), b.size(), 7);
    fill(model.data(), b.size(), 7);
    for (int i = 0; i < 100; i++) {
        std::size_t len = 1 + below(3 * kPart), at = below(b.size() - len);
        step(b, model, at, len, b.data() + at);
        ASSERT_EQ(std::memcmp(b.data(), model.data(), b.size()), 0) << "step " << i;
    }
}

TEST_P(DeliverPropertyTest, HugePagesStayHuge)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    params_.budget_bytes = 24 * MiB;
    buffer b(10 * MiB);
    advise(b.all(), MADV_HUGEPAGE);
    std::vector<char> model(b.size());
    fill(b.data(), b.size(), 7);
    fill(model.data(), b.size(), 7);
    ASSERT_EQ(huge_bytes(b.all()), b.size());
    for (int i = 0; i < 12; i++) {
        std::size_t len = 1 + below(9 * MiB), at = below(b.size() - len);
        step(b, model, at, len, b.data() + at);
        ASSERT_EQ(std::memcmp(b.data(), model.data(), b.size()), 0) << "step " << i;
        ASSERT_EQ(huge_bytes(b.all()), b.size()) << "step " << i;
        ASSERT_LE(stats().populated_now, params_.budget_bytes);
    }
}

/* A child forked at any moment keeps the bytes of that moment. */
TEST_P(DeliverPropertyTest, ForkInBetween)
{
    buffer b(MiB);
    std::vector<char> model(MiB);
    fill(b.data(), MiB, 7);
    fill(model.data(), MiB, 7);
    for (int round = 0; round < 6; round++) {
        int go[2];
        ASSERT_EQ(pipe(go), 0);
        pid_t child = fork();
        if (child == 0) {
            char c;
            close(go[1]);
            ssize_t n = read(go[0], &c, 1);
            _exit(n == 0 && std::memcmp(b.data(), model.data(), MiB) == 0 ? 0 : 1);
        }
        close(go[0]);
        for (int i = 0; i < 10; i++) {
            std::size_t len = 1 + below(MiB / 2), at = below(MiB - len);
            step(b, model, at, len, b.data() + at);
        }
        ASSERT_EQ(std::memcmp(b.data(), model.data(), MiB), 0);
        close(go[1]);
        int status = -1;
        waitpid(child, &status, 0);
        ASSERT_EQ(status, 0) << "the child's memory changed";
    }
}

/* What the pool says it holds is at least what it holds. */
TEST_P(DeliverPropertyTest, AccountsForEveryPage)
{
    params_.budget_bytes = 6 * MiB;
    zc_t *zc = this->zc();
    buffer b(8 * MiB);
    std::vector<char> model(b.size());
    std::vector<zc_landing_t *> held;
    for (int i = 0; i < 100; i++) {
        std::size_t len = 1 + below(i % 10 ? MiB : 5 * MiB), at = below(b.size() - len);
        zc_landing_t *l = nullptr;
        int err = zc_landing_acquire(zc, len, b.data() + at, &l);
        if (err == 0 && below(3) == 0 && held.size() < 3)
            held.push_back(l);
        else if (err == 0)
            deliver_landing(l, b.data() + at, len);
        else
            ASSERT_EQ(err, -ENOBUFS);
        if (held.size() == 3 || (err && !held.empty())) {
            zc_landing_release(zc, held.back());
            held.pop_back();
        }
        ASSERT_LE(stats().populated_now, params_.budget_bytes);
    }
    for (zc_landing_t *l : held)
        zc_landing_release(zc, l);
    EXPECT_EQ(stats().in_use_now, 0u);
    zc_pool_trim(zc, 1);
    EXPECT_EQ(stats().populated_now, 0u);
}

namespace {

class SplitLimitTest : public DeliverPropertyTest {};
INSTANTIATE_TEST_SUITE_P(OneSeed, SplitLimitTest, testing::Values(2u));

} // namespace

/* Wandering receives split mappings; rebinding must stop long before the
 * process cannot map any more, and stay right all the time. */
TEST_P(SplitLimitTest, WanderingReceivesNeverComeNearTheLimit)
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
TEST_P(SplitLimitTest, FixedBuffersStayBounded)
{
    buffer b(8 * MiB);
    std::vector<char> model(b.size());
    for (int i = 0; i < 20; i++)
        step(b, model, 16, MiB, b.data() + 16);
    std::size_t settled = count_mappings(), splits = stats().splits_now;
    for (int i = 0; i < 500; i++)
        ASSERT_EQ(step(b, model, 16, MiB, b.data() + 16).reason, ZC_REASON_NONE);
    EXPECT_EQ(stats().splits_now, splits);
    if (!kSanitized) {
        EXPECT_LE(count_mappings(), settled + 2);
    }
}

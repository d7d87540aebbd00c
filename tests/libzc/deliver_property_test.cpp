/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded random deliveries against a model: an array of bytes and memcpy. */
#include "vma.h"

#include "support.h"

#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

/** A buffer, and an array of the bytes that should be in it. */
struct modelled {
    explicit modelled(std::size_t bytes, int advice = MADV_NORMAL) : user(bytes), expected(bytes)
    {
        advise(user.all(), advice);
        fill_both();
    }
    void fill_both()
    {
        fill(user.data(), user.size(), 7);
        fill(expected.data(), user.size(), 7);
    }
    bool holds() const { return std::memcmp(user.data(), expected.data(), user.size()) == 0; }

    buffer user;
    std::vector<char> expected;
};

using variant = std::tuple<backend, unsigned>;

/* Every other seed pretends to run on Linux 6.1, without the newer ioctls. The
 * fake device refuses pages at random, for all sorts of causes. */
class DeliverPropertyTest : public backend_fixture, public testing::WithParamInterface<variant> {
  protected:
    DeliverPropertyTest() : backend_fixture(std::get<backend>(GetParam()))
    {
        kernel.newer_ioctls = seed() % 2 == 0;
        if (fake_) {
            constexpr unsigned kProbabilities[] = {0, 4, 64, 512};
            fake_->refuse_some(kProbabilities[seed() % 4], seed());
            fake_->interrupt_every(1 + seed() * 7);
        }
    }
    ~DeliverPropertyTest() override
    {
        if (fake_) {
            EXPECT_EQ(fake_->wrong_arguments(), 0u);
        }
    }
    static unsigned seed() { return std::get<unsigned>(GetParam()); }

    /** Lands @len random bytes for @predicted, delivers them to @at in the buffer, and does
     *  the like to the model. */
    zc_delivery_t step(modelled &m, std::size_t at, std::size_t len, const void *predicted)
    {
        zc_landing_t *l = acquire(len, predicted);
        char *data = static_cast<char *>(zc_landing_data(l));
        auto bytes = static_cast<unsigned>(random_());
        fill(data, len, bytes);
        fill(m.expected.data() + at, len, bytes);
        zc_delivery_t how = deliver_landing(l, m.user.data() + at, len);
        EXPECT_EQ(how.bytes_rebound > 0, how.means != ZC_MEANS_COPY);
        return how;
    }
    /** A step of up to @most bytes at a random place, predicted right. */
    void random_step(modelled &m, std::size_t most)
    {
        std::size_t len = 1 + below(most), at = below(m.user.size() - len);
        step(m, at, len, m.user.data() + at);
    }
    std::size_t below(std::size_t bound) { return random_() % bound; }

    std::mt19937_64 random_{seed()};
};

std::vector<variant> variants()
{
    std::vector<variant> all;
    for (backend b : backends_under_test())
        for (unsigned seed = 1; seed <= (b == backend::mremap ? 8 : 4); seed++)
            all.emplace_back(b, seed);
    return all;
}

std::string name_of_variant(const testing::TestParamInfo<variant> &info)
{
    return name_of(std::get<backend>(info.param)) + std::to_string(std::get<unsigned>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeliverPropertyTest, testing::ValuesIn(variants()),
                         name_of_variant);

} // namespace

/* Any address, length and prediction: only [dst, dst + len) changes. */
TEST_P(DeliverPropertyTest, OnlyTheReceivedBytesChange)
{
    params_.budget_bytes = 4 * MiB;
    modelled m(MiB);
    std::size_t rebound = 0;
    for (int i = 0; i < 150; i++) {
        std::size_t len = 1 + below(i % 3 ? 20 * kPage : MiB / 2), at = below(MiB - len);
        const void *predicted = below(5)   ? m.user.data() + at
                                : below(2) ? nullptr
                                           : m.user.data() + below(MiB);
        rebound += step(m, at, len, predicted).bytes_rebound;
        ASSERT_TRUE(m.holds()) << "step " << i;
        ASSERT_LE(stats().populated_now, params_.budget_bytes);
    }
    EXPECT_GT(rebound, 0u);
    EXPECT_LE(stats().populated_max, params_.budget_bytes);
}

/* Rows of all kinds of memory in one address range. */
TEST_P(DeliverPropertyTest, MixedMappings)
{
    constexpr std::size_t kPart = 32 * kPage, kParts = 12;
    modelled m(kPart * kParts);
    int fd = memory_file(kPart);
    for (std::size_t i = 0; i < kParts; i++) {
        char *part = m.user.data() + i * kPart;
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
    m.fill_both();
    for (int i = 0; i < 100; i++) {
        random_step(m, 3 * kPart);
        ASSERT_TRUE(m.holds()) << "step " << i;
    }
}

TEST_P(DeliverPropertyTest, HugePagesStayHuge)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    params_.budget_bytes = 24 * MiB;
    modelled m(10 * MiB, MADV_HUGEPAGE);
    ASSERT_EQ(huge_bytes(m.user.all()), m.user.size());
    for (int i = 0; i < 12; i++) {
        random_step(m, 9 * MiB);
        ASSERT_TRUE(m.holds()) << "step " << i;
        ASSERT_EQ(huge_bytes(m.user.all()), m.user.size()) << "step " << i;
        ASSERT_LE(stats().populated_now, params_.budget_bytes);
    }
}

/* Long messages at any offset: whole tables, and the pages around them. */
TEST_P(DeliverPropertyTest, LongMessages)
{
    params_.budget_bytes = 32 * MiB;
    modelled m(12 * MiB);
    for (int i = 0; i < 10; i++) {
        random_step(m, 11 * MiB);
        ASSERT_TRUE(m.holds()) << "step " << i;
        ASSERT_LE(stats().populated_now, params_.budget_bytes);
    }
    zc_stats_t s = stats();
    std::size_t by_mremap = s.bytes_rebound_by_means[ZC_MEANS_MREMAP],
                by_kmod = s.bytes_rebound_by_means[ZC_MEANS_KMOD];
    EXPECT_EQ(s.bytes_rebound, by_mremap + by_kmod);
    bool mixed = backend_ == backend::mixed || backend_ == backend::device_mixed;
    EXPECT_EQ(by_mremap > 0, mixed || backend_ == backend::mremap);
    EXPECT_EQ(by_kmod > 0, backend_ != backend::mremap);
}

/* A child forked at any moment keeps the bytes of that moment. */
TEST_P(DeliverPropertyTest, ForkInBetween)
{
    modelled m(MiB);
    for (int round = 0; round < 6; round++) {
        forked_check child([&] { return m.holds(); });
        for (int i = 0; i < 10; i++)
            random_step(m, MiB / 2);
        ASSERT_TRUE(m.holds());
        ASSERT_TRUE(child.passes()) << "the child's memory changed";
    }
}

/* What the pool says it holds is at least what it holds. */
TEST_P(DeliverPropertyTest, AccountsForEveryPage)
{
    params_.budget_bytes = 6 * MiB;
    zc_t *zc = this->zc();
    buffer b(8 * MiB);
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

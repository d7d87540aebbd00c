/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded random deliveries against a model: an array of bytes and memcpy. */
#include "vma.h"

#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

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

    /** Lands @len random bytes for @expected, delivers them to @dst, and does
     *  the like to the model. */
    zc_delivery_t step(const buffer &b, std::vector<char> &model, std::size_t at, std::size_t len,
                       const void *expected)
    {
        zc_landing_t *l = acquire(len, expected);
        char *data = static_cast<char *>(zc_landing_data(l));
        auto bytes = static_cast<unsigned>(random_());
        fill(data, len, bytes);
        fill(model.data() + at, len, bytes);
        zc_delivery_t how = deliver_landing(l, b.data() + at, len);
        EXPECT_EQ(how.bytes_rebound > 0, how.means != ZC_MEANS_COPY);
        return how;
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

/* Long messages at any offset: whole tables, and the pages around them. */
TEST_P(DeliverPropertyTest, LongMessages)
{
    params_.budget_bytes = 32 * MiB;
    buffer b(12 * MiB);
    std::vector<char> model(b.size());
    fill(b.data(), b.size(), 7);
    fill(model.data(), b.size(), 7);
    for (int i = 0; i < 10; i++) {
        std::size_t len = 1 + below(11 * MiB), at = below(b.size() - len);
        step(b, model, at, len, b.data() + at);
        ASSERT_EQ(std::memcmp(b.data(), model.data(), b.size()), 0) << "step " << i;
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* What other threads may see and do while one delivers. */
#include "support.h"

#include <atomic>
#include <cerrno>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace {

class DeliverThreadsTest : public backend_fixture, public testing::WithParamInterface<backend> {
  protected:
    DeliverThreadsTest() : backend_fixture(GetParam()) {}

    /* Pages that others are just using the module leaves alone. */
    const bool may_refuse_ = backend_ == backend::device || backend_ == backend::device_mixed;

    /** Runs @f over and over in another thread while @body runs in this one. */
    template <typename F, typename B>
    void meanwhile(F f, B body)
    {
        std::atomic<bool> stop{false}, started{false};
        std::thread other([&] {
            do {
                f();
                started = true;
            } while (!stop);
        });
        while (!started)
            std::this_thread::yield();
        body();
        stop = true;
        other.join();
    }

    void deliver_often(char *dst, std::size_t len, int times)
    {
        if (fake_)
            times /= 10; /* it is slow, and cannot be seen in between */
        for (int i = 0; i < times; i++) {
            zc_landing_t *l = acquire(len, dst);
            std::memset(zc_landing_data(l), i, len);
            zc_reason_t reason = deliver_landing(l, dst, len).reason;
            EXPECT_TRUE(may_refuse_ || reason == ZC_REASON_NONE) << zc_reason_name(reason);
            EXPECT_EQ(dst[len / 2], static_cast<char>(i));
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Backends, DeliverThreadsTest, testing::ValuesIn(backends_under_test()),
                         [](const auto &of) { return name_of(of.param); });

} // namespace

/* mmap() at a fixed address succeeds only where nothing is mapped: in the
 * user's range and in the arena it never may, at no instant. */
TEST_P(DeliverThreadsTest, NoAddressIsEverFree)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    zc_landing_t *any = acquire(MiB, b.data());
    addr_t pool = round_down(as_address(zc_landing_data(any)), kPage);
    zc_landing_release(zc(), any);
    std::atomic<int> taken{0};
    auto hammer = [&] {
        constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        for (addr_t at : {b.at() + 4 * kPage, b.at() + MiB / 2, pool + 4 * kPage, pool + MiB / 2}) {
            void *p = mmap(as_pointer(at), kPage, PROT_READ, kFlags, -1, 0);
            if (p == as_pointer(at))
                taken++;
            else if (p != MAP_FAILED)
                munmap(p, kPage);
        }
    };
    meanwhile(hammer, [&] { deliver_often(b.data(), MiB, 1500); });
    EXPECT_EQ(taken, 0);
}

TEST_P(DeliverThreadsTest, TheKernelCanAlwaysReadTheRange)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    std::atomic<int> holes{0};
    auto hammer = [&] {
        unsigned char pages[MiB / kPage];
        if (mincore(b.data(), MiB, pages) != 0)
            holes++;
        char copy[64];
        iovec to{copy, sizeof(copy)}, from{b.data() + MiB / 2, sizeof(copy)};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == -1 && errno == EFAULT)
            holes++;
    };
    meanwhile(hammer, [&] { deliver_often(b.data(), MiB, 1500); });
    EXPECT_EQ(holes, 0);
}

/* The bytes before and behind the message, in the same pages, are other
 * threads' to read and write. */
TEST_P(DeliverThreadsTest, NeighbouringBytesBelongToOthers)
{
    buffer b(MiB);
    constexpr std::size_t kAt = 2000, kLen = 64 * KiB;
    auto *before = reinterpret_cast<std::atomic<unsigned> *>(b.data() + kAt - 16);
    auto *behind = reinterpret_cast<std::atomic<unsigned> *>(b.data() + kAt + kLen + 16);
    unsigned count = 0, lost = 0;
    auto writer = [&] {
        for (int i = 0; i < 100; i++) {
            lost += before->load() != count || behind->load() != count;
            count++;
            before->store(count);
            behind->store(count);
        }
    };
    meanwhile(writer, [&] { deliver_often(b.data() + kAt, kLen, 3000); });
    EXPECT_EQ(lost, 0u);
    EXPECT_GT(count, 0u);
}

TEST_P(DeliverThreadsTest, OthersMapAndUnmapElsewhere)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    std::mt19937 random(3);
    auto mapper = [&] {
        std::size_t len = (1 + random() % 64) * kPage;
        void *p = mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(p, MAP_FAILED);
        static_cast<char *>(p)[0] = 1;
        mprotect(p, len, PROT_READ);
        munmap(p, len);
    };
    meanwhile(mapper, [&] { deliver_often(b.data() + 16, MiB - 16, 1000); });
}

/* Both ends of one VMA at once, so that each thread's exchange splits and
 * joins what the other has just asked the kernel about. */
TEST_P(DeliverThreadsTest, SeveralThreadsDeliverAtOnce)
{
    constexpr std::size_t kThreads = 4, kShare = 96 * kPage;
    buffer b(kThreads * kShare);
    std::memset(b.data(), 9, b.size());
    zc();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
            std::mt19937 random(static_cast<unsigned>(t));
            char *mine = b.data() + t * kShare;
            for (unsigned i = 0; i < 300; i++) {
                std::size_t len = 1 + random() % (kShare / 2), at = random() % (kShare / 2);
                zc_landing_t *l = nullptr;
                if (zc_landing_acquire(zc(), len, mine + at, &l) != 0)
                    continue;
                char *data = static_cast<char *>(zc_landing_data(l));
                fill(data, len, i);
                zc_delivery_t how{};
                wrong += zc_deliver(zc(), l, mine + at, len, &how) != 0;
                wrong += first_wrong(mine + at, len, i) != len;
                if (i % 50 == 0)
                    zc_pool_trim(zc(), 1);
            }
        });
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(stats().in_use_now, 0u);
    EXPECT_LE(stats().populated_max, params_.budget_bytes);
    EXPECT_GT(stats().bytes_rebound, 0u);
}

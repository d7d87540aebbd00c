/* SPDX-License-Identifier: BSD-3-Clause */
/* What each kind of user memory gets, and what becomes of it. */
#include "vma.h"

#include "support.h"

#include <cerrno>
#include <sys/resource.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

class DeliverTest : public fixture {
  protected:
    /** And counted in full: mremap takes all of it or nothing. */
    void expect_copied(const buffer &b, zc_reason_t reason, std::size_t offset = 16,
                       std::size_t len = 64 * KiB)
    {
        fixture::expect_copied(b, reason, offset, len);
        EXPECT_EQ(stats().bytes_copied_by_reason[reason], len);
    }
};

} // namespace

TEST_F(DeliverTest, ExchangesWholePagesAndCopiesTheEdges)
{
    zc_delivery_t how = deliver_inside(buffer(MiB), 64 * KiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(how.means, ZC_MEANS_MREMAP);
    EXPECT_EQ(how.bytes_rebound, 15 * kPage);
    EXPECT_EQ(stats().rebound_by_means[ZC_MEANS_MREMAP], 1u);
    EXPECT_EQ(stats().bytes_rebound, 15 * kPage);
    EXPECT_EQ(stats().bytes_copied, kPage);
}

TEST_F(DeliverTest, AShorterMessageThanExpected)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    zc_landing_t *l = acquire(MiB - 100, b.data() + 100);
    fill(static_cast<char *>(zc_landing_data(l)), MiB - 100, 3);
    zc_delivery_t how = deliver_landing(l, b.data() + 100, 10 * kPage);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(first_wrong(b.data() + 100, 10 * kPage, 3), 10 * kPage);
    EXPECT_EQ(b.data()[100 + 10 * kPage], 9);
}

TEST_F(DeliverTest, SmallerThanAPage)
{
    buffer b(MiB);
    expect_copied(b, ZC_REASON_SMALL, 16, 4000);
}

TEST_F(DeliverTest, BelowRebindMin)
{
    params_.rebind_min_bytes = MiB;
    buffer b(MiB);
    expect_copied(b, ZC_REASON_SMALL);
}

TEST_F(DeliverTest, TheCostModelDecides)
{
    params_.flags = 0;
    buffer b(8 * MiB);
    std::memset(b.data(), 9, b.size());
    EXPECT_EQ(deliver(b.data(), 2 * kPage, 1).reason, ZC_REASON_SMALL);
    zc_costs_t c{};
    c.size = sizeof(c);
    ASSERT_EQ(zc_calibrate(zc(), nullptr), 0);
    for (std::size_t len : {16 * KiB, 256 * KiB, 8 * MiB}) {
        ASSERT_EQ(zc_costs(zc(), &c), 0);
        zc_means_t means = zc_cheapest(&c, len, len, 1, 3);
        EXPECT_EQ(deliver(b.data(), len, 2).means, means) << len;
    }
}

TEST_F(DeliverTest, MeasuresTheMachineWhenThatIsWorthwhile)
{
    params_.flags = 0;
    buffer b(MiB);
    for (int i = 0; i < 10'000; i++)
        deliver(b.data(), 4 * kPage, 1);
    for (int mib = 1; mib < 32; mib++) {
        deliver(b.data(), MiB, 1);
        ASSERT_EQ(stats().calibrations, 0u) << mib << " MiB";
    }
    deliver(b.data(), MiB, 1);
    EXPECT_EQ(stats().calibrations, 1u);
    for (int i = 0; i < 64; i++)
        deliver(b.data(), MiB, 1);
    EXPECT_EQ(stats().calibrations, 1u);
}

TEST_F(DeliverTest, Mispredicted)
{
    buffer b(MiB);
    zc_landing_t *l = acquire(64 * KiB, b.data() + 24);
    fill(static_cast<char *>(zc_landing_data(l)), 64 * KiB, 3);
    zc_delivery_t how = deliver_landing(l, b.data() + 16, 64 * KiB);
    EXPECT_EQ(how.reason, ZC_REASON_NOT_CONGRUENT);
    EXPECT_EQ(first_wrong(b.data() + 16, 64 * KiB, 3), 64 * KiB);
}

TEST_F(DeliverTest, MispredictedButCongruent)
{
    buffer b(MiB), other(MiB);
    zc_landing_t *l = acquire(64 * KiB, other.data() + kPage + 16);
    zc_delivery_t how = deliver_landing(l, b.data() + 5 * kPage + 16, 64 * KiB);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
}

TEST_F(DeliverTest, Unpredicted)
{
    buffer b(MiB);
    zc_landing_t *l = acquire(64 * KiB, nullptr);
    EXPECT_EQ(deliver_landing(l, b.data() + 8, 64 * KiB).reason, ZC_REASON_UNPREDICTED);
}

/* malloc() returns large blocks 16 bytes into a page: worth the guess. */
TEST_F(DeliverTest, UnpredictedButWhereMallocPutsIt)
{
    buffer b(MiB);
    zc_landing_t *l = acquire(64 * KiB, nullptr);
    EXPECT_EQ(deliver_landing(l, b.data() + 16, 64 * KiB).reason, ZC_REASON_NONE);
}

TEST_F(DeliverTest, SwitchedOff)
{
    params_.means = 1u << ZC_MEANS_COPY;
    buffer b(MiB);
    expect_copied(b, ZC_REASON_DISABLED);
}

TEST_F(DeliverTest, CopyCannotBeSwitchedOff)
{
    params_.means = 1u << ZC_MEANS_MREMAP;
    buffer b(MiB, MAP_SHARED | MAP_ANONYMOUS);
    expect_copied(b, ZC_REASON_SHARED);
}

TEST_F(DeliverTest, Shared)
{
    buffer b(MiB, MAP_SHARED | MAP_ANONYMOUS);
    expect_copied(b, ZC_REASON_SHARED);
}

TEST_F(DeliverTest, PrivateFileKeepsItsMapping)
{
    buffer b(MiB, MAP_PRIVATE, memory_file(MiB));
    expect_copied(b, ZC_REASON_FILE);
    EXPECT_EQ(madvise(b.data(), MiB, MADV_DONTNEED), 0);
    EXPECT_EQ(b.data()[20], 0) << "back to the file's content";
}

TEST_F(DeliverTest, NextToReadOnly)
{
    buffer b(MiB);
    ASSERT_EQ(mprotect(b.data() + 32 * kPage, kPage, PROT_READ), 0);
    zc_delivery_t how = deliver(b.data() + 16, 32 * kPage - 16, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    EXPECT_EQ(b.data()[32 * kPage], 0);
    EXPECT_DEATH(const_cast<volatile char *>(b.data())[32 * kPage] = 1, "");
}

TEST_F(DeliverTest, ExecutableStaysExecutable)
{
    buffer code(MiB), other(MiB);
    if (mprotect(code.data(), MiB, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        GTEST_SKIP() << "may not write what it may execute: " << strerror(errno);
    expect_copied(code, ZC_REASON_READ_ONLY);
    ASSERT_NE(vm_flags(code.at() + 4 * kPage).find(" ex"), std::string::npos);
#ifdef __x86_64__
    code.data()[4 * kPage] = '\xc3'; /* ret */
    reinterpret_cast<void (*)()>(code.data() + 4 * kPage)();
#endif
    for (unsigned i = 0; i < 4; i++) {
        deliver(other.data() + 16, 64 * KiB, i);
        EXPECT_EQ(vm_flags(other.at() + 4 * kPage).find(" ex"), std::string::npos) << i;
    }
}

TEST_F(DeliverTest, Locked)
{
    buffer b(MiB);
    if (lock_memory(b.data() + 8 * kPage, kPage) != 0)
        GTEST_SKIP() << "may not lock memory: " << strerror(errno);
    expect_copied(b, ZC_REASON_LOCKED);
    EXPECT_NE(vm_flags(b.at() + 8 * kPage).find(" lo"), std::string::npos);
}

TEST_F(DeliverTest, Hugetlb)
{
    hugetlb_page page;
    if (!page)
        GTEST_SKIP() << "no hugetlb page is reserved (vm.nr_hugepages)";
    EXPECT_EQ(deliver(page.data() + 16, 64 * KiB, 5).reason, ZC_REASON_HUGETLB);
}

TEST_F(DeliverTest, TheMainStack)
{
    /* The test itself may run on a stack of a sanitizer's own making. */
    static char *page = nullptr;
    static const std::size_t len = 16 * KiB;
    char local[64 * KiB];
    page = reinterpret_cast<char *>(round_up(as_address(local), kPage)) + 16;
    zc_reason_t reason = deliver(page, len, 5).reason;
    EXPECT_TRUE(reason == ZC_REASON_STACK || reason == ZC_REASON_NONE);
    EXPECT_EQ(first_wrong(page, len, 5), len);
}

TEST_F(DeliverTest, TheHeapStillGrowsAndShrinks)
{
    char *start = static_cast<char *>(sbrk(0));
    ASSERT_NE(sbrk(static_cast<std::intptr_t>(4 * MiB)), reinterpret_cast<void *>(-1));
    char *dst = reinterpret_cast<char *>(round_up(as_address(start), kPage)) + 16;
    std::memset(dst, 9, 3 * MiB);
    zc_delivery_t how = deliver(dst, MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE);
    ASSERT_NE(sbrk(static_cast<std::intptr_t>(MiB)), reinterpret_cast<void *>(-1));
    EXPECT_EQ(first_wrong(dst, MiB, 1), MiB);
    EXPECT_EQ(dst[MiB], 9);
    ASSERT_EQ(brk(start), 0);
}

TEST_F(DeliverTest, SeveralVmasInOneBuffer)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    ASSERT_EQ(madvise(b.data() + 8 * kPage, 4 * kPage, MADV_DONTDUMP), 0);
    for (unsigned i = 0; i < 20; i++)
        EXPECT_EQ(deliver(b.data() + 16, 20 * kPage, i).reason, ZC_REASON_NONE);
    EXPECT_EQ(b.data()[15], 9);
    EXPECT_EQ(b.data()[16 + 20 * kPage], 9);
}

TEST_F(DeliverTest, FlagsOfTheUsersMappingStayTheSame)
{
    buffer b(16 * MiB);
    std::memset(b.data(), 9, b.size());
    std::string before = vm_flags(b.at() + 4 * kPage);
    for (std::size_t len : {64 * KiB, 8 * MiB}) {
        deliver(b.data() + 16, len, 1);
        std::string after = vm_flags(b.at() + 4 * kPage);
        /* "nr": the arena reserves without accounting; harmless to the user */
        if (auto nr = after.find(" nr"); nr != after.npos)
            after.erase(nr, 3);
        auto strip = [](std::string s) {
            if (auto ac = s.find(" ac"); ac != s.npos)
                s.erase(ac, 3);
            return s;
        };
        if (kernel_thp_mode() != thp_mode::always) {
            EXPECT_EQ(strip(after), strip(before));
        }
    }
}

TEST_F(DeliverTest, AUsersWishNotToForkDoesNotReachAnother)
{
    buffer first(MiB), second(MiB);
    std::memset(first.data(), 1, MiB);
    std::memset(second.data(), 1, MiB);
    ASSERT_EQ(madvise(first.data(), MiB, MADV_DONTFORK), 0);
    deliver(first.data(), MiB, 1);
    for (unsigned i = 2; i < 6; i++) {
        deliver(second.data(), MiB, i);
        EXPECT_EQ(vm_flags(second.at()).find(" dc"), std::string::npos) << i;
    }
}

TEST_F(DeliverTest, LogsEachReasonOnce)
{
    std::vector<std::string> lines;
    params_.log = [](void *arg, const char *line) {
        static_cast<std::vector<std::string> *>(arg)->push_back(line);
    };
    params_.log_arg = &lines;
    buffer b(MiB), shared(MiB, MAP_SHARED | MAP_ANONYMOUS);
    for (unsigned i = 0; i < 3; i++) {
        deliver(b.data() + 16, 64 * KiB, i);
        deliver(b.data() + 16, 100, i);
        deliver(shared.data() + 16, 64 * KiB, i);
    }
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_NE(lines[0].find("small"), std::string::npos);
    EXPECT_NE(lines[1].find("shared"), std::string::npos);
    EXPECT_EQ(lines[0].find('\n'), std::string::npos);
}

TEST_F(DeliverTest, RecyclingWorksForHugeMessages)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(12 * MiB);
    for (std::size_t len : {5 * MiB, 9 * MiB}) {
        for (unsigned i = 0; i < 4; i++)
            deliver(b.data() + MiB, len, i);
        std::uint64_t populated = stats().pages_populated;
        for (unsigned i = 0; i < 20; i++)
            deliver(b.data() + MiB, len, i);
        EXPECT_EQ(stats().pages_populated, populated) << len;
    }
}

TEST_F(DeliverTest, HugePagesAreExchangedWholeAndNeverSplit)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(16 * MiB);
    ASSERT_EQ(huge_bytes(b.all()), b.size());
    for (unsigned i = 0; i < 5; i++) {
        zc_delivery_t how = deliver(b.data() + 5 * kPage + 16, 10 * MiB, i);
        EXPECT_EQ(how.reason, ZC_REASON_NONE) << zc_reason_name(how.reason);
        EXPECT_EQ(how.bytes_rebound, 8 * MiB);
        EXPECT_EQ(huge_bytes(b.all()), b.size());
    }
}

TEST_F(DeliverTest, ABufferInsideOneHugePageIsCopied)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(4 * MiB);
    expect_copied(b, ZC_REASON_PAGE_SIZE, MiB, MiB);
    EXPECT_EQ(huge_bytes(b.all()), b.size());
}

TEST_F(DeliverTest, AFailureOfTheSecondMoveIsCopied)
{
    static int calls;
    for (int error : {-ENOMEM, -EAGAIN}) {
        calls = 0;
        static int result;
        result = error;
        kernel.move = [](addr_t from, addr_t to, std::size_t len) {
            return ++calls == 2 ? result : kernel_calls_real.move(from, to, len);
        };
        zc_delivery_t how = deliver_inside(buffer(MiB), 64 * KiB, 7);
        EXPECT_EQ(how.reason, error == -ENOMEM ? ZC_REASON_NO_MEMORY : ZC_REASON_SYSCALL);
        EXPECT_EQ(how.bytes_copied, 64 * KiB);
        kernel = kernel_calls_real;
    }
}

TEST_F(DeliverTest, AForkedChildKeepsItsView)
{
    buffer b(MiB);
    fill(b.data(), MiB, 1);
    zc_landing_t *l = acquire(MiB - 16, b.data() + 16);
    fill(static_cast<char *>(zc_landing_data(l)), MiB - 16, 2);
    forked_check child([&] {
        bool same = first_wrong(b.data(), MiB, 1) == MiB &&
                    first_wrong(static_cast<char *>(zc_landing_data(l)), MiB - 16, 2) == MiB - 16;
        /* and the child's own delivery works on the child's memory */
        zc_delivery_t how{};
        return same && zc_deliver(zc(), l, b.data() + 16, MiB - 16, &how) == 0 &&
               how.reason == ZC_REASON_NONE && first_wrong(b.data() + 16, MiB - 16, 2) == MiB - 16;
    });
    EXPECT_EQ(deliver_landing(l, b.data() + 16, MiB - 16).reason, ZC_REASON_NONE);
    for (unsigned i = 3; i < 6; i++)
        deliver(b.data() + 16, MiB - 16, i);
    EXPECT_TRUE(child.passes());
}

TEST_F(DeliverTest, IdleMemoryGoesBack)
{
    params_.idle_ns = 3'600'000'000'000;
    buffer b(MiB);
    deliver(b.data(), MiB, 1);
    EXPECT_EQ(zc_pool_trim(zc(), 0), 0u);
    EXPECT_GT(zc_pool_trim(zc(), 1), 0u);
    EXPECT_EQ(stats().populated_now, 0u);
    deliver(b.data(), MiB, 2);
}

TEST_F(DeliverTest, IntoAnotherLandingBufferIsCopied)
{
    zc_landing_t *target = acquire(MiB, nullptr);
    zc_delivery_t how = deliver(static_cast<char *>(zc_landing_data(target)), MiB / 2, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NO_MEANS);
    zc_landing_release(zc(), target);
}

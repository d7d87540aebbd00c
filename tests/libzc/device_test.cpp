/* SPDX-License-Identifier: BSD-3-Clause */
/* What /dev/zc makes of each kind of user memory. */
#include "exchanger.h"
#include "support.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

class DeviceTest : public backend_fixture {
  protected:
    DeviceTest() : backend_fixture(backend::device) {}
};

/** Page frames of @r; empty if this process may not see them. */
std::vector<std::uint64_t> frames(range r)
{
    constexpr std::uint64_t kFrame = (std::uint64_t{1} << 55) - 1;
    std::vector<std::uint64_t> entries(r.size() / kPage);
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    std::size_t bytes = entries.size() * sizeof(entries[0]);
    ssize_t n =
        pread(fd, entries.data(), bytes, static_cast<off_t>(r.begin / kPage * sizeof(entries[0])));
    close(fd);
    if (n != static_cast<ssize_t>(bytes))
        return {};
    for (std::uint64_t &e : entries)
        e &= kFrame;
    if (entries[0] == 0)
        return {};
    return entries;
}

/** An io_uring that holds @at pinned while it exists. */
class pin {
  public:
    pin(void *at, std::size_t len)
    {
        io_uring_params p{};
        ring_ = static_cast<int>(syscall(SYS_io_uring_setup, 1, &p));
        iovec v{at, len};
        done_ = ring_ >= 0 &&
                syscall(SYS_io_uring_register, ring_, IORING_REGISTER_BUFFERS, &v, 1) == 0;
    }
    ~pin()
    {
        if (ring_ >= 0)
            close(ring_);
    }
    pin(const pin &) = delete;
    pin &operator=(const pin &) = delete;
    explicit operator bool() const { return done_; }

  private:
    int ring_;
    bool done_;
};

} // namespace

TEST_F(DeviceTest, ExchangesWholePagesAndCopiesTheEdges)
{
    zc_delivery_t how = deliver_inside(buffer(MiB), 64 * KiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_NONE) << zc_reason_name(how.reason);
    EXPECT_EQ(how.means, ZC_MEANS_KMOD);
    EXPECT_EQ(how.bytes_rebound, 15 * kPage);
    EXPECT_EQ(stats().kmod_error, 0);
}

TEST_F(DeviceTest, TheVeryPagesChangePlaces)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    zc_landing_t *l = acquire(MiB, b.data());
    range landing = range_at(as_address(zc_landing_data(l)), MiB);
    std::memset(as_pointer(landing.begin), 1, MiB);
    auto in_user = frames(b.all()), in_landing = frames(landing);
    if (in_user.empty())
        GTEST_SKIP() << "may not see page frames";
    EXPECT_EQ(deliver_landing(l, b.data(), MiB).reason, ZC_REASON_NONE);
    EXPECT_EQ(frames(b.all()), in_landing);
    EXPECT_EQ(frames(landing), in_user);
}

TEST_F(DeviceTest, NoMappingChanges)
{
    buffer b(4 * MiB);
    std::memset(b.data(), 9, b.size());
    std::string flags = vm_flags(b.at());
    deliver(b.data(), 64 * KiB, 0);
    std::size_t before = count_mappings();
    for (unsigned i = 1; i < 200; i++)
        EXPECT_EQ(deliver(b.data() + 5 * i * kPage / 2, 64 * KiB, i).reason, ZC_REASON_NONE);
    EXPECT_TRUE(kSanitized || count_mappings() <= before);
    EXPECT_EQ(vm_flags(b.at()), flags);
}

TEST_F(DeviceTest, Shared)
{
    expect_copied(buffer(MiB, MAP_SHARED | MAP_ANONYMOUS), ZC_REASON_SHARED);
}

TEST_F(DeviceTest, PrivateFile)
{
    expect_copied(buffer(MiB, MAP_PRIVATE, memory_file(MiB)), ZC_REASON_FILE);
}

TEST_F(DeviceTest, OnlyTheLockedPartIsCopied)
{
    buffer b(2 * MiB);
    std::memset(b.data(), 9, b.size());
    if (lock_memory(b.data() + 100 * kPage, kPage) != 0)
        GTEST_SKIP() << "may not lock memory: " << strerror(errno);
    auto locked = frames(range_at(b.at() + 100 * kPage, kPage));
    zc_delivery_t how = deliver(b.data(), MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_LOCKED);
    EXPECT_GE(how.bytes_rebound, MiB - 128 * KiB);
    EXPECT_EQ(frames(range_at(b.at() + 100 * kPage, kPage)), locked);
}

TEST_F(DeviceTest, TheMainStack)
{
    static const std::size_t len = 16 * KiB;
    char local[64 * KiB];
    char *page = reinterpret_cast<char *>(round_up(as_address(local), kPage)) + 16;
    zc_reason_t reason = deliver(page, len, 5).reason;
    EXPECT_TRUE(kSanitized || reason == ZC_REASON_STACK) << zc_reason_name(reason);
}

TEST_F(DeviceTest, Hugetlb)
{
    hugetlb_page page;
    if (!page)
        GTEST_SKIP() << "no hugetlb page is reserved (vm.nr_hugepages)";
    EXPECT_EQ(deliver(page.data() + 16, 64 * KiB, 5).reason, ZC_REASON_HUGETLB);
}

TEST_F(DeviceTest, PagesSharedWithAForkedChildAreCopied)
{
    buffer b(MiB);
    fill(b.data(), MiB, 1);
    forked_check child([&] { return first_wrong(b.data(), MiB, 1) == MiB; });
    EXPECT_EQ(deliver(b.data(), MiB, 2).reason, ZC_REASON_COW);
    EXPECT_EQ(deliver(b.data(), MiB, 3).reason, ZC_REASON_NONE) << "the copy has ended it";
    EXPECT_TRUE(child.passes());
}

TEST_F(DeviceTest, PinnedPagesStayWhereTheyAre)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    pin held(b.data() + 20 * kPage, 3 * kPage);
    if (!held)
        GTEST_SKIP() << "no io_uring: " << strerror(errno);
    auto pinned = frames(range_at(b.at() + 20 * kPage, 3 * kPage));
    zc_delivery_t how = deliver(b.data(), MiB, 1);
    EXPECT_EQ(how.reason, ZC_REASON_PINNED);
    EXPECT_EQ(how.bytes_copied, 3 * kPage);
    EXPECT_EQ(frames(range_at(b.at() + 20 * kPage, 3 * kPage)), pinned);
}

TEST_F(DeviceTest, RegisteredWithUserfaultfd)
{
    buffer b(MiB);
    std::memset(b.data(), 9, b.size());
    int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    if (fd < 0)
        GTEST_SKIP() << "no userfaultfd: " << strerror(errno);
    uffdio_api api{};
    api.api = UFFD_API;
    ASSERT_EQ(ioctl(fd, UFFDIO_API, &api), 0);
    uffdio_register reg{};
    reg.range = {b.at(), MiB};
    reg.mode = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(ioctl(fd, UFFDIO_REGISTER, &reg), 0);
    expect_copied(b, ZC_REASON_USERFAULTFD);
    close(fd);
}

TEST_F(DeviceTest, BoundToAMemoryNode)
{
    buffer b(MiB);
    unsigned long node = 1;
    if (syscall(SYS_mbind, b.data(), MiB, MPOL_BIND, &node, sizeof(node) * 8, 0) != 0)
        GTEST_SKIP() << "no memory policies: " << strerror(errno);
    std::memset(b.data(), 9, b.size());
    expect_copied(b, ZC_REASON_POLICY);
}

TEST_F(DeviceTest, HugePagesAreExchangedWholeAndNeverSplit)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(16 * MiB);
    if (huge_bytes(b.all()) != b.size())
        GTEST_SKIP() << "not huge pages enough";
    for (unsigned i = 0; i < 5; i++) {
        zc_delivery_t how = deliver(b.data() + 5 * kPage + 16, 10 * MiB, i);
        EXPECT_EQ(how.reason, ZC_REASON_PAGE_SIZE) << "the ends are parts of huge pages";
        EXPECT_EQ(how.bytes_rebound, 8 * MiB);
        EXPECT_EQ(huge_bytes(b.all()), b.size());
    }
    EXPECT_EQ(deliver(b.data(), 10 * MiB, 6).reason, ZC_REASON_NONE);
}

TEST_F(DeviceTest, SignalsOnlyCostTime)
{
    static volatile std::sig_atomic_t signals;
    struct sigaction action {};
    action.sa_handler = [](int) { signals = signals + 1; };
    ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
    itimerval often{{0, 200}, {0, 200}}, never{};
    buffer b(8 * MiB);
    std::memset(b.data(), 9, b.size());
    ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    for (unsigned i = 0; i < 30; i++)
        EXPECT_EQ(deliver(b.data() + 16, 8 * MiB - 16, i).reason, ZC_REASON_NONE);
    ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
    EXPECT_GT(signals, 0);
}

TEST_F(DeviceTest, CalibrationMeasuresIt)
{
    zc_costs_t c{};
    c.size = sizeof(c);
    ASSERT_EQ(zc_calibrate(zc(), &c), 0);
    EXPECT_GT(c.kmod_ns_fixed, 0);
    EXPECT_GT(c.kmod_ns_per_2m, 0);
}

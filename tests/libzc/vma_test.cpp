/* SPDX-License-Identifier: BSD-3-Clause */
#include "vma.h"

#include "proc_text.h"
#include "support.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

/* Every question is asked both ways: through the newer ioctls, where the
 * kernel has them, and through text, as on Linux 6.1. */
class VmaTest : public testing::TestWithParam<bool> {
  protected:
    VmaTest() : space_(address_space::features{GetParam(), GetParam(), GetParam()})
    {
        if (GetParam() && !space_.available().procmap_query)
            skip_ = "this kernel has no PROCMAP_QUERY";
    }
    void SetUp() override
    {
        if (skip_)
            GTEST_SKIP() << skip_;
    }
    zc_reason_t ask(range r) { return space_.examine(r, false, pieces_); }

    address_space space_;
    vma_pieces pieces_;
    const char *skip_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Both, VmaTest, testing::Values(true, false),
                         [](const auto &instance) { return instance.param ? "ioctl" : "text"; });

TEST_P(VmaTest, AnonymousPrivateIsEligible)
{
    buffer b(MiB);
    EXPECT_EQ(ask(b.all()), ZC_REASON_NONE);
    EXPECT_EQ(pieces_.count(), 1u);
    EXPECT_EQ(*pieces_.begin(), b.all());
    EXPECT_EQ(pieces_.first_vma(), b.all());
}

TEST_P(VmaTest, HeapIsEligible)
{
    char *heap = static_cast<char *>(sbrk(0));
    ASSERT_NE(sbrk(4 * kPage), reinterpret_cast<void *>(-1));
    EXPECT_EQ(ask(range_at(round_up(as_address(heap), kPage), kPage)), ZC_REASON_NONE);
}

TEST_P(VmaTest, NamedAnonymousIsEligible)
{
    buffer b(MiB);
    constexpr int kSetVma = 0x53564d41, kName = 0; /* prctl(2), Linux 5.17 */
    if (prctl(kSetVma, kName, b.at(), b.size(), "a buffer") != 0)
        GTEST_SKIP() << "this kernel does not name anonymous memory";
    EXPECT_EQ(ask(b.all()), ZC_REASON_NONE);
}

TEST_P(VmaTest, SplitsIntoPiecesByVma)
{
    buffer b(4 * kPage);
    ASSERT_EQ(madvise(b.data() + kPage, kPage, MADV_DONTDUMP), 0);
    EXPECT_EQ(ask(b.all()), ZC_REASON_NONE);
    ASSERT_EQ(pieces_.count(), 3u);
    EXPECT_EQ(pieces_.begin()[1], range_at(b.at() + kPage, kPage));
    EXPECT_EQ(pieces_.last_vma(), range_at(b.at() + 2 * kPage, 2 * kPage));
    pieces_.clip(range_at(b.at() + kPage, 2 * kPage));
    EXPECT_EQ(pieces_.count(), 2u);
}

TEST_P(VmaTest, TooManyPieces)
{
    buffer b(40 * kPage);
    for (std::size_t i = 0; i < 40; i += 2)
        ASSERT_EQ(madvise(b.data() + i * kPage, kPage, MADV_DONTDUMP), 0);
    EXPECT_EQ(ask(b.all()), ZC_REASON_MAPPING_LIMIT);
    EXPECT_EQ(ask(range_at(b.at(), 4 * kPage)), ZC_REASON_NONE);
}

TEST_P(VmaTest, Shared)
{
    buffer b(MiB, MAP_SHARED | MAP_ANONYMOUS);
    EXPECT_EQ(ask(b.all()), ZC_REASON_SHARED);
}

TEST_P(VmaTest, PrivateFile)
{
    buffer b(MiB, MAP_PRIVATE, memory_file(MiB));
    std::memset(b.data(), 1, b.size());
    EXPECT_EQ(ask(b.all()), ZC_REASON_FILE);
}

TEST_P(VmaTest, ReadOnlyPartSpoilsTheWhole)
{
    buffer b(MiB);
    ASSERT_EQ(mprotect(b.data() + 16 * kPage, kPage, PROT_READ), 0);
    EXPECT_EQ(ask(b.all()), ZC_REASON_READ_ONLY);
    EXPECT_EQ(ask(range_at(b.at(), 16 * kPage)), ZC_REASON_NONE);
}

TEST_P(VmaTest, ExecutablePartSpoilsTheWhole)
{
    buffer b(MiB);
    if (mprotect(b.data() + 16 * kPage, kPage, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        GTEST_SKIP() << "may not write what it may execute: " << strerror(errno);
    EXPECT_EQ(ask(b.all()), ZC_REASON_READ_ONLY);
    EXPECT_EQ(ask(range_at(b.at(), 16 * kPage)), ZC_REASON_NONE);
}

TEST_P(VmaTest, HolesAndEnds)
{
    buffer b(MiB);
    ASSERT_EQ(munmap(b.data() + 16 * kPage, kPage), 0);
    EXPECT_EQ(ask(b.all()), ZC_REASON_UNMAPPED);
    constexpr addr_t kEndOfUsers = 0x7ffffffff000;
    EXPECT_NE(ask(range_at(kEndOfUsers - kPage, kPage)), ZC_REASON_NONE);
    EXPECT_EQ(ask(range_at(kPage, kPage)), ZC_REASON_UNMAPPED);
}

TEST_P(VmaTest, StackAndKernelsOwn)
{
    range stack, vdso;
    for_each_line("/proc/self/maps", [&](std::string_view line) {
        vma area;
        if (parse_maps_line(line, area) && line.ends_with("[stack]"))
            stack = area.span;
        if (parse_maps_line(line, area) && line.ends_with("[vdso]"))
            vdso = area.span;
        return true;
    });
    ASSERT_FALSE(stack.empty());
    EXPECT_EQ(ask(range_at(stack.end - 2 * kPage, kPage)), ZC_REASON_STACK);
    if (!vdso.empty()) {
        EXPECT_EQ(ask(range_at(vdso.begin, kPage)), ZC_REASON_STACK);
    }
}

TEST_P(VmaTest, Locked)
{
    buffer locked(16 * kPage), other(16 * kPage);
    if (lock_memory(locked.data() + kPage, kPage) != 0)
        GTEST_SKIP() << "may not lock memory: " << strerror(errno);
    EXPECT_EQ(ask(locked.all()), ZC_REASON_LOCKED);
    EXPECT_EQ(ask(other.all()), ZC_REASON_NONE) << "other memory is locked, not this";
    unlock_memory(locked.data() + kPage, kPage);
    EXPECT_EQ(ask(locked.all()), ZC_REASON_NONE);
}

/* A checkpointer that has userfaultfd(2) note what is written: it would miss what an
 * exchange brings. Seen by PAGEMAP_SCAN only. */
TEST_P(VmaTest, TrackedByUserfaultfd)
{
    if (!GetParam())
        GTEST_SKIP() << "cannot be seen without PAGEMAP_SCAN";
    constexpr std::uint64_t kNoteWrites = 1u << 15; /* UFFD_FEATURE_WP_ASYNC, Linux 6.7 */
    int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    uffdio_api api{UFFD_API, kNoteWrites, 0};
    buffer b(16 * kPage), other(16 * kPage);
    uffdio_register mine{};
    mine.range = {b.at() + kPage, kPage};
    mine.mode = UFFDIO_REGISTER_MODE_WP;
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &mine) != 0)
        GTEST_SKIP() << "may not, or cannot, be told of writes: " << strerror(errno);
    EXPECT_EQ(ask(b.all()), ZC_REASON_USERFAULTFD);
    EXPECT_EQ(ask(range_at(b.at(), kPage)), ZC_REASON_NONE);
    EXPECT_EQ(ask(other.all()), ZC_REASON_NONE);
    close(fd);
    EXPECT_EQ(ask(b.all()), ZC_REASON_NONE);
}

TEST_P(VmaTest, Hugetlb)
{
    hugetlb_page page;
    if (!page)
        GTEST_SKIP() << "no hugetlb page is reserved (vm.nr_hugepages)";
    EXPECT_EQ(ask(page.all()), ZC_REASON_HUGETLB);
}

TEST_P(VmaTest, AnswersForTheChildAfterFork)
{
    buffer b(MiB);
    forked_check child([&] {
        /* The parent keeps its mapping: a descriptor of the parent's would
         * call the child's hole eligible. */
        munmap(b.data() + kPage, kPage);
        return ask(b.all()) == ZC_REASON_UNMAPPED;
    });
    EXPECT_TRUE(child.passes());
    EXPECT_EQ(ask(b.all()), ZC_REASON_NONE);
}

TEST_P(VmaTest, EndsInsideHugePagesAreTrimmed)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    huge_buffer b(8 * MiB);
    range odd{b.at() + 5 * kPage, b.at() + 8 * MiB - 3 * kPage};
    ASSERT_EQ(ask(odd), ZC_REASON_NONE);
    EXPECT_EQ(space_.without_straddling(odd, pieces_), (range{b.at() + 2 * MiB, b.at() + 6 * MiB}));
    range inside = range_at(b.at() + kPage, MiB);
    ASSERT_EQ(ask(inside), ZC_REASON_NONE);
    EXPECT_TRUE(space_.without_straddling(inside, pieces_).empty());
    EXPECT_NE(space_.huge_inside(b.all(), kFewUnits), address_space::huge::no);
}

/* The unit an end lies in reaches out of the VMA: no huge page can be there. */
TEST_P(VmaTest, NothingIsTrimmedWhereNoHugePageFits)
{
    buffer b(2 * MiB - kPage);
    std::memset(b.data(), 1, b.size());
    range odd{b.at() + kPage, b.at() + MiB};
    ASSERT_EQ(ask(odd), ZC_REASON_NONE);
    EXPECT_EQ(space_.without_straddling(odd, pieces_), odd);
    EXPECT_EQ(space_.huge_inside(odd, kFewUnits), address_space::huge::no);
}

TEST(VmaObjectionTest, EachPropertyHasItsReason)
{
    vma fine;
    fine.readable = fine.writable = true;
    EXPECT_EQ(vma_objection(fine), ZC_REASON_NONE);
    auto with = [&](bool vma::*flag) {
        vma v = fine;
        v.*flag = !(v.*flag);
        return vma_objection(v);
    };
    EXPECT_EQ(with(&vma::readable), ZC_REASON_READ_ONLY);
    EXPECT_EQ(with(&vma::writable), ZC_REASON_READ_ONLY);
    EXPECT_EQ(with(&vma::executable), ZC_REASON_READ_ONLY);
    EXPECT_EQ(with(&vma::shared), ZC_REASON_SHARED);
    EXPECT_EQ(with(&vma::file), ZC_REASON_FILE);
    EXPECT_EQ(with(&vma::hugetlb), ZC_REASON_HUGETLB);
    EXPECT_EQ(with(&vma::special), ZC_REASON_STACK);
}

TEST(MapsLineTest, ReadsWhatTheKernelWrites)
{
    vma v;
    ASSERT_TRUE(parse_maps_line("7f00-8f00 rw-p 00000000 00:00 0                [stack]", v));
    EXPECT_EQ(v.span, (range{0x7f00, 0x8f00}));
    EXPECT_TRUE(v.readable && v.writable && !v.executable && !v.shared && !v.file && v.special);
    ASSERT_TRUE(parse_maps_line("1000-2000 r-xs 00001000 fd:01 42  /a file", v));
    EXPECT_TRUE(v.readable && !v.writable && v.executable && v.shared && v.file && !v.special);
    ASSERT_TRUE(parse_maps_line("1000-2000 rw-p 00000000 00:0f 77 /anon_hugepage (deleted)", v));
    EXPECT_TRUE(v.hugetlb);
    ASSERT_TRUE(parse_maps_line("1000-2000 rw-p 00000000 00:00 0 ", v));
    EXPECT_EQ(vma_objection(v), ZC_REASON_NONE);
    ASSERT_TRUE(parse_maps_line("1000-2000 rw-p 00000000 00:00 0 [anon:x]", v));
    EXPECT_FALSE(v.special);
}

TEST(MapsLineTest, RefusesOtherLines)
{
    vma v;
    for (const char *line : {"", "Size:   4 kB", "VmFlags: rd wr mr", "1000 rw-p", "zzz-1 rw-p"})
        EXPECT_FALSE(parse_maps_line(line, v)) << line;
}

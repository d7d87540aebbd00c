/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena.h"

#include "support.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

TEST(ArenaTest, OpensAlignedAndDisjointRanges)
{
    arena a(64 * MiB);
    range x = a.open(3 * kPage, kPage), y = a.open(kHuge, kHuge), z = a.open(kPage, kPage);
    EXPECT_EQ(y.begin % kHuge, 0u);
    EXPECT_TRUE(intersection(x, y).empty() && intersection(y, z).empty() &&
                intersection(x, z).empty());
    for (range r : {x, y, z})
        std::memset(as_pointer(r.begin), 1, r.size());
}

TEST(ArenaTest, ReusesWhatWasClosed)
{
    arena a(8 * MiB);
    for (int i = 0; i < 100; i++) {
        range x = a.open(5 * MiB, kPage);
        ASSERT_FALSE(x.empty());
        range y = a.open(MiB, kPage);
        ASSERT_FALSE(y.empty());
        std::memset(as_pointer(x.begin), 1, kPage);
        a.close(x);
        a.close(y);
    }
    EXPECT_FALSE(a.open(8 * MiB, kPage).empty()) << "the holes were not joined";
}

TEST(ArenaTest, ClosedMemoryIsGoneAndInaccessible)
{
    arena a(4 * MiB);
    range x = a.open(MiB, kPage);
    std::memset(as_pointer(x.begin), 7, x.size());
    a.close(x);
    EXPECT_EQ(resident_bytes(x), 0u);
    EXPECT_DEATH(static_cast<volatile char *>(as_pointer(x.begin))[0] = 1, "");
}

TEST(ArenaTest, RenewedMemoryReadsAsZero)
{
    arena a(4 * MiB);
    range x = a.open(MiB, kPage);
    std::memset(as_pointer(x.begin), 7, x.size());
    EXPECT_TRUE(a.renew(x));
    EXPECT_EQ(static_cast<char *>(as_pointer(x.begin))[0], 0);
}

TEST(ArenaTest, AnswersEmptyWhenFull)
{
    arena a(2 * MiB);
    EXPECT_FALSE(a.open(2 * MiB, kPage).empty());
    EXPECT_TRUE(a.open(kPage, kPage).empty());
}

TEST(ArenaTest, TakesLessWhereAddressSpaceIsLimited)
{
    if (kSanitized)
        GTEST_SKIP() << "sanitizers reserve terabytes of addresses themselves";
    pid_t child = fork();
    if (child == 0) {
        rlimit limit{std::size_t{2} << 30, std::size_t{2} << 30};
        setrlimit(RLIMIT_AS, &limit);
        arena a(std::size_t{16} << 30);
        _exit(a.size() > 0 && a.size() < std::size_t{2} << 30 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

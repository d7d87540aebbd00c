/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena.h"

#include "support.h"

#include <cstdlib>
#include <new>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

thread_local bool memory_is_full = false;

struct full_memory {
    full_memory() { memory_is_full = true; }
    ~full_memory() { memory_is_full = false; }
};

} // namespace

void *operator new(std::size_t bytes)
{
    void *p = memory_is_full ? nullptr : std::malloc(bytes);
    if (!p)
        throw std::bad_alloc();
    return p;
}

void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept
{
    return memory_is_full ? nullptr : std::malloc(bytes);
}

void operator delete(void *p) noexcept
{
    std::free(p);
}

void operator delete(void *p, std::size_t) noexcept
{
    std::free(p);
}

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

TEST(ArenaTest, ClosesWithoutMemory)
{
    arena a(8 * MiB);
    std::vector<range> all;
    for (int i = 0; i < 8; i++)
        all.push_back(a.open(MiB, kPage));
    {
        const full_memory full;
        for (const std::size_t i : {1, 5, 3, 7, 0, 2, 6, 4})
            a.close(all[i]);
    }
    EXPECT_FALSE(a.open(8 * MiB, kPage).empty()) << "a hole was lost";
}

TEST(ArenaTest, IsAsBeforeIfThereIsNoMemoryToOpen)
{
    arena a(8 * MiB);
    const range x = a.open(MiB, kPage);
    {
        const full_memory full;
        EXPECT_THROW(a.open(MiB, kHuge), std::bad_alloc);
    }
    a.close(x);
    EXPECT_FALSE(a.open(8 * MiB, kPage).empty()) << "a hole was lost";
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

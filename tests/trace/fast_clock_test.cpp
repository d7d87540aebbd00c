/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fast_clock.h"

namespace {

std::uint64_t kernel_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

/** What its readings may differ from the kernel's, which are made just before and after. */
constexpr std::uint64_t kFar = 20'000;
constexpr std::uint64_t kWhile = 30'000'000;

/** For a while: right, and never going back. */
void read_and_compare()
{
    const std::uint64_t end = kernel_ns() + kWhile;
    std::uint64_t last = 0, before = 0;
    while (before < end) {
        before = kernel_ns();
        for (int i = 0; i < 20; i++) {
            const std::uint64_t now = zc_fast_clock_ns();
            ASSERT_GE(now, last);
            last = now;
        }
        ASSERT_GE(last + kFar, before);
        ASSERT_LE(last, kernel_ns() + kFar);
    }
}

TEST(FastClockTest, IsTheKernelsClock)
{
    read_and_compare();
}

TEST(FastClockTest, IsRightAfterALongSleep)
{
    zc_fast_clock_ns();
    for (const long ns : {500'000L, 1'000'000L, 5'000'000L, 300'000'000L}) {
        const timespec span{0, ns};
        nanosleep(&span, nullptr);
        const std::uint64_t before = kernel_ns(), now = zc_fast_clock_ns(), after = kernel_ns();
        EXPECT_GE(now + kFar, before) << ns;
        EXPECT_LE(now, after + kFar) << ns;
    }
}

TEST(FastClockTest, ThreadsAgree)
{
    std::vector<std::thread> all;
    for (int i = 0; i < 4; i++)
        all.emplace_back(read_and_compare);
    for (std::thread &one : all)
        one.join();
}

/** Two threads tell each other the time, in turns. */
struct alignas(64) told {
    std::atomic<std::uint64_t> ns{0};
};

/** By how much what it was told was later than its own clock, at most. */
std::uint64_t find_lead(told &mine, const told &others, std::uint64_t end)
{
    std::uint64_t lead = 0, last = 0;
    while (kernel_ns() < end) {
        mine.ns.store(zc_fast_clock_ns(), std::memory_order_release);
        for (int i = 0; i < 1000; i++) {
            const std::uint64_t heard = others.ns.load(std::memory_order_acquire);
            if (heard == last)
                continue;
            const std::uint64_t now = zc_fast_clock_after_ns();
            lead = std::max(lead, heard > now ? heard - now : 0);
            last = heard;
            break;
        }
    }
    return lead;
}

/** Nothing is received before it was sent, but for what two readings of the kernel's clock lack. */
TEST(FastClockTest, IsNotBehindWhatAnotherThreadHasTold)
{
    constexpr std::uint64_t kReadings = 200;
    const std::uint64_t end = kernel_ns() + 10 * kWhile;
    std::uint64_t leads[2] = {};
    told sides[2];
    std::thread other([&] { leads[1] = find_lead(sides[1], sides[0], end); });
    leads[0] = find_lead(sides[0], sides[1], end);
    other.join();
    EXPECT_LE(leads[0], kReadings);
    EXPECT_LE(leads[1], kReadings);
    EXPECT_NE(sides[1].ns.load(), 0u);
}

TEST(FastClockTest, GoesOnInAChild)
{
    read_and_compare();
    const pid_t child = fork();
    if (child == 0) {
        read_and_compare();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

/** As of a process that was restored on another host, whose counter is elsewhere. */
TEST(FastClockTest, FindsAnotherCounter)
{
    read_and_compare();
    for (const std::uint64_t moved : {std::uint64_t{1} << 32, std::uint64_t{1} << 60}) {
        zc_fast_clock_here.anchor += moved;
        read_and_compare();
        zc_fast_clock_here.anchor -= moved;
        read_and_compare();
    }
}

/** And whose clock is elsewhere, too. */
TEST(FastClockTest, FollowsAClockThatHasGoneBack)
{
    read_and_compare();
    zc_fast_clock_here.limit = 0;
    zc_fast_clock_here.anchor_ns += 3'600'000'000'000u;
    read_and_compare();
}

} // namespace

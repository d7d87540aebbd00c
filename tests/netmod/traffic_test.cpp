/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <mpidimpl.h>

extern "C" {
#include "zc_traffic.h"
}

struct zc_test_process MPIR_Process;
struct zc_test_global MPIDI_global;

namespace {

constexpr uint32_t kMagic = 0x7254635a, kEntries = 8;
constexpr size_t kBytes = sizeof(MPIDI_ZC_traffic_t) + kEntries * 16;
constexpr int64_t kHour = 3'600'000'000'000;

int64_t ns_of(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1'000'000'000) + now.tv_nsec;
}

// Of this process as its own holder.
int64_t clocks()
{
    return ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC);
}

class TrafficTest : public testing::Test {
  protected:
    TrafficTest() : fd_(memfd_create("traffic", MFD_CLOEXEC))
    {
        MPIR_Process = {2, 4};
        MPIDI_global = {1};
        EXPECT_EQ(ftruncate(fd_, kBytes), 0);
        its_ = static_cast<MPIDI_ZC_traffic_t *>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
        *its_ = {};
        its_->magic = kMagic;
        its_->entries = kEntries;
        its_->rank = 2;
        its_->world = 4;
    }
    ~TrafficTest() override
    {
        MPIDI_ZC_traffic_close();
        munmap(its_, kBytes);
        close(fd_);
    }
    const char *open(int64_t with) { return MPIDI_ZC_traffic_open(fd_, with); }
    int fd_;
    MPIDI_ZC_traffic_t *its_;
};

TEST_F(TrafficTest, EachMessageIsWritten)
{
    ASSERT_EQ(open(clocks()), nullptr);
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1024}, size_t{1025}, size_t{1} << 50})
        MPIDI_ZC_traffic_add(3, bytes);
    EXPECT_EQ(its_->sent, 5u);
    EXPECT_EQ(its_->ring[0].kib, 0u);
    EXPECT_EQ(its_->ring[1].kib, 1u);
    EXPECT_EQ(its_->ring[2].kib, 1u);
    EXPECT_EQ(its_->ring[3].kib, 2u);
    EXPECT_EQ(its_->ring[4].kib, UINT32_MAX);
    EXPECT_EQ(its_->ring[4].receiver, 3u);
}

TEST_F(TrafficTest, TheNewestTakeThePlaceOfTheOldest)
{
    ASSERT_EQ(open(clocks()), nullptr);
    for (int i = 0; i < 11; i++)
        MPIDI_ZC_traffic_add(i, 0);
    EXPECT_EQ(its_->sent, 11u);
    EXPECT_EQ(its_->ring[2].receiver, 10u);
    EXPECT_EQ(its_->ring[3].receiver, 3u);
}

// A rank that CRIU has restored has another CLOCK_MONOTONIC than its holder.
TEST_F(TrafficTest, TimesAreOfTheHoldersClock)
{
    for (const int64_t ahead : {INT64_C(0), kHour, -kHour}) {
        ASSERT_EQ(open(clocks() - ahead), nullptr);
        const int64_t before = ns_of(CLOCK_MONOTONIC);
        MPIDI_ZC_traffic_add(0, 0);
        const int64_t told = static_cast<int64_t>(its_->ring[(its_->sent - 1) % kEntries].time_ns);
        EXPECT_NEAR(static_cast<double>(told), static_cast<double>(before + ahead), 1e9) << ahead;
    }
}

TEST_F(TrafficTest, WhatIsNotForItIsNotTaken)
{
    const MPIDI_ZC_traffic_t right = *its_;
    const auto is_refused = [this] { return open(clocks()) != nullptr && !MPIDI_ZC_traffic; };
    its_->magic++;
    EXPECT_TRUE(is_refused());
    for (const uint32_t entries : {0u, kEntries - 1, 2 * kEntries, 0x80000000u}) {
        *its_ = right;
        its_->entries = entries;
        EXPECT_TRUE(is_refused()) << entries;
    }
    *its_ = right;
    its_->rank++;
    EXPECT_TRUE(is_refused());
    *its_ = right;
    its_->world++;
    EXPECT_TRUE(is_refused());
    *its_ = right;
    EXPECT_NE(MPIDI_ZC_traffic_open(-1, 0), nullptr);
    MPIDI_global = {2};
    EXPECT_STREQ(open(clocks()), "it has several VCIs");
    MPIDI_global = {1};
    ASSERT_EQ(ftruncate(fd_, 1), 0);
    EXPECT_TRUE(is_refused());
    ASSERT_EQ(ftruncate(fd_, kBytes), 0);
}

TEST_F(TrafficTest, ClosedItHasNothing)
{
    ASSERT_EQ(open(clocks()), nullptr);
    MPIDI_ZC_traffic_close();
    EXPECT_EQ(MPIDI_ZC_traffic, nullptr);
    MPIDI_ZC_traffic_close();
    ASSERT_EQ(open(clocks()), nullptr);
    MPIDI_ZC_traffic_add(0, 0);
    EXPECT_EQ(its_->sent, 1u);
}

} // namespace

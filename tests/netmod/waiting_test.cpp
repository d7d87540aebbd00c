/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <thread>
#include <vector>

extern "C" {
#include "mpidu_waiting.h"
MPIDU_waiting_t MPIDU_waiting;
}

namespace {

TEST(Waiting, ShortWaitIsNotCounted)
{
    unsigned rounds = 0;
    for (int i = 0; i + 1 < MPIDU_WAITING_QUIET; ++i)
        MPIDU_waiting_in_vain(&rounds);
    EXPECT_EQ(MPIDU_waiting.threads, 0);
    MPIDU_waiting_over(rounds);
    EXPECT_EQ(MPIDU_waiting.threads, 0);
}

TEST(Waiting, LongWaitCountsOnceUntilItIsOver)
{
    unsigned rounds = 0;
    for (int i = 0; i < 10 * MPIDU_WAITING_QUIET; ++i)
        MPIDU_waiting_in_vain(&rounds);
    EXPECT_EQ(MPIDU_waiting.threads, 1);
    MPIDU_waiting_over(rounds);
    EXPECT_EQ(MPIDU_waiting.threads, 0);
}

TEST(Waiting, ManyThreadsLeaveNothingBehind)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([t] {
            for (int wait = 0; wait < 1000; ++wait) {
                unsigned rounds = 0;
                for (int i = 0; i < (wait + t) % (2 * MPIDU_WAITING_QUIET); ++i)
                    MPIDU_waiting_in_vain(&rounds);
                MPIDU_waiting_offer();
                MPIDU_waiting_over(rounds);
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(MPIDU_waiting.threads, 0);
}

} // namespace

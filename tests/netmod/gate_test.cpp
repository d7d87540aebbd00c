/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

extern "C" {
#include "mpidu_device_gate.h"
MPIDU_device_gate_t MPIDU_device_gate;
}

namespace {

using namespace std::chrono_literals;

/* The state that the application's calls and the landing thread share. Not
 * atomic: the gate alone must keep them apart, and ThreadSanitizer watches. */
struct library {
    long words[8] = {};
    void touch()
    {
        for (long &word : words)
            ++word;
    }
    [[nodiscard]] bool torn() const
    {
        for (long word : words)
            if (word != words[0])
                return true;
        return false;
    }
};

/* Parameter: may calls overlap, i.e. do both sides make their own barriers? */
class GateTest : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override
    {
        MPIDU_device_gate = {};
        MPIDU_device_gate_enable(GetParam());
        if (!GetParam() && !MPIDU_device_gate.one_sided)
            GTEST_SKIP() << "membarrier(2) is not available";
#ifdef __SANITIZE_THREAD__
        if (!GetParam())
            GTEST_SKIP() << "ThreadSanitizer does not know membarrier(2)";
#endif
        EXPECT_TRUE(MPIDU_device_gate_app_inside());
        MPIDU_DEVICE_GATE_EXIT();
    }
    void TearDown() override
    {
        MPIDU_device_gate_disable();
    }

    /* The landing thread: goes in and out as long as @run says so. */
    void device(std::atomic<bool> &run)
    {
        while (run) {
            if (!MPIDU_device_gate_try()) {
                std::this_thread::yield();
                continue;
            }
            for (int burst = 0; burst < 100 && !MPIDU_device_gate_app_inside(); burst++)
                shared_.touch();
            torn_ = torn_ || shared_.torn();
            MPIDU_device_gate_leave();
        }
    }

    library shared_;
    bool torn_ = false;
};

TEST_P(GateTest, DeviceEntersWhenNobodyIsInside)
{
    EXPECT_TRUE(MPIDU_device_gate_try());
    MPIDU_device_gate_leave();
    EXPECT_TRUE(MPIDU_device_gate_try());
    MPIDU_device_gate_leave();
}

TEST_P(GateTest, DeviceStaysOutWhileACallIsInside)
{
    MPIDU_device_gate_enter();
    EXPECT_TRUE(MPIDU_device_gate_app_inside());
    EXPECT_FALSE(MPIDU_device_gate_try());
    EXPECT_FALSE(MPIDU_device_gate_try());
    MPIDU_device_gate_exit();
    EXPECT_FALSE(MPIDU_device_gate_app_inside());
    EXPECT_TRUE(MPIDU_device_gate_try());
    MPIDU_device_gate_leave();
}

TEST_P(GateTest, CallsNestAndTheOutermostOneOpens)
{
    MPIDU_device_gate_enter();
    MPIDU_device_gate_enter();
    MPIDU_device_gate_exit();
    EXPECT_FALSE(MPIDU_device_gate_try());
    MPIDU_device_gate_exit();
    EXPECT_TRUE(MPIDU_device_gate_try());
    MPIDU_device_gate_leave();
}

TEST_P(GateTest, EveryEntryOfTheApplicationIsCounted)
{
    for (int i = 0; i < 5; i++) {
        MPIDU_device_gate_enter();
        MPIDU_device_gate_exit();
    }
    EXPECT_EQ(MPIDU_device_gate.entries, 5u);
    ASSERT_TRUE(MPIDU_device_gate_try());
    MPIDU_device_gate_leave();
    EXPECT_EQ(MPIDU_device_gate.entries, 5u);
}

std::atomic<int> left;

TEST_P(GateTest, WhoLeavesIsTakenNoteOfOnceAsked)
{
    left = 0;
    MPIDU_device_gate_enter();
    MPIDU_device_gate_exit();
    EXPECT_EQ(left, 0);
    MPIDU_device_gate_enter();
    MPIDU_device_gate_set_on_exit([] { left += MPIDU_device_gate_app_inside() ? 100 : 1; });
    EXPECT_EQ(left, 0);
    MPIDU_device_gate_exit();
    EXPECT_EQ(left, 1); /* called outside */
    MPIDU_device_gate_enter();
    MPIDU_device_gate_set_on_exit(nullptr);
    MPIDU_device_gate_exit();
    EXPECT_EQ(left, 1);
}

TEST_P(GateTest, CallsOfTheDevicesThreadPass)
{
    ASSERT_TRUE(MPIDU_device_gate_try());
    MPIDU_DEVICE_GATE_ENTER();
    EXPECT_EQ(MPIDU_device_gate.app_inside, 0);
    MPIDU_DEVICE_GATE_EXIT();
    EXPECT_EQ(MPIDU_device_gate.app_inside, 0);
    MPIDU_device_gate_leave();
    EXPECT_EQ(MPIDU_device_gate.entries, 0u);
}

std::vector<std::pair<const void *, int>> done; /* duty, and calls inside */

void do_duty(MPIDU_device_gate_duty_t *duty)
{
    done.emplace_back(duty, MPIDU_device_gate.app_inside);
    MPIDU_DEVICE_GATE_ENTER();
    MPIDU_DEVICE_GATE_EXIT();
}

TEST_P(GateTest, DutiesAreDoneOnceByTheNextCallAndInOrder)
{
    MPIDU_device_gate_duty_t duties[3];
    done.clear();
    ASSERT_TRUE(MPIDU_device_gate_try());
    for (auto &duty : duties)
        MPIDU_device_gate_put_off(&duty, do_duty);
    MPIDU_device_gate_leave();
    EXPECT_TRUE(done.empty());
    for (int i = 0; i < 2; i++) {
        MPIDU_device_gate_enter();
        ASSERT_EQ(done.size(), 3u);
        MPIDU_device_gate_exit();
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(done[i].first, &duties[i]);
        EXPECT_EQ(done[i].second, 1); /* called inside */
    }
}

TEST_P(GateTest, WhoStepsOutAndNeverComesBackLeavesItOpen)
{
    if (GetParam())
        GTEST_SKIP() << "where calls overlap no thread steps out";
    EXPECT_FALSE(MPIDU_device_gate_step_out(0)); /* no thread is inside */
    MPIDU_device_gate_enter();
    const int inside = MPIDU_device_gate_step_out(0);
    EXPECT_TRUE(inside);
    ASSERT_TRUE(MPIDU_device_gate_try());
    EXPECT_FALSE(MPIDU_device_gate_step_out(0)); /* the device's thread */
    MPIDU_device_gate_leave();
    MPIDU_device_gate_step_in(inside);
    EXPECT_FALSE(MPIDU_device_gate_try());
    MPIDU_device_gate_exit();

    MPIDU_device_gate_enter();
    (void)MPIDU_device_gate_step_out(0); /* and longjmp() */
    MPIDU_device_gate_enter();
    EXPECT_FALSE(MPIDU_device_gate_try());
    MPIDU_device_gate_exit();
    EXPECT_TRUE(MPIDU_device_gate_try());
    MPIDU_device_gate_leave();
}

TEST_P(GateTest, WhereCallsOverlapNobodyStepsOut)
{
    MPIDU_device_gate_enter();
    EXPECT_FALSE(MPIDU_device_gate_step_out(1));
    EXPECT_FALSE(MPIDU_device_gate_try());
    MPIDU_device_gate_exit();
}

TEST_P(GateTest, DisabledGateIsNotTouched)
{
    MPIDU_device_gate_disable();
    MPIDU_DEVICE_GATE_ENTER();
    EXPECT_EQ(MPIDU_device_gate.app_inside, 0);
    MPIDU_DEVICE_GATE_EXIT();
    EXPECT_EQ(MPIDU_device_gate.app_inside, 0);
}

TEST_P(GateTest, ACallWaitsUntilTheDeviceHasLeft)
{
    ASSERT_TRUE(MPIDU_device_gate_try());
    std::atomic<bool> entered = false;
    std::thread call([&] {
        MPIDU_device_gate_enter();
        entered = true;
        MPIDU_device_gate_exit();
    });
    while (!MPIDU_device_gate_app_inside())
        std::this_thread::yield();
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(entered);
    MPIDU_device_gate_leave();
    call.join();
    EXPECT_TRUE(entered);
}

TEST_P(GateTest, OneCallerAndTheDeviceNeverOverlap)
{
    std::atomic<bool> run = true;
    std::thread landing([&] { device(run); });
    bool torn = false;
    for (int i = 0; i < 20'000; i++) {
        MPIDU_device_gate_enter();
        shared_.touch();
        torn = torn || shared_.torn();
        MPIDU_device_gate_exit();
        if (i % 64 == 0)
            std::this_thread::yield();
    }
    run = false;
    landing.join();
    EXPECT_FALSE(torn);
    EXPECT_FALSE(torn_);
    EXPECT_FALSE(shared_.torn());
}

TEST_P(GateTest, SeveralCallersAndTheDeviceNeverOverlap)
{
    if (!GetParam())
        GTEST_SKIP() << "calls of several threads overlap";
    std::atomic<bool> run = true;
    std::mutex mpich; /* MPICH's own lock, between calls */
    std::thread landing([&] { device(run); });
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; t++) {
        callers.emplace_back([&] {
            for (int i = 0; i < 10'000; i++) {
                MPIDU_device_gate_enter();
                {
                    std::lock_guard lock(mpich);
                    shared_.touch();
                }
                MPIDU_device_gate_exit();
            }
        });
    }
    for (std::thread &caller : callers)
        caller.join();
    run = false;
    landing.join();
    EXPECT_FALSE(shared_.torn());
    EXPECT_GE(shared_.words[0], 30'000);
}

/* Both go for the gate at the same moment, again and again: without a barrier on
 * either side each can miss that the other has written its word. */
TEST_P(GateTest, NeitherMissesTheOther)
{
    /* As many as a machine with nothing else to do manages in a second or two; a busy
     * one stops earlier, for it needs milliseconds for each. */
    constexpr int kRounds = 100'000;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::atomic<int> start = 0, device_ready = 0, last = kRounds;
    std::atomic<bool> device_in = false, app_in = false;
    std::atomic<int> overlaps = 0;
    auto await = [](std::atomic<int> &word, int round) {
        for (int spins = 0; word.load() < round; spins++)
            if (spins > 10'000)
                std::this_thread::yield();
    };

    std::thread landing([&] {
        for (int round = 1; round <= last; round++) {
            device_ready = round;
            await(start, round);
            if (MPIDU_device_gate_try()) {
                device_in.store(true, std::memory_order_relaxed);
                for (int i = 0; i < 20; i++)
                    overlaps += app_in.load(std::memory_order_relaxed);
                device_in.store(false, std::memory_order_relaxed);
                MPIDU_device_gate_leave();
            }
        }
    });
    for (int round = 1; round <= last; round++) {
        await(device_ready, round);
        if (std::chrono::steady_clock::now() > deadline)
            last = round;
        start.store(round, std::memory_order_release);
        /* The entry to the membarrier takes longer than the way in here; meet it
         * at different points. */
        for (int i = 0; i < round % 64; i++)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        MPIDU_device_gate_enter();
        app_in.store(true, std::memory_order_relaxed);
        for (int i = 0; i < 20; i++)
            overlaps += device_in.load(std::memory_order_relaxed);
        app_in.store(false, std::memory_order_relaxed);
        MPIDU_device_gate_exit();
    }
    landing.join();
    EXPECT_EQ(overlaps, 0);
}

INSTANTIATE_TEST_SUITE_P(Barriers, GateTest, testing::Bool(), [](const auto &barriers) {
    return barriers.param ? "OnBothSides" : "OnTheDevicesSide";
});

} // namespace

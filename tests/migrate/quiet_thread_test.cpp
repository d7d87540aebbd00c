/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <set>

#include "quiet_thread.h"
#include "watchdog.h"

namespace zc::migrate {
namespace {

sigset_t blocked_here()
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return now;
}

/* SIGKILL and SIGSTOP cannot be blocked, and those between these and SIGRTMIN are the C library's.
 * Those of a thread's own faults are for the program's handler. */
void expect_all(const sigset_t &blocked)
{
    const std::set<int> own{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    for (int i = 1; i <= SIGRTMAX; i++)
        if (i != SIGKILL && i != SIGSTOP && (i < NSIG / 2 || i >= SIGRTMIN))
            EXPECT_EQ(sigismember(&blocked, i), own.contains(i) ? 0 : 1) << "signal " << i;
}

class QuietThreadTest : public testing::Test {
  protected:
    void SetUp() override
    {
        sigset_t usr2;
        sigemptyset(&usr2);
        sigaddset(&usr2, SIGUSR2);
        pthread_sigmask(SIG_SETMASK, &usr2, &before_);
    }
    void TearDown() override
    {
        const sigset_t now = blocked_here();
        EXPECT_EQ(sigismember(&now, SIGUSR1), 0) << "what the caller blocks has changed";
        EXPECT_EQ(sigismember(&now, SIGUSR2), 1) << "what the caller blocks has changed";
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    sigset_t before_{};
};

TEST_F(QuietThreadTest, TakesNoSignals)
{
    sigset_t there{};
    quiet_thread([&there] { there = blocked_here(); }).join();
    expect_all(there);
}

TEST_F(QuietThreadTest, OfAWatchdogTakesNone)
{
    std::promise<sigset_t> there;
    const watchdog one(0, [&there] { there.set_value(blocked_here()); });
    expect_all(there.get_future().get());
}

} // namespace
} // namespace zc::migrate

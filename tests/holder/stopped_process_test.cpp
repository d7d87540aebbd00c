/* SPDX-License-Identifier: BSD-3-Clause */
#include "stopped_process.h"

#include <fstream>
#include <sched.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "error.h"
#include "forked.h"

namespace zc::holder {
namespace {

constexpr std::size_t kThreads = 8;

using counters = std::array<std::atomic<std::uint64_t>, kThreads>;

counters &shared_counters()
{
    return *new (pages_of_memory(1, MAP_SHARED)) counters;
}

std::vector<std::uint64_t> values(const counters &all)
{
    return {all.begin(), all.end()};
}

/** Each thread counts, and looks at a system call in between. */
void count_for_ever(counters &all)
{
    std::vector<std::thread> threads;
    for (std::atomic<std::uint64_t> &each : all) {
        threads.emplace_back([&each] {
            for (;;) {
                each++;
                usleep(10);
            }
        });
    }
    threads[0].join();
}

void expect_all_count(const counters &all)
{
    const std::vector<std::uint64_t> before = values(all);
    for (std::size_t i = 0; i < kThreads; i++) {
        while (all[i] == before[i])
            usleep(100);
    }
}

std::string status_of(pid_t pid)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StoppedProcessTest, NoThreadRunsMeanwhileAndAllDoAfterwards)
{
    counters &all = shared_counters();
    forked other([] {}, [&] { count_for_ever(all); });
    for (int times = 0; times < 20; times++) {
        expect_all_count(all);
        bool called = false;
        while_stopped(
            other.pid(),
            [&] {
                called = true;
                const std::vector<std::uint64_t> before = values(all);
                usleep(5000);
                EXPECT_EQ(values(all), before);
            },
            kPatience);
        EXPECT_TRUE(called);
    }
    expect_all_count(all);
    EXPECT_NE(status_of(other.pid()).find("TracerPid:\t0\n"), std::string::npos);
}

/** Some are on their way to a thread when it stops. */
TEST(StoppedProcessTest, NoSignalIsLost)
{
    constexpr int kRounds = 1000, kUnderWay = 16;
    static std::atomic<int> *const came = new (pages_of_memory(1, MAP_SHARED)) std::atomic<int>;
    *came = 0; /* where the test runs again */
    counters &all = shared_counters();
    forked other(
        [] {
            struct sigaction action {};
            action.sa_handler = [](int) { ++*came; };
            sigaction(SIGRTMIN, &action, nullptr);
        },
        [&] { count_for_ever(all); });
    expect_all_count(all);
    std::atomic<bool> over = false;
    int sent = 0;
    std::thread sending([&] {
        while (!over) {
            if (sent - *came < kUnderWay)
                sent += sigqueue(other.pid(), SIGRTMIN, {}) == 0;
            else
                usleep(50);
        }
    });
    for (int round = 0; round < kRounds; round++) {
        try {
            while_stopped(other.pid(), [] {});
        } catch (const error &) {
            continue; /* not in time: it is busy with them */
        }
    }
    over = true;
    sending.join();
    for (int tries = 0; *came != sent && tries < 10000; tries++)
        usleep(1000);
    EXPECT_EQ(*came, sent);
}

/** A thread that cannot be looked at is none that has ended. */
TEST(StoppedProcessTest, NoThreadRunsWhereDescriptorsAreShort)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer needs descriptors to look at an exception";
#endif
    counters &all = shared_counters();
    forked other([] {}, [&] { count_for_ever(all); });
    expect_all_count(all);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const int lowest = dup(STDIN_FILENO);
    close(lowest);
    for (int spare = 0; spare < 10; spare++) {
        const rlimit few{static_cast<rlim_t>(lowest + spare), before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &few);
        std::vector<std::uint64_t> then, now;
        try {
            while_stopped(other.pid(), [&] {
                then = values(all);
                usleep(2000);
                now = values(all);
            });
        } catch (const error &) {
            then = now;
        }
        setrlimit(RLIMIT_NOFILE, &before);
        EXPECT_EQ(then, now) << spare << " to spare";
    }
    expect_all_count(all);
}

TEST(StoppedProcessTest, ThreadsThatComeMeanwhileAreStopped)
{
    counters &all = shared_counters();
    forked other([] {}, [&] { std::thread([&] { all[0]++; }).join(); });
    for (int times = 0; times < 50; times++) {
        while_stopped(
            other.pid(),
            [&] {
                const std::uint64_t before = all[0];
                usleep(1000);
                EXPECT_EQ(all[0], before);
            },
            kPatience);
    }
}

std::atomic<std::uint64_t> *handled; /* by the process */

/** None is lost, and none comes twice. */
TEST(StoppedProcessTest, SignalsArriveOnce)
{
    handled = &shared_counters()[0];
    forked other([] { signal(SIGUSR1, [](int) { ++*handled; }); });
    std::uint64_t sent = 0;
    const auto send = [&] {
        kill(other.pid(), SIGUSR1);
        sent++;
    };
    for (int times = 0; times < 200; times++) {
        send();
        while_stopped(
            other.pid(), [] {}, kPatience);
        while (*handled != sent)
            usleep(100);
        while_stopped(other.pid(), send, kPatience);
        while (*handled != sent)
            usleep(100);
    }
    usleep(10000);
    EXPECT_EQ(*handled, sent);
}

TEST(StoppedProcessTest, AStoppedOneStaysStopped)
{
    counters &all = shared_counters();
    forked other([] {}, [&] { count_for_ever(all); });
    kill(other.pid(), SIGSTOP);
    waitpid(other.pid(), nullptr, WUNTRACED);
    while_stopped(
        other.pid(), [] {}, kPatience);
    const std::vector<std::uint64_t> before = values(all);
    usleep(20000);
    EXPECT_EQ(values(all), before);
    kill(other.pid(), SIGCONT);
    expect_all_count(all);
}

/** As one that waits in the kernel for what nothing interrupts: here for the end of its child. */
TEST(StoppedProcessTest, IsGivenUpIfAThreadDoesNotStop)
{
    stepped &steps = stepped::make();
    forked other([] {},
                 [&] {
                     if (vfork() == 0) {
                         steps.done = 1;
                         while (steps.asked != 1)
                             usleep(100);
                         _exit(0);
                     }
                     steps.done = 2;
                 });
    while (steps.done != 1)
        usleep(100);
    bool called = false;
    try {
        while_stopped(
            other.pid(), [&] { called = true; }, std::chrono::milliseconds(20));
        ADD_FAILURE() << "it has stopped";
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), ETIMEDOUT) << problem.what();
    }
    EXPECT_FALSE(called);
    EXPECT_NE(status_of(other.pid()).find("TracerPid:\t0\n"), std::string::npos);
    steps.ask(1); /* the child ends, and the parent goes on as if nothing had been */
    while (steps.done != 2)
        usleep(100);
}

/** ptrace(2) waits for one that executes a program, which waits for all other threads, which may be
 * traced: that may not be for ever, and the program is executed all the same. */
TEST(StoppedProcessTest, MayExecuteAnotherProgramMeanwhile)
{
    for (int times = 0; times < 60; times++) {
        stepped &steps = stepped::make();
        forked other([] {},
                     [&] {
                         for (int i = 0; i < 60; i++)
                             std::thread([] { pause(); }).detach();
                         std::thread([&] {
                             steps.done = 1;
                             while (steps.asked != 1)
                                 sched_yield();
                             execl("/bin/true", "true", nullptr);
                         }).join();
                     });
        while (steps.done != 1)
            usleep(100);
        steps.asked = 1;
        for (int i = 0; i < 3; i++) {
            try {
                while_stopped(other.pid(), [] {});
            } catch (const error &) {
                /* It was too late, or has ended. */
            }
        }
        int status = -1;
        EXPECT_EQ(waitpid(other.pid(), &status, 0), other.pid());
        EXPECT_EQ(status, 0) << times;
    }
}

TEST(StoppedProcessTest, ItsEndStaysItsParents)
{
    forked other([] {});
    while_stopped(
        other.pid(), [&] { kill(other.pid(), SIGKILL); }, kPatience);
    int status = 0;
    EXPECT_EQ(waitpid(other.pid(), &status, 0), other.pid());
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    EXPECT_ANY_THROW(while_stopped(
        other.pid(), [] {}, kPatience));
}

TEST(StoppedProcessTest, WhatIsThrownIsTheCallers)
{
    counters &all = shared_counters();
    forked other([] {}, [&] { count_for_ever(all); });
    try {
        while_stopped(
            other.pid(), [] { throw error(EBUSY, "it is busy"); }, kPatience);
        ADD_FAILURE() << "nothing is thrown";
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EBUSY) << problem.what();
    }
    expect_all_count(all);
}

} // namespace
} // namespace zc::holder

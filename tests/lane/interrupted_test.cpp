/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the application's blocking calls see while the kernel lands in them. The kernel
 * interrupts a call that sleeps to have the data copied, and then goes on with it, but for calls
 * that signal(7) lists as never restarted: those return EINTR, although no signal was there.
 * zcl(7) has the list: a change of one is a change of both.
 */
#include "support.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <thread>

using namespace zcl::test;

namespace {

constexpr long kNap = 150'000'000; /* ns: some landings long */

timespec nap()
{
    return {0, kNap};
}

int status(long result)
{
    return result < 0 ? errno : 0;
}

struct call {
    const char *name;
    int undisturbed; /* errno, or 0 */
    bool restarts;   /* the kernel goes on with it after it has landed */
    std::function<int(int quiet_fd)> run;
};

int select_once(int fd)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    timeval t{0, kNap / 1000};
    return status(select(fd + 1, &set, nullptr, nullptr, &t));
}

int read_a_pipe(int)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    std::thread writer([&] {
        const timespec t = nap();
        nanosleep(&t, nullptr);
        [[maybe_unused]] ssize_t n = write(ends[1], "x", 1);
    });
    char c;
    const int found = status(read(ends[0], &c, 1));
    writer.join();
    close(ends[0]);
    close(ends[1]);
    return found;
}

int receive_until_timeout(int fd)
{
    const timeval t{0, kNap / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    char c;
    return status(recv(fd, &c, 1, 0));
}

int wait_by_epoll(int fd)
{
    const int e = epoll_create1(0);
    epoll_event ev{EPOLLIN, {}};
    epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev);
    const int found = status(epoll_wait(e, &ev, 1, kNap / 1'000'000));
    close(e);
    return found;
}

int wait_for_a_signal(int)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    const timespec t = nap();
    return status(sigtimedwait(&set, nullptr, &t));
}

const std::vector<call> &calls()
{
    static const std::vector<call> all = {
        {"nanosleep", 0, true,
         [](int) {
             const timespec t = nap();
             return status(nanosleep(&t, nullptr));
         }},
        {"clock_nanosleep", 0, true,
         [](int) {
             const timespec t = nap();
             return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
         }},
        {"poll", 0, true,
         [](int fd) {
             pollfd p{fd, POLLIN, 0};
             return status(poll(&p, 1, kNap / 1'000'000));
         }},
        {"ppoll", 0, true,
         [](int fd) {
             pollfd p{fd, POLLIN, 0};
             const timespec t = nap();
             return status(ppoll(&p, 1, &t, nullptr));
         }},
        {"select", 0, true, select_once},
        {"futex", ETIMEDOUT, true,
         [](int) {
             int word = 0;
             const timespec t = nap();
             return status(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, nullptr, 0));
         }},
        {"read of a pipe", 0, true, read_a_pipe},
        {"recv with SO_RCVTIMEO", EAGAIN, false, receive_until_timeout},
        {"epoll_wait", 0, false, wait_by_epoll},
        {"sigtimedwait", EAGAIN, false, wait_for_a_signal},
    };
    return all;
}

/* A peer that sends frames of 1 MiB every 2 ms until it is killed. */
void keep_sending(letter &where)
{
    side there(ZCL_WAY_THREAD);
    zcl_lane_t *lane = there.connect(where.get<sockaddr_in>());
    const std::vector<char> data = pattern(1 << 20, 1);
    for (std::uint64_t id = 0;; id++) {
        const zcl_frame_t f{id, data.size(), ZCL_CLASS_NONE, 0};
        if (zcl_send(lane, &f, data.data(), nullptr) != 0)
            return;
        there.next(ZCL_EVENT_SENT);
        usleep(2000);
    }
}

class InterruptedTest : public testing::TestWithParam<bool> {};

} // namespace

INSTANTIATE_TEST_SUITE_P(Handlers, InterruptedTest, testing::Bool(), [](const auto &kind) {
    return std::string(kind.param ? "restarting" : "interrupting");
});

TEST_P(InterruptedTest, CallsGoOnWhereTheKernelLetsThem)
{
    /* Handlers that never run: whether they would restart calls makes no difference. */
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = GetParam() ? SA_RESTART : 0;
    struct sigaction before {};
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);

    letter where;
    child peer([&] {
        keep_sending(where);
        return 0;
    });
    side here(ZCL_WAY_URING, [](zcl_params_t &p) {
        p.landing_bytes = std::size_t{512} << 20, p.budget_bytes = std::size_t{1} << 30;
    });
    if (here.error)
        GTEST_SKIP() << "io_uring: " << std::strerror(-here.error);
    where.put(here.address());
    ASSERT_NE(here.next(ZCL_EVENT_ACCEPTED).lane, nullptr);

    int quiet[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, quiet), 0);
    auto flush = [&] {
        for (zcl_event_t e; (e = here.next(ZCL_EVENT_ARRIVED, 1)).type != ZCL_EVENT_NONE;)
            EXPECT_EQ(zcl_release(e.lane, e.data), 0);
        for (zcl_event_t e = here.next(ZCL_EVENT_ARRIVED); e.type != ZCL_EVENT_NONE;
             e.type = ZCL_EVENT_NONE)
            EXPECT_EQ(zcl_release(e.lane, e.data), 0);
    };
    for (const call &c : calls()) {
        flush();
        const std::uint64_t landed = here.stats().bytes_landed;
        const auto begin = std::chrono::steady_clock::now();
        const int found = c.run(quiet[0]);
        const std::int64_t took =
            std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
        flush();
        EXPECT_GT(here.stats().bytes_landed, landed) << c.name << ": nothing disturbed it";
        if (c.restarts) {
            EXPECT_EQ(found, c.undisturbed) << c.name << ": " << std::strerror(found);
            EXPECT_GE(took, kNap * 9 / 10) << c.name;
        } else {
            EXPECT_EQ(found, EINTR) << c.name << ": " << std::strerror(found);
        }
    }
    close(quiet[0]);
    close(quiet[1]);
    sigaction(SIGUSR1, &before, nullptr);
}

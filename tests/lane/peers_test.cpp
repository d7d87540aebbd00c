/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers, peers that end at each point, children, limits. */
#include "support.h"

#include <cerrno>
#include <csignal>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>

using namespace zcl::test;

namespace {

/* A connection that is no lane. */
int plain_connection(const sockaddr_in &to)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to), 0);
    return fd;
}

/* True: the other side has closed it, and said nothing: its hello has the secret. Serves @s
 * meanwhile. */
bool closed(int fd, side &s)
{
    for (int i = 0; i < 3000; i++) {
        s.next(ZCL_EVENT_ACCEPTED, 10'000'000);
        char c;
        const ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);
        EXPECT_LE(n, 0) << "a stranger was answered";
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return true;
    }
    return false;
}

} // namespace

using StrangersTest = LaneTest;
ZCL_EACH_WAY(StrangersTest);

TEST_P(StrangersTest, WithAnotherSecretAreClosedAndCounted)
{
    side here(GetParam());
    const unsigned char wrong[ZCL_SECRET_BYTES] = {3, 1, 4, 1, 5, 8};
    side stranger(GetParam(), [&](zcl_params_t &p) { p.secret = wrong; });
    zcl_lane_t *lane = stranger.connect(here.address());
    std::thread serving([&] { here.next(ZCL_EVENT_ACCEPTED, 1'000'000'000); });
    const zcl_event_t e = stranger.next(ZCL_EVENT_BROKEN);
    serving.join();
    EXPECT_EQ(e.lane, lane);
    EXPECT_NE(e.status, 0);
    EXPECT_EQ(here.stats().strangers, 1u);
    EXPECT_EQ(here.stats().lanes_now, 0u);
    for (const zcl_event_t &other : here.kept)
        ADD_FAILURE() << "the application was told: " << other.type;
}

TEST_P(StrangersTest, TheSecretOfTheListenerOpens)
{
    const unsigned char other[ZCL_SECRET_BYTES] = {2, 7, 1, 8, 2, 8};
    side here(GetParam(), [&](zcl_params_t &p) { p.secret = other; }), there(GetParam());
    const sockaddr_in to = here.address();
    zcl_lane_t *lane = nullptr;
    ASSERT_EQ(zcl_connect(there.context, reinterpret_cast<const sockaddr *>(&to), sizeof to, other,
                          &lane),
              0);
    std::thread opening([&] { EXPECT_EQ(there.next(ZCL_EVENT_OPENED).lane, lane); });
    EXPECT_NE(here.next(ZCL_EVENT_ACCEPTED).lane, nullptr);
    opening.join();
    EXPECT_EQ(here.stats().strangers, 0u);
}

TEST_P(StrangersTest, WhoSayNothingAreClosedInTime)
{
    side here(GetParam(), [](zcl_params_t &p) { p.hello_timeout_ms = 50; });
    const int silent = plain_connection(here.address()), half = plain_connection(here.address());
    ASSERT_EQ(send(half, "zclane1", 7, 0), 7);
    EXPECT_TRUE(closed(silent, here));
    EXPECT_TRUE(closed(half, here));
    EXPECT_EQ(here.stats().strangers, 2u);
    close(silent);
    close(half);
}

TEST_P(StrangersTest, WhoTalkSomethingElseAreClosed)
{
    side here(GetParam());
    const int fd = plain_connection(here.address());
    const std::string text = "GET / HTTP/1.1\r\nHost: another-server-than-this\r\n\r\n";
    ASSERT_EQ(send(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(closed(fd, here));
    EXPECT_EQ(here.stats().strangers, 1u);
    close(fd);
}

TEST_P(StrangersTest, ByTheHundredDoNotKeepThePeerOut)
{
    side here(GetParam()), peer(GetParam());
    std::vector<int> many;
    for (int i = 0; i < 200; i++)
        many.push_back(plain_connection(here.address()));
    zcl_lane_t *lane = peer.connect(here.address());
    std::thread serving([&] { EXPECT_EQ(here.next(ZCL_EVENT_ACCEPTED).type, ZCL_EVENT_ACCEPTED); });
    EXPECT_EQ(peer.next(ZCL_EVENT_OPENED).lane, lane);
    serving.join();
    EXPECT_GE(here.stats().strangers, 100u);
    for (int fd : many)
        close(fd);
}

TEST_P(StrangersTest, MayGoWhileTheContextEnds)
{
    for (int round = 0; round < 100; round++) {
        std::vector<int> many;
        {
            side here(GetParam());
            for (int i = 0; i < 50; i++)
                many.push_back(plain_connection(here.address()));
            here.look(1'000'000);
            for (int fd : many)
                close(fd);
        }
    }
}

TEST_P(StrangersTest, NobodyThereBreaksTheLane)
{
    sockaddr_in gone;
    {
        side there(GetParam());
        gone = there.address();
    }
    side here(GetParam());
    zcl_lane_t *lane = nullptr;
    const int error =
        zcl_connect(here.context, reinterpret_cast<sockaddr *>(&gone), sizeof gone, nullptr, &lane);
    if (error == 0)
        EXPECT_EQ(here.next(ZCL_EVENT_BROKEN).status, -ECONNREFUSED);
    else
        EXPECT_EQ(error, -ECONNREFUSED);
}

/* A socket that accepts nothing; -1 if there is none. Its address goes to @at. */
static int silent_listener(int backlog, sockaddr_in &at)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto *where = reinterpret_cast<sockaddr *>(&at);
    socklen_t len = sizeof at;
    const bool listens =
        bind(fd, where, len) == 0 && listen(fd, backlog) == 0 && getsockname(fd, where, &len) == 0;
    return listens ? fd : -1;
}

TEST_P(StrangersTest, ASilentListenerBreaksTheLaneInTime)
{
    sockaddr_in at;
    const int fd = silent_listener(1, at);
    ASSERT_GE(fd, 0);
    side here(GetParam(), [](zcl_params_t &p) { p.hello_timeout_ms = 50; });
    zcl_lane_t *lane = here.connect(at);
    const zcl_event_t e = here.next(ZCL_EVENT_BROKEN);
    EXPECT_EQ(e.lane, lane);
    EXPECT_EQ(e.status, -ETIMEDOUT);
    close(fd);
}

/* The kernel drops the packets of those that connect to a listener whose queue is full. */
TEST(UnansweredTest, ConnectingIsGivenUp)
{
    sockaddr_in at;
    const int fd = silent_listener(0, at);
    ASSERT_GE(fd, 0);
    const int in_queue = plain_connection(at);

    const auto patient = [](zcl_params_t &p) { p.hello_timeout_ms = 600'000; };
    side by_default(ZCL_WAY_AUTO, patient), by_thread(ZCL_WAY_THREAD, patient);
    by_default.connect(at);
    by_thread.connect(at);
    EXPECT_EQ(by_default.next(ZCL_EVENT_BROKEN).status, -ETIMEDOUT);
    EXPECT_EQ(by_thread.next(ZCL_EVENT_BROKEN).status, -ETIMEDOUT);
    close(in_queue);
    close(fd);
}

/* Both have been away for longer than a connection may take, but not both at the same time. */
TEST(AbsentCallersTest, FindWhatCameInTime)
{
    side here(ZCL_WAY_CALLER, [](zcl_params_t &p) { p.hello_timeout_ms = 300; });
    side there(ZCL_WAY_CALLER, [](zcl_params_t &p) { p.hello_timeout_ms = 30'000; });
    zcl_lane_t *lane = there.connect(here.address());
    const auto away = std::chrono::milliseconds(600);
    there.look(0);
    std::this_thread::sleep_for(away);
    EXPECT_NE(here.next(ZCL_EVENT_ACCEPTED).lane, nullptr);
    EXPECT_EQ(there.next(ZCL_EVENT_OPENED).lane, lane);

    zcl_lane_t *back = here.connect(there.address());
    here.look(0);
    for (const auto end = std::chrono::steady_clock::now() + away;
         std::chrono::steady_clock::now() < end;)
        there.look(1'000'000);
    EXPECT_EQ(here.next(ZCL_EVENT_OPENED).lane, back);
}

class DyingPeersTest : public LaneTest {};

/** A peer that takes the lane, to be stopped when the other side has it, too: if it stopped itself
 * its thread might not have answered yet. It has no room for what comes over it, since the kernel
 * lands for a process even while that is being killed. */
int accept_one(zcl_way_t way, letter &where)
{
    side there(way, [](zcl_params_t &p) { p.landing_bytes = 1 << 20; });
    where.put(there.address());
    there.next(ZCL_EVENT_ACCEPTED);
    there.next(ZCL_EVENT_BROKEN);
    return 0;
}
ZCL_EACH_WAY(DyingPeersTest);

/* The child sends a frame, and ends when so much of it has gone (in the header, in the payload,
 * behind it). The receiver computes, or waits. */
TEST_P(DyingPeersTest, BreakTheLaneWhereverTheyStop)
{
    const std::vector<char> data = pattern(3000000, 1);
    for (const bool reset : {false, true})
        for (const std::size_t stop : {0u, 10u, 31u, 32u, 1000u, 2999999u + 32u, 3000032u}) {
            letter where;
            child peer([&] {
                const sockaddr_in to = where.get<sockaddr_in>();
                const int fd = plain_connection(to);
                /* By hand, as the library writes it: docs/man/zcl.7, FORMAT. */
                std::vector<char> bytes(64 + 32 + data.size());
                std::memcpy(&bytes[0], "zclane1", 7);
                bytes[8] = 1;
                std::memcpy(&bytes[24], kSecret, sizeof kSecret);
                const std::uint32_t magic = 0x7a636c66, none = ZCL_CLASS_NONE;
                const std::uint64_t id = 4, len = data.size();
                std::memcpy(&bytes[64], &magic, 4);
                std::memcpy(&bytes[68], &none, 4);
                std::memcpy(&bytes[72], &id, 8);
                std::memcpy(&bytes[80], &len, 8);
                std::memcpy(&bytes[96], data.data(), data.size());
                char greeting[64];
                for (std::size_t at = 0; at < 64 + stop;)
                    at += static_cast<std::size_t>(send(fd, &bytes[at], 64 + stop - at, 0));
                recv(fd, greeting, sizeof greeting, MSG_WAITALL);
                if (reset) {
                    const linger now{1, 0};
                    usleep(50000);
                    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
                }
                return 0;
            });
            side here(GetParam());
            where.put(here.address());
            ASSERT_EQ(here.next(ZCL_EVENT_ACCEPTED).type, ZCL_EVENT_ACCEPTED) << stop;
            if (stop % 2)
                peer.join();
            const zcl_event_t e = here.next(ZCL_EVENT_BROKEN);
            ASSERT_EQ(e.type, ZCL_EVENT_BROKEN) << stop;
            const bool between = stop == 0 || stop == data.size() + 32;
            EXPECT_TRUE(reset ? e.status != 0 : e.status == (between ? 0 : -ECONNRESET))
                << stop << ": " << e.status;
            if (stop == data.size() + 32 && !reset) {
                EXPECT_TRUE(same(here.next(ZCL_EVENT_ARRIVED), data));
            }
            EXPECT_EQ(zcl_close(e.lane), 0);
        }
}

TEST_P(DyingPeersTest, KilledInTheMiddleFailTheSend)
{
    const std::vector<char> data = pattern(60000000, 1);
    letter where;
    child peer([&] { return accept_one(GetParam(), where); });
    side here(GetParam());
    const auto to = where.get<sockaddr_in>();
    zcl_lane_t *lane = here.connect(to);
    ASSERT_EQ(here.next(ZCL_EVENT_OPENED).lane, lane);
    peer.kill(SIGSTOP);
    const zcl_frame_t f{1, data.size(), 0, 0};
    ASSERT_EQ(zcl_send(lane, &f, data.data(), nullptr), 0);
    EXPECT_EQ(here.next(ZCL_EVENT_SENT, 200'000'000).type, ZCL_EVENT_NONE) << "the socket is full";
    peer.kill(SIGKILL);
    peer.join();
    const zcl_event_t e = here.next(ZCL_EVENT_SENT);
    EXPECT_EQ(e.type, ZCL_EVENT_SENT);
    EXPECT_LT(e.status, 0);
    EXPECT_EQ(here.next(ZCL_EVENT_BROKEN).lane, lane);
    EXPECT_EQ(zcl_send(lane, &f, data.data(), nullptr), -EPIPE);
}

TEST_P(DyingPeersTest, ClosingAFullLaneReturnsAtOnce)
{
    const std::vector<char> data = pattern(60000000, 1);
    letter where;
    child peer([&] { return accept_one(GetParam(), where); });
    side here(GetParam());
    zcl_lane_t *lane = here.connect(where.get<sockaddr_in>());
    ASSERT_EQ(here.next(ZCL_EVENT_OPENED).lane, lane);
    peer.kill(SIGSTOP);
    const zcl_frame_t f{1, data.size(), 0, 0};
    ASSERT_EQ(zcl_send(lane, &f, data.data(), nullptr), 0);
    ASSERT_EQ(zcl_send(lane, &f, data.data(), nullptr), 0);
    EXPECT_EQ(zcl_close(lane), 0);
    EXPECT_EQ(here.next(ZCL_EVENT_SENT, 1'000'000).type, ZCL_EVENT_NONE);
}

class ComputingTest : public LaneTest {};
ZCL_EACH_BACKGROUND_WAY(ComputingTest);

/* The receiver makes no call from its expecting or accepting on; the frame is far longer than
 * sockets hold. That it is sent shows that the kernel has received it. */
TEST_P(ComputingTest, ReceiversLandWithoutACall)
{
    const std::vector<char> data = pattern(40000000, 1);
    for (const bool expected : {false, true}) {
        letter where, ready, stop;
        child peer([&] {
            side there(GetParam());
            where.put(there.address());
            zcl_lane_t *lane = there.next(ZCL_EVENT_ACCEPTED).lane;
            std::vector<char> in(data.size());
            const zcl_frame_t f{1, data.size(), ZCL_CLASS_NONE, 0};
            if (expected && zcl_expect(lane, &f, in.data()) != 0)
                return 1;
            zcl_event_t none;
            zcl_poll(there.context, &none, 1, 0);
            ready.put('r');
            stop.get<char>(); /* blocks in the kernel, which is like computing */
            const zcl_event_t e = there.next(ZCL_EVENT_ARRIVED);
            return same(e, data) && e.landed != expected ? 0 : 2;
        });
        side here(GetParam());
        zcl_lane_t *lane = here.connect(where.get<sockaddr_in>());
        ASSERT_EQ(here.next(ZCL_EVENT_OPENED).lane, lane);
        ready.get<char>();
        const zcl_frame_t f{1, data.size(), ZCL_CLASS_NONE, 0};
        ASSERT_EQ(zcl_send(lane, &f, data.data(), nullptr), 0);
        EXPECT_EQ(here.next(ZCL_EVENT_SENT).type, ZCL_EVENT_SENT);
        stop.put('s');
        EXPECT_EQ(peer.join(), 0);
    }
}

TEST_P(ComputingTest, SendersSendWithoutACall)
{
    const std::vector<char> data = pattern(20000000, 1);
    letter where, stop;
    child peer([&] {
        side there(GetParam());
        zcl_lane_t *lane = there.connect(where.get<sockaddr_in>());
        there.next(ZCL_EVENT_OPENED);
        for (std::uint64_t id = 0; id < 3; id++) {
            const zcl_frame_t f{id, data.size(), ZCL_CLASS_NONE, 0};
            if (zcl_send(lane, &f, data.data(), nullptr) != 0)
                return 1;
        }
        stop.get<char>();
        for (int i = 0; i < 3; i++)
            if (there.next(ZCL_EVENT_SENT).status != 0)
                return 2;
        return 0;
    });
    side here(GetParam());
    where.put(here.address());
    for (std::uint64_t id = 0; id < 3; id++) {
        const zcl_event_t e = here.next(ZCL_EVENT_ARRIVED);
        ASSERT_EQ(e.frame.id, id);
        ASSERT_TRUE(same(e, data));
        ASSERT_EQ(zcl_release(e.lane, e.data), 0);
    }
    stop.put('s');
    EXPECT_EQ(peer.join(), 0);
}

class ForkTest : public LaneTest {};
ZCL_EACH_WAY(ForkTest);

TEST_P(ForkTest, ChildrenAreRefusedAndHarmNobody)
{
    const std::vector<char> data = pattern(30000000, 1);
    std::vector<char> in(data.size());
    side a(GetParam()), b(GetParam());
    zcl_lane_t *to_b = a.connect(b.address());
    zcl_lane_t *to_a = b.next(ZCL_EVENT_ACCEPTED).lane;
    a.next(ZCL_EVENT_OPENED);
    const zcl_frame_t f{1, data.size(), ZCL_CLASS_NONE, 0};
    ASSERT_EQ(zcl_expect(to_a, &f, in.data()), 0);
    ASSERT_EQ(zcl_send(to_b, &f, data.data(), nullptr), 0);
    child c([&] {
        zcl_event_t e;
        sockaddr_in at{};
        socklen_t len = sizeof at;
        zcl_stats_t s{};
        s.size = sizeof s;
        zcl_lane_t *lane;
        auto *where = reinterpret_cast<sockaddr *>(&at);
        const bool refused = zcl_poll(a.context, &e, 1, 0) == -ECHILD &&
                             zcl_send(to_b, &f, data.data(), nullptr) == -ECHILD &&
                             zcl_expect(to_a, &f, in.data()) == -ECHILD &&
                             zcl_release(to_a, in.data()) == -ECHILD &&
                             zcl_close(to_a) == -ECHILD && zcl_stats(a.context, &s) == -ECHILD &&
                             zcl_address(a.context, where, &len) == -ECHILD &&
                             zcl_descriptor(a.context) == -ECHILD &&
                             zcl_connect(a.context, where, sizeof at, nullptr, &lane) == -ECHILD;
        zcl_destroy(a.context);
        zcl_destroy(b.context);
        return refused ? 0 : 1;
    });
    EXPECT_EQ(c.join(), 0);
    zcl_event_t e{};
    while (e.type == ZCL_EVENT_NONE) {
        e = b.next(ZCL_EVENT_ARRIVED, 1'000'000);
        a.next(ZCL_EVENT_SENT, 1);
    }
    EXPECT_EQ(in, data);
}

TEST_P(ForkTest, AChildThatLivesOnKeepsNoLaneOpen)
{
    side b(GetParam());
    letter stop;
    auto a = std::make_unique<side>(GetParam());
    a->connect(b.address());
    ASSERT_NE(b.next(ZCL_EVENT_ACCEPTED).lane, nullptr);
    child c([&] { return stop.get<char>(); });
    a.reset();
    const zcl_event_t end = b.next(ZCL_EVENT_BROKEN);
    EXPECT_EQ(end.type, ZCL_EVENT_BROKEN);
    EXPECT_EQ(end.status, 0);
    stop.put('\0');
}

namespace {

/* Forbids io_uring_setup(2) with @error, as containers do. */
bool refuse_io_uring(int error)
{
    sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog program{std::size(code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace

TEST(RefusalTest, WithoutIoUringTheThreadServesAndTheReasonIsTold)
{
    for (const int error : {EPERM, ENOSYS}) {
        child c([&] {
            if (!refuse_io_uring(error))
                return 77;
            side only(ZCL_WAY_URING), a(ZCL_WAY_AUTO), b(ZCL_WAY_AUTO);
            if (only.error != -error || a.error != 0)
                return 1;
            if (a.stats().way != ZCL_WAY_THREAD || a.stats().uring_error != -error ||
                a.log.find(std::strerror(error)) == std::string::npos)
                return 2;
            return exchanges(a, b) ? 0 : 3;
        });
        const int status = c.join();
        if (status == 77)
            GTEST_SKIP() << "no seccomp here";
        EXPECT_EQ(status, 0);
    }
}

class LimitsTest : public LaneTest {};
ZCL_EACH_WAY(LimitsTest);

TEST_P(LimitsTest, NoLockedMemoryIsNeeded)
{
    child c([&] {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_MEMLOCK, &none);
        side a(GetParam()), b(GetParam());
        if (a.error || b.error)
            return a.error == -ENOMEM ? 77 : 1;
        return exchanges(a, b) ? 0 : 2;
    });
    const int status = c.join();
    if (status == 77)
        GTEST_SKIP() << "this kernel counts rings as locked memory";
    EXPECT_EQ(status, 0);
}

/* Without descriptors no peer is accepted, and nothing spins; when some are free, all are. */
TEST_P(LimitsTest, WithoutDescriptorsPeersWait)
{
    child c([&] {
        side here(GetParam()), there(GetParam());
        zcl_lane_t *lane = there.connect(here.address());
        const int lowest = dup(0);
        const rlimit few{static_cast<rlim_t>(lowest), 4096};
        close(lowest);
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        if (setrlimit(RLIMIT_NOFILE, &few) != 0)
            return 1;
        rusage r0{}, r1{};
        getrusage(RUSAGE_SELF, &r0);
        const bool accepted = here.next(ZCL_EVENT_ACCEPTED, 500'000'000).type == ZCL_EVENT_ACCEPTED;
        getrusage(RUSAGE_SELF, &r1);
        /* accept4(2) holds a descriptor for a moment even where no connection waits; dup(2) above
         * may have been given the one after it. */
        std::vector<int> rest;
        for (int fd = dup(0); fd >= 0; fd = dup(0))
            rest.push_back(fd);
        sockaddr_in to = here.address();
        zcl_lane_t *other = nullptr;
        const int refused = zcl_connect(there.context, reinterpret_cast<sockaddr *>(&to), sizeof to,
                                        nullptr, &other);
        const rlimit many{before.rlim_cur < 4096 ? before.rlim_cur : 4096, 4096};
        setrlimit(RLIMIT_NOFILE, &many);
        for (const int fd : rest)
            close(fd);
        if (GetParam() == ZCL_WAY_URING && accepted)
            return 2;
        if (refused != -EMFILE)
            return 3;
        if (r1.ru_nvcsw - r0.ru_nvcsw > 1000)
            return 4;
        if (!accepted && here.next(ZCL_EVENT_ACCEPTED).type != ZCL_EVENT_ACCEPTED)
            return 5;
        return there.next(ZCL_EVENT_OPENED).lane == lane ? 0 : 6;
    });
    EXPECT_EQ(c.join(), 0);
}

/* What a lane costs that nothing has come by: no landing memory, and little else. */
TEST_P(LimitsTest, AThousandIdleLanesFit)
{
    constexpr int kMany = 1000;
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * kMany + 100)
        GTEST_SKIP() << "RLIMIT_NOFILE is " << files.rlim_cur;
    auto resident = [] {
        FILE *f = std::fopen("/proc/self/statm", "r");
        long size = 0, pages = 0;
        EXPECT_EQ(std::fscanf(f, "%ld %ld", &size, &pages), 2);
        std::fclose(f);
        return static_cast<std::size_t>(pages) * 4096;
    };
    side hub(GetParam()), spokes(GetParam());
    const std::size_t before = resident();
    const sockaddr_in to = hub.address();
    std::thread accepting([&] {
        for (int i = 0; i < kMany; i++)
            ASSERT_EQ(hub.next(ZCL_EVENT_ACCEPTED).type, ZCL_EVENT_ACCEPTED) << i;
    });
    std::vector<zcl_lane_t *> lanes;
    for (int i = 0; i < kMany; i++)
        lanes.push_back(spokes.connect(to));
    for (int i = 0; i < kMany; i++)
        ASSERT_EQ(spokes.next(ZCL_EVENT_OPENED).type, ZCL_EVENT_OPENED) << i;
    accepting.join();
    const std::size_t each = (resident() - before) / (2 * kMany);
    RecordProperty("resident_bytes_per_lane", static_cast<int>(each));
    std::printf("%zu bytes of a process's memory per idle lane\n", each);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(each, 8192u);
#endif
    const std::vector<char> data = pattern(50000, 1);
    const zcl_frame_t f{1, data.size(), 0, 0};
    for (int i = 0; i < kMany; i += 100) {
        ASSERT_EQ(zcl_send(lanes[static_cast<std::size_t>(i)], &f, data.data(), nullptr), 0);
        ASSERT_TRUE(same(hub.next(ZCL_EVENT_ARRIVED), data));
    }
}

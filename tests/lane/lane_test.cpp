/* SPDX-License-Identifier: BSD-3-Clause */
/* Two contexts of one process: what frames do. */
#include "support.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <thread>

using namespace zcl::test;

namespace {

struct pair {
    explicit pair(zcl_way_t way, std::function<void(zcl_params_t &)> change = nullptr)
        : a(way, change), b(way, change)
    {
        to_b = a.connect(b.address());
        to_a = b.next(ZCL_EVENT_ACCEPTED).lane;
        EXPECT_EQ(a.next(ZCL_EVENT_OPENED).lane, to_b);
        EXPECT_NE(to_a, nullptr);
    }
    side a, b;
    zcl_lane_t *to_b, *to_a;
};

zcl_frame_t frame(std::uint64_t id, std::size_t len, std::uint32_t page_class = ZCL_CLASS_NONE)
{
    return {id, len, page_class, 0};
}

} // namespace

using FramesTest = LaneTest;
ZCL_EACH_WAY(FramesTest);

TEST_P(FramesTest, LandInTheirClass)
{
    pair p(GetParam());
    for (std::size_t len : {1u, 100u, 4096u, 100000u, 5000000u})
        for (std::uint32_t page_class : {0u, 16u, 4095u}) {
            const std::vector<char> data = pattern(len, page_class);
            const zcl_frame_t f = frame(len, len, page_class);
            ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), &p), 0);
            const zcl_event_t e = p.b.next(ZCL_EVENT_ARRIVED);
            ASSERT_EQ(e.frame.id, len);
            ASSERT_TRUE(same(e, data));
            ASSERT_TRUE(e.landed);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(e.data) % ZCL_PAGE, page_class);
            ASSERT_EQ(zcl_release(p.to_a, e.data), 0);
            ASSERT_EQ(zcl_release(p.to_a, e.data), -EINVAL);
            const zcl_event_t sent = p.a.next(ZCL_EVENT_SENT);
            ASSERT_EQ(sent.token, &p);
            ASSERT_EQ(sent.status, 0);
        }
}

TEST_P(FramesTest, OfNoBytesArrive)
{
    pair p(GetParam());
    for (std::uint32_t page_class : {ZCL_CLASS_NONE, 77u}) {
        const zcl_frame_t f = frame(9, 0, page_class);
        ASSERT_EQ(zcl_send(p.to_b, &f, nullptr, nullptr), 0);
        EXPECT_EQ(p.b.next(ZCL_EVENT_ARRIVED).frame.id, 9u);
        EXPECT_EQ(p.a.next(ZCL_EVENT_SENT).status, 0);
    }
}

TEST_P(FramesTest, ExpectedOnesGoStraightToTheirPlaces)
{
    pair p(GetParam());
    constexpr unsigned kMany = 3 * ZCL_EXPECT_MAX;
    std::vector<std::vector<char>> out, in;
    for (unsigned i = 0; i < kMany; i++) {
        out.push_back(pattern(1000 + 50000 * i, i));
        in.emplace_back(out.back().size());
        const zcl_frame_t f = frame(i, out.back().size());
        ASSERT_EQ(zcl_expect(p.to_a, &f, in.back().data()), 0);
    }
    for (unsigned i = 0; i < kMany; i++) {
        const zcl_frame_t f = frame(i, out[i].size());
        ASSERT_EQ(zcl_send(p.to_b, &f, out[i].data(), nullptr), 0);
    }
    for (unsigned i = 0; i < kMany; i++) {
        /* Both of one process take turns. */
        zcl_event_t e{};
        while (e.type == ZCL_EVENT_NONE) {
            e = p.b.next(ZCL_EVENT_ARRIVED, 1'000'000);
            p.a.next(ZCL_EVENT_SENT, 1);
        }
        ASSERT_EQ(e.frame.id, i);
        ASSERT_EQ(e.data, in[i].data());
        ASSERT_FALSE(e.landed);
        ASSERT_EQ(in[i], out[i]);
    }
    EXPECT_EQ(p.b.stats().bytes_landed, 0u);
}

TEST_P(FramesTest, GoWhereTheCallbackSays)
{
    pair p(GetParam());
    std::vector<char> in(3000000);
    const std::vector<char> out = pattern(in.size(), 5);
    p.b.place = [&](const zcl_frame_t &f) { return f.id == 5 ? in.data() : nullptr; };
    const zcl_frame_t f = frame(5, out.size());
    ASSERT_EQ(zcl_send(p.to_b, &f, out.data(), nullptr), 0);
    zcl_event_t e{};
    while (e.type == ZCL_EVENT_NONE) {
        e = p.b.next(ZCL_EVENT_ARRIVED, 1'000'000);
        p.a.next(ZCL_EVENT_SENT, 1);
    }
    /* The kernel may have landed all of it before the application could be asked. */
    EXPECT_TRUE(same(e, out));
    EXPECT_EQ(e.data == in.data(), !e.landed);
    EXPECT_TRUE(!e.landed || GetParam() == ZCL_WAY_URING);
    EXPECT_EQ(p.b.stats().bytes_direct, e.landed ? 0 : in.size());
}

TEST_P(FramesTest, BothWaysAtOnce)
{
    pair p(GetParam());
    const std::vector<char> x = pattern(20000000, 1), y = pattern(20000000, 2);
    const zcl_frame_t f = frame(1, x.size());
    std::thread other([&] {
        ASSERT_EQ(zcl_send(p.to_a, &f, y.data(), nullptr), 0);
        EXPECT_TRUE(same(p.b.next(ZCL_EVENT_ARRIVED), x));
        EXPECT_EQ(p.b.next(ZCL_EVENT_SENT).status, 0);
    });
    ASSERT_EQ(zcl_send(p.to_b, &f, x.data(), nullptr), 0);
    EXPECT_TRUE(same(p.a.next(ZCL_EVENT_ARRIVED), y));
    EXPECT_EQ(p.a.next(ZCL_EVENT_SENT).status, 0);
    other.join();
}

TEST_P(FramesTest, FullLandingMemoryHoldsTheSenderUntilSomeIsReleased)
{
    pair p(GetParam(), [](zcl_params_t &q) { q.landing_bytes = 1 << 20; });
    const std::vector<char> data = pattern(400000, 3);
    constexpr int kMany = 60; /* 24 MB: more than sockets hold */
    for (int i = 0; i < kMany; i++) {
        const zcl_frame_t f = frame(static_cast<std::uint64_t>(i), data.size(), 0);
        ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
    }
    std::thread sender([&] {
        for (int i = 0; i < kMany; i++)
            ASSERT_EQ(p.a.next(ZCL_EVENT_SENT).status, 0);
    });
    zcl_event_t held[2];
    for (int i = 0; i < 2; i++) {
        held[i] = p.b.next(ZCL_EVENT_ARRIVED);
        ASSERT_TRUE(same(held[i], data));
    }
    EXPECT_EQ(p.b.next(ZCL_EVENT_ARRIVED, 300'000'000).type, ZCL_EVENT_NONE);
    EXPECT_TRUE(same(held[0], data) && same(held[1], data)) << "nothing may be written there";
    EXPECT_GT(p.b.stats().held, 0u);
    ASSERT_EQ(zcl_release(p.to_a, held[0].data), 0);
    ASSERT_EQ(zcl_release(p.to_a, held[1].data), 0);
    for (int i = 2; i < kMany; i++) {
        const zcl_event_t e = p.b.next(ZCL_EVENT_ARRIVED);
        ASSERT_EQ(e.frame.id, static_cast<std::uint64_t>(i));
        ASSERT_TRUE(same(e, data));
        ASSERT_EQ(zcl_release(p.to_a, e.data), 0);
    }
    sender.join();
}

TEST_P(FramesTest, LongerThanLandingMemoryWaitForAPlace)
{
    pair p(GetParam(), [](zcl_params_t &q) { q.landing_bytes = 1 << 20; });
    const std::vector<char> data = pattern(9000000, 4);
    std::vector<char> in(data.size());
    const zcl_frame_t f = frame(1, data.size());
    ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
    EXPECT_EQ(p.b.next(ZCL_EVENT_ARRIVED, 200'000'000).type, ZCL_EVENT_NONE);
    p.b.place = [&](const zcl_frame_t &) { return in.data(); };
    zcl_event_t e{};
    while (e.type == ZCL_EVENT_NONE) {
        e = p.b.next(ZCL_EVENT_ARRIVED, 1'000'000);
        p.a.next(ZCL_EVENT_SENT, 1);
    }
    EXPECT_EQ(in, data);
}

TEST_P(FramesTest, UnexpectedOnesBreakALaneThatExpectsAnother)
{
    pair p(GetParam());
    char in[100];
    const std::vector<char> data = pattern(100, 1);
    const zcl_frame_t expected = frame(1, 100), other = frame(2, 100);
    ASSERT_EQ(zcl_expect(p.to_a, &expected, in), 0);
    ASSERT_EQ(zcl_send(p.to_b, &other, data.data(), nullptr), 0);
    EXPECT_EQ(p.b.next(ZCL_EVENT_BROKEN).status, -EPROTO);
    const zcl_event_t e = p.a.next(ZCL_EVENT_BROKEN);
    EXPECT_EQ(e.type, ZCL_EVENT_BROKEN);
    EXPECT_EQ(zcl_send(p.to_b, &other, data.data(), nullptr), -EPIPE);
}

TEST_P(FramesTest, ClosingTakesEveryBufferBack)
{
    pair p(GetParam());
    constexpr std::size_t kLen = std::size_t{512} << 20; /* little of it is ever touched */
    auto map = [](int protection) {
        return mmap(nullptr, kLen, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    };
    void *out = map(PROT_READ), *in = map(PROT_READ | PROT_WRITE);
    ASSERT_TRUE(out != MAP_FAILED && in != MAP_FAILED);
    const zcl_frame_t f = frame(1, kLen), nowhere = frame(2, kLen);
    ASSERT_EQ(zcl_expect(p.to_a, &f, in), 0);
    /* From a thread of its own: in one, the kernel would send and receive it all at one go. All of
     * the first may be there before the close; there is no place for the second. */
    int status = 0;
    std::atomic<bool> begun{false};
    std::thread sender([&] {
        EXPECT_EQ(zcl_send(p.to_b, &f, out, nullptr), 0);
        begun = true;
        const int sent = zcl_send(p.to_b, &nowhere, out, nullptr);
        EXPECT_TRUE(sent == 0 || sent == -EPIPE) << sent;
        status = p.a.next(ZCL_EVENT_SENT).status;
        if (sent == 0)
            status = p.a.next(ZCL_EVENT_SENT).status;
    });
    while (!begun)
        p.b.next(ZCL_EVENT_ARRIVED, 100'000);
    ASSERT_EQ(zcl_close(p.to_a), 0);
    /* A thread that still wrote here would end the process. */
    ASSERT_EQ(mprotect(in, kLen, PROT_NONE), 0);
    sender.join();
    EXPECT_LT(status, 0);
    EXPECT_EQ(p.a.next(ZCL_EVENT_BROKEN).lane, p.to_b);
    EXPECT_EQ(zcl_close(p.to_b), 0);
    EXPECT_EQ(p.a.stats().lanes_now, 0u);
    munmap(in, kLen);
    munmap(out, kLen);
}

TEST_P(FramesTest, SentBeforeAGoodbyeArriveBeforeIt)
{
    pair p(GetParam());
    const std::vector<char> data = pattern(100000, 1);
    const zcl_frame_t f = frame(1, data.size());
    ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
    ASSERT_EQ(p.a.next(ZCL_EVENT_SENT).status, 0);
    ASSERT_EQ(zcl_close(p.to_b), 0);
    EXPECT_TRUE(same(p.b.next(ZCL_EVENT_ARRIVED), data));
    EXPECT_EQ(p.b.next(ZCL_EVENT_BROKEN).status, 0);
}

TEST_P(FramesTest, ManyThreadsMayCall)
{
    pair p(GetParam());
    constexpr int kThreads = 4, kEach = 50;
    const std::vector<char> data = pattern(30000, 7);
    std::vector<std::thread> senders;
    for (int t = 0; t < kThreads; t++)
        senders.emplace_back([&, t] {
            for (int i = 0; i < kEach; i++) {
                const zcl_frame_t f = frame(static_cast<std::uint64_t>(t * kEach + i), data.size());
                ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
            }
        });
    std::thread flusher([&] {
        for (int i = 0; i < kThreads * kEach; i++)
            ASSERT_EQ(p.a.next(ZCL_EVENT_SENT).status, 0);
    });
    std::vector<int> seen(kThreads * kEach);
    for (int i = 0; i < kThreads * kEach; i++) {
        const zcl_event_t e = p.b.next(ZCL_EVENT_ARRIVED);
        ASSERT_TRUE(same(e, data));
        seen[e.frame.id]++;
        ASSERT_EQ(zcl_release(p.to_a, e.data), 0);
    }
    for (std::thread &t : senders)
        t.join();
    flusher.join();
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST_P(FramesTest, GoOnWhenTheThreadThatArmedEnds)
{
    pair p(GetParam());
    const std::vector<char> data = pattern(8000000, 1);
    std::vector<char> in(data.size());
    const zcl_frame_t f = frame(1, data.size());
    std::thread([&] { ASSERT_EQ(zcl_expect(p.to_a, &f, in.data()), 0); }).join();
    std::thread([&] { ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0); }).join();
    zcl_event_t e{};
    for (int i = 0; i < 20000 && e.type == ZCL_EVENT_NONE; i++) {
        e = p.b.next(ZCL_EVENT_ARRIVED, 1'000'000);
        p.a.next(ZCL_EVENT_SENT, 1);
    }
    EXPECT_EQ(e.frame.id, 1u);
    EXPECT_EQ(in, data);
}

namespace {

bool readable(int fd, int timeout_ms)
{
    pollfd waits{fd, POLLIN, 0};
    return poll(&waits, 1, timeout_ms) == 1;
}

} // namespace

TEST(DescriptorTest, IsReadableWhileThereIsSomethingToDo)
{
    pair p(ZCL_WAY_CALLER);
    p.a.look(0);
    p.b.look(0);
    const int fd = zcl_descriptor(p.b.context);
    ASSERT_GE(fd, 0);
    EXPECT_FALSE(readable(fd, 0));
    const std::vector<char> data = pattern(3'000'000, 1);
    std::vector<char> in(data.size());
    p.b.place = [&](const zcl_frame_t &) { return in.data(); };
    const zcl_frame_t f = frame(1, data.size());
    ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
    while (p.b.kept.empty()) {
        ASSERT_TRUE(readable(fd, 10000));
        p.b.look(0);
        p.a.look(0);
    }
    EXPECT_EQ(p.b.kept.front().type, ZCL_EVENT_ARRIVED);
    EXPECT_EQ(in, data);
    EXPECT_FALSE(readable(fd, 0));
    zcl_close(p.to_b);
    EXPECT_TRUE(readable(fd, 10000)) << "an end is news, too";
    EXPECT_EQ(p.b.next(ZCL_EVENT_BROKEN).status, 0);
    EXPECT_FALSE(readable(fd, 0));
}

TEST(DescriptorTest, IsThereForCallersOnly)
{
    side thread(ZCL_WAY_THREAD);
    EXPECT_EQ(zcl_descriptor(thread.context), -EOPNOTSUPP);
    EXPECT_EQ(zcl_descriptor(nullptr), -EINVAL);
}

TEST(CallerTest, ACallMovesAtMostAMebibyte)
{
    pair p(ZCL_WAY_CALLER);
    const std::vector<char> data = pattern(20'000'000, 1);
    std::vector<char> in(data.size());
    p.b.place = [&](const zcl_frame_t &) { return in.data(); };
    const zcl_frame_t f = frame(1, data.size());
    ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
    std::uint64_t before = 0, most = 0;
    while (p.b.kept.empty()) {
        p.a.look(0);
        p.b.look(0);
        const std::uint64_t now = p.b.stats().bytes_direct;
        most = std::max(most, now - before);
        before = now;
    }
    EXPECT_EQ(in, data);
    EXPECT_GT(most, 0u);
    EXPECT_LE(most, std::uint64_t{1} << 20);
}

TEST(CallerTest, SeveralThreadsMayWaitAtOnce)
{
    pair p(ZCL_WAY_CALLER);
    constexpr int kMany = 200;
    const std::vector<char> data = pattern(1'000'000, 1);
    std::vector<std::vector<char>> in(kMany, std::vector<char>(data.size()));
    p.b.place = [&](const zcl_frame_t &f) { return in[f.id].data(); };
    for (std::uint64_t i = 0; i < kMany; i++) {
        const zcl_frame_t f = frame(i, data.size());
        ASSERT_EQ(zcl_send(p.to_b, &f, data.data(), nullptr), 0);
    }
    std::atomic<int> arrived{0}, broken{0};
    auto wait = [&](zcl_t *context) {
        while (arrived < kMany && broken == 0) {
            zcl_event_t e{};
            if (zcl_poll(context, &e, 1, 1'000'000) != 1)
                continue;
            arrived += e.type == ZCL_EVENT_ARRIVED;
            broken += e.type == ZCL_EVENT_BROKEN;
        }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back(wait, p.b.context);
    threads.emplace_back(wait, p.a.context);
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(broken, 0);
    for (const std::vector<char> &got : in)
        ASSERT_EQ(got, data);
}

TEST(CallerTest, ASignalEndsTheWait)
{
    side only(ZCL_WAY_CALLER);
    struct sigaction handled {
    }, before{};
    handled.sa_handler = [](int) {};
    sigaction(SIGALRM, &handled, &before);
    const itimerval soon{{0, 10'000}, {0, 10'000}}, never{};
    setitimer(ITIMER_REAL, &soon, nullptr);
    zcl_event_t e;
    EXPECT_EQ(zcl_poll(only.context, &e, 1, 10'000'000'000), -EINTR);
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
}

TEST(ParamsTest, AreChecked)
{
    zcl_t *out = nullptr;
    zcl_params_t good{};
    good.size = sizeof good;
    good.secret = kSecret;
    good.way = ZCL_WAY_THREAD;
    auto with = [&](auto change) {
        zcl_params_t p = good;
        change(p);
        const int error = zcl_create(&p, &out);
        if (error == 0)
            zcl_destroy(out);
        return error;
    };
    EXPECT_EQ(with([](zcl_params_t &) {}), 0);
    EXPECT_EQ(with([](zcl_params_t &p) { p.size = 3; }), -EINVAL);
    EXPECT_EQ(with([](zcl_params_t &p) { p.secret = nullptr; }), -EINVAL);
    EXPECT_EQ(with([](zcl_params_t &p) { p.landing_bytes = 1; }), -EINVAL);
    EXPECT_EQ(with([](zcl_params_t &p) { p.interface = "no-such-device"; }), -ENODEV);
    EXPECT_EQ(zcl_create(nullptr, &out), -EINVAL);
    EXPECT_EQ(zcl_create(&good, nullptr), -EINVAL);
    sockaddr_in elsewhere{};
    elsewhere.sin_family = AF_INET;
    elsewhere.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, of documentation */
    EXPECT_EQ(with([&](zcl_params_t &p) {
                  p.local = reinterpret_cast<sockaddr *>(&elsewhere);
                  p.local_len = sizeof elsewhere;
              }),
              -EADDRNOTAVAIL);

    side a(ZCL_WAY_THREAD), b(ZCL_WAY_THREAD);
    zcl_lane_t *lane = a.connect(b.address());
    zcl_frame_t f = frame(1, 10, ZCL_PAGE);
    char data[10];
    EXPECT_EQ(zcl_send(lane, &f, data, nullptr), -EINVAL);
    f.page_class = 0;
    EXPECT_EQ(zcl_send(lane, &f, nullptr, nullptr), -EINVAL);
    EXPECT_EQ(zcl_expect(lane, &f, data), -EINVAL);
    f.page_class = ZCL_CLASS_NONE;
    EXPECT_EQ(zcl_expect(lane, &f, nullptr), -EINVAL);
    f.len = ~std::uint64_t{0};
    EXPECT_EQ(zcl_send(lane, &f, data, nullptr), -EINVAL);
    EXPECT_EQ(zcl_release(lane, data), -EINVAL);
    zcl_event_t e;
    EXPECT_EQ(zcl_poll(a.context, &e, 0, 0), -EINVAL);
    EXPECT_EQ(zcl_poll(a.context, nullptr, 1, 0), -EINVAL);
}

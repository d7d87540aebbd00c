/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_TESTS_SUPPORT_H_INCLUDED
#define ZCL_TESTS_SUPPORT_H_INCLUDED

#include "zcl/lane.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace zcl::test {

/* Nothing here waits for longer: what has not happened by then never will. */
inline constexpr std::int64_t kPatience = 30'000'000'000;

inline constexpr unsigned char kSecret[ZCL_SECRET_BYTES] = {3, 1, 4, 1, 5, 9};

/** A context with its events in the order they came. */
class side {
  public:
    explicit side(zcl_way_t way, std::function<void(zcl_params_t &)> change = nullptr)
    {
        zcl_params_t p{};
        p.size = sizeof p;
        p.way = way;
        p.secret = kSecret;
        p.hello_timeout_ms = kPatience / 1'000'000; /* a busy machine may take long */
        p.arg = this;
        p.place = [](void *arg, zcl_lane_t *, const zcl_frame_t *f) {
            auto *self = static_cast<side *>(arg);
            return self->place ? self->place(*f) : nullptr;
        };
        p.log = [](void *arg, const char *line) { static_cast<side *>(arg)->log += line; };
        if (change)
            change(p);
        error = zcl_create(&p, &context);
        if (p.way == ZCL_WAY_CALLER)
            callers.push_back(this);
    }
    ~side()
    {
        std::erase(callers, this);
        zcl_destroy(context);
    }
    side(const side &) = delete;
    side &operator=(const side &) = delete;

    sockaddr_in address() const
    {
        sockaddr_in at{};
        socklen_t len = sizeof at;
        EXPECT_EQ(zcl_address(context, reinterpret_cast<sockaddr *>(&at), &len), 0);
        return at;
    }

    zcl_lane_t *connect(const sockaddr_in &to)
    {
        zcl_lane_t *made = nullptr;
        EXPECT_EQ(zcl_connect(context, reinterpret_cast<const sockaddr *>(&to), sizeof to, nullptr,
                              &made),
                  0);
        return made;
    }

    /** Keeps what has happened. With ZCL_WAY_CALLER nothing happens otherwise. */
    void look(std::int64_t timeout_ns)
    {
        zcl_event_t events[8];
        const int n = zcl_poll(context, events, 8, timeout_ns);
        EXPECT_TRUE(n >= 0 || n == -EINTR) << n;
        kept.insert(kept.end(), events, events + std::max(n, 0));
    }

    /** The next event of this type; others that come meanwhile are kept. NONE: it never came. */
    zcl_event_t next(zcl_event_type_t type, std::int64_t patience_ns = kPatience)
    {
        const auto begin = std::chrono::steady_clock::now();
        for (std::int64_t left = patience_ns;;) {
            std::unique_lock<std::mutex> one(turn);
            for (auto e = kept.begin(); e != kept.end(); ++e)
                if (e->type == type) {
                    const zcl_event_t found = *e;
                    kept.erase(e);
                    return found;
                }
            if (left < 0) {
                EXPECT_LT(patience_ns, kPatience) << "what was awaited has not happened";
                return {};
            }
            for (side *caller : callers)
                caller->look(0);
            if (callers.empty()) {
                one.unlock();
                look(std::min<std::int64_t>(left, 100'000'000));
            }
            left = patience_ns -
                   std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
        }
    }

    zcl_stats_t stats() const
    {
        zcl_stats_t s{};
        s.size = sizeof s;
        EXPECT_EQ(zcl_stats(context, &s), 0);
        return s;
    }

    zcl_t *context = nullptr;
    int error = 0;
    std::function<void *(const zcl_frame_t &)> place;
    std::string log;
    std::vector<zcl_event_t> kept;
    /* Of this process: while one of them waits the others are called, too, by one thread at a
     * time. */
    static inline std::vector<side *> callers;
    static inline std::mutex turn;
};

inline std::vector<char> pattern(std::size_t len, unsigned seed)
{
    std::vector<char> bytes(len);
    for (std::size_t i = 0; i < len; i++)
        bytes[i] = static_cast<char>(i * 13 + i / 4099 + seed);
    return bytes;
}

inline bool same(const zcl_event_t &e, const std::vector<char> &want)
{
    return e.frame.len == want.size() && std::memcmp(e.data, want.data(), want.size()) == 0;
}

/** Sends 100,000 bytes from @a to @b; do they arrive? */
inline bool exchanges(side &a, side &b)
{
    zcl_lane_t *lane = a.connect(b.address());
    const std::vector<char> data = pattern(100000, 1);
    const zcl_frame_t f{1, data.size(), 0, 0};
    return zcl_send(lane, &f, data.data(), nullptr) == 0 && same(b.next(ZCL_EVENT_ARRIVED), data);
}

/** A process that ends with what @f returns; killed if it takes too long. */
class child {
  public:
    template <typename F>
    explicit child(F f) : pid_(fork())
    {
        if (pid_ == 0) {
            alarm(60);
            _exit(f());
        }
    }
    ~child()
    {
        if (pid_ > 0) {
            kill(SIGKILL);
            join();
        }
    }
    void kill(int signal) { ::kill(pid_, signal); }
    /** Its exit status, or 128 and the signal that ended it. */
    int join()
    {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

/** One value from one process to another. */
class letter {
  public:
    letter() { EXPECT_EQ(pipe(ends_), 0); }
    ~letter()
    {
        close(ends_[0]);
        close(ends_[1]);
    }
    template <typename T>
    void put(const T &value)
    {
        [[maybe_unused]] ssize_t n = write(ends_[1], &value, sizeof value);
    }
    template <typename T>
    T get()
    {
        T value{};
        [[maybe_unused]] ssize_t n = read(ends_[0], &value, sizeof value);
        return value;
    }

  private:
    int ends_[2];
};

} // namespace zcl::test

/* Runs a test with each way; io_uring is skipped, with the reason, where it is refused. */
class LaneTest : public testing::TestWithParam<zcl_way_t> {
  protected:
    void SetUp() override
    {
        zcl::test::side probe(GetParam());
        if (GetParam() == ZCL_WAY_URING && probe.error != 0)
            GTEST_SKIP() << "io_uring: " << std::strerror(-probe.error);
        ASSERT_EQ(probe.error, 0);
    }
};

#define ZCL_WAYS(suite, ...)                                                                       \
    INSTANTIATE_TEST_SUITE_P(Way, suite, testing::Values(__VA_ARGS__), [](const auto &kind) {      \
        return std::string(zcl_way_name(kind.param));                                              \
    })

#define ZCL_EACH_WAY(suite) ZCL_WAYS(suite, ZCL_WAY_URING, ZCL_WAY_THREAD, ZCL_WAY_CALLER)
/* Bytes move while no call is made. */
#define ZCL_EACH_BACKGROUND_WAY(suite) ZCL_WAYS(suite, ZCL_WAY_URING, ZCL_WAY_THREAD)

#endif /* ZCL_TESTS_SUPPORT_H_INCLUDED */

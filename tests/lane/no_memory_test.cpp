/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation of the library fails once: nothing is told twice, lost, or torn. */
#include "support.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

/* Of this thread: which of the next allocations fails; 0: none. */
thread_local long nth = 0;

} // namespace

/* The library's objects are in this program, and so use these. */
void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
    if (nth > 0 && --nth == 0)
        return nullptr;
    return std::malloc(size ? size : 1);
}

void *operator new(std::size_t size)
{
    if (void *p = operator new(size, std::nothrow))
        return p;
    throw std::bad_alloc();
}

/* Not inlined: the compiler would see free(3) of what came from operator new. */
[[gnu::noinline]] void operator delete(void *p) noexcept
{
    std::free(p);
}

[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept
{
    std::free(p);
}

namespace zcl::test {
namespace {

/* With ThreadSanitizer, which takes minutes for all of them, one in four. */
#ifdef __SANITIZE_THREAD__
constexpr long kStep = 4;
#else
constexpr long kStep = 1;
#endif

constexpr int kFrames = 4;
constexpr std::size_t kLength = 2 << 20; /* sockets do not hold all of them */

/* One side, without anything of the test's own that allocates while it calls. */
struct end {
    zcl_t *context = nullptr;
    zcl_lane_t *lane = nullptr;
    std::vector<std::vector<char>> in{kFrames}, out{kFrames};
    std::vector<int> queued = std::vector<int>(kFrames), sent = queued, failed = queued,
                     arrived = queued;
    bool ended = false;

    explicit end(std::size_t len)
    {
        for (int i = 0; i < kFrames; i++) {
            out[i] = pattern(len, static_cast<unsigned>(i));
            in[i].resize(len);
        }
    }

    int create(zcl_way_t way)
    {
        zcl_params_t p{};
        p.size = sizeof p;
        p.way = way;
        p.secret = kSecret;
        p.arg = this;
        p.place = [](void *arg, zcl_lane_t *, const zcl_frame_t *f) -> void * {
            return static_cast<end *>(arg)->in[f->id].data();
        };
        return zcl_create(&p, &context);
    }

    void send()
    {
        for (int i = 0; i < kFrames; i++) {
            const zcl_frame_t f{static_cast<std::uint64_t>(i), out[i].size(), ZCL_CLASS_NONE, 0};
            const int error = zcl_send(lane, &f, out[i].data(), &sent[i]);
            ASSERT_TRUE(error == 0 || error == -ENOMEM || error == -EPIPE) << error;
            queued[i] = error == 0;
        }
    }

    /* Returns what zcl_poll() has said. */
    int look()
    {
        zcl_event_t e;
        int n;
        while ((n = zcl_poll(context, &e, 1, 0)) > 0)
            switch (e.type) {
            case ZCL_EVENT_ACCEPTED:
                lane = e.lane;
                send();
                break;
            case ZCL_EVENT_SENT:
                ++*static_cast<int *>(e.token);
                failed[static_cast<std::size_t>(e.frame.id)] += e.status != 0;
                break;
            case ZCL_EVENT_ARRIVED:
                arrived[static_cast<std::size_t>(e.frame.id)]++;
                /* Of a stream that is ahead the kernel has landed more than was asked for. */
                if (e.landed) {
                    std::memcpy(in[e.frame.id].data(), e.data, e.frame.len);
                    EXPECT_EQ(zcl_release(e.lane, e.data), 0);
                }
                break;
            case ZCL_EVENT_BROKEN:
                ended = true;
                break;
            default:
                break;
            }
        return n;
    }
};

/* True: the allocation that was to fail never came. */
bool exchange_without(zcl_way_t way, long which, bool here_lacks)
{
    end here(kLength), there(kLength);
    const auto in_turn = [&](end &e, auto f) {
        nth = (&e == &here) == here_lacks ? which : 0;
        const auto result = f();
        if ((&e == &here) == here_lacks)
            which = nth;
        nth = 0;
        return result;
    };
    const auto close = [&] {
        zcl_destroy(here.context);
        zcl_destroy(there.context);
        return which > 0;
    };
    for (end *e : {&here, &there}) {
        const int error = in_turn(*e, [&] { return e->create(way); });
        EXPECT_TRUE(error == 0 || error == -ENOMEM) << error;
        if (error)
            return close();
    }
    sockaddr_in to{};
    socklen_t len = sizeof to;
    EXPECT_EQ(zcl_address(here.context, reinterpret_cast<sockaddr *>(&to), &len), 0);
    const int error = in_turn(there, [&] {
        return zcl_connect(there.context, reinterpret_cast<sockaddr *>(&to), len, nullptr,
                           &there.lane);
    });
    EXPECT_TRUE(error == 0 || error == -ENOMEM) << error;
    if (error)
        return close();
    in_turn(there, [&] {
        there.send();
        return 0;
    });

    const auto total = [](const std::vector<int> &v) { return std::count(v.begin(), v.end(), 1); };
    const auto over = [&] {
        return (here.ended && there.ended) || (!here.lane && there.ended) ||
               (here.lane && !here.ended && !there.ended &&
                total(here.sent) == total(here.queued) &&
                total(there.sent) == total(there.queued) &&
                total(here.arrived) == total(there.queued) &&
                total(there.arrived) == total(here.queued));
    };
    for (int turn = 0; turn < 3000 && !over(); turn++)
        for (end *e : {&here, &there}) {
            const int n = in_turn(*e, [&] { return e->look(); });
            EXPECT_TRUE(n == 0 || n == -ENOMEM) << n;
            if (turn > 20)
                usleep(1000);
        }
    EXPECT_TRUE(over()) << "allocation " << which << ": no end";

    for (end *e : {&here, &there})
        for (int i = 0; i < kFrames; i++) {
            end &other = e == &here ? there : here;
            EXPECT_EQ(e->sent[i], e->queued[i]) << "frame " << i;
            EXPECT_LE(other.arrived[i], e->queued[i] - e->failed[i]) << "frame " << i;
            if (other.arrived[i]) {
                EXPECT_EQ(other.in[i], e->out[i]);
            }
            if (!e->ended && !other.ended) {
                EXPECT_EQ(other.arrived[i], e->queued[i]);
            }
        }
    return close();
}

/* Allocations of the library's own thread do not fail. */
using NoMemoryTest = LaneTest;
ZCL_EACH_WAY(NoMemoryTest);

TEST_P(NoMemoryTest, NothingIsToldTwiceOrLost)
{
    for (const bool here_lacks : {true, false}) {
        long which = 1;
        while (!exchange_without(GetParam(), which, here_lacks)) {
            if (HasFailure()) {
                ADD_FAILURE() << "allocation " << which << " of the side that "
                              << (here_lacks ? "listens" : "connects");
                return;
            }
            which += kStep;
        }
        EXPECT_GT(which, 10);
    }
}

} // namespace
} // namespace zcl::test

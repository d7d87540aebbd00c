/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_context.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <pthread.h>
#include <unistd.h>

namespace zcl {
namespace {

constexpr std::size_t kMostStrangers = 64; /* that may be about to prove themselves */
constexpr std::size_t kLeastShare = std::size_t{64} << 10;
constexpr auto kAcceptPause = std::chrono::milliseconds(100); /* no descriptors */
constexpr auto kFullPause = std::chrono::milliseconds(5);     /* too many strangers */
constexpr auto kLeastTime = std::chrono::milliseconds(100);   /* that a stranger has */
constexpr int kIdleSeconds = 10, kProbeSeconds = 2;           /* of TCP's keepalive */

std::atomic<std::uint64_t> forks{0};

std::uint64_t fork_count()
{
    static const int watched = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
    (void)watched;
    return forks.load(std::memory_order_relaxed);
}

void prepare(int fd)
{
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* Firewalls forget connections that are silent for minutes. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
}

} // namespace

owned_fd::~owned_fd()
{
    if (fd_ >= 0)
        close(fd_);
}

} // namespace zcl

using namespace zcl;

zcl_lane::zcl_lane(zcl_context &owner, owned_fd socket, bool was_accepted, const zcl::hello &first)
    : context(owner), fd(std::move(socket)), accepted(was_accepted),
      deadline(zcl::clock::now() + std::chrono::milliseconds(owner.params.hello_timeout_ms)),
      in(user, owner.params.landing_bytes), out(first, !was_accepted), begins(1), ends(1)
{
    user.trash = owner.trash.data();
    user.greeted = [this](const zcl::hello &h) {
        const bool known = h.magic == kHelloMagic && h.version == kVersion &&
                           same_secret(h.secret, out.greeting().secret);
        if (!known)
            return false;
        name = h.name;
        state = zcl_lane_state::open;
        context.nr_opening--;
        zcl_event_t &e = begins.front();
        e.type = accepted ? ZCL_EVENT_ACCEPTED : ZCL_EVENT_OPENED;
        e.lane = this;
        e.name = name;
        context.events.splice(context.events.end(), begins);
        /* Our hello has the secret: it is for those that know it. */
        if (accepted)
            out.greet();
        return true;
    };
    user.place = [this](const zcl_frame_t &frame) -> void * {
        return context.params.place ? context.params.place(context.params.arg, this, &frame)
                                    : nullptr;
    };
    user.arrived = [this](const zcl_frame_t &frame, void *data, bool landed) {
        zcl_event_t e{};
        e.type = ZCL_EVENT_ARRIVED;
        e.lane = this;
        e.name = name;
        e.frame = frame;
        e.data = data;
        e.landed = landed;
        context.events.push_back(e);
        context.stats.frames_arrived++;
        context.stats.bytes_arrived += frame.len;
    };
}

zcl_context::zcl_context(const zcl_params_t &given) : params(given), fork_epoch(fork_count())
{
    if (params.local) {
        std::memcpy(&local, params.local, params.local_len);
    } else {
        sockaddr_in loopback{};
        loopback.sin_family = AF_INET;
        loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::memcpy(&local, &loopback, sizeof loopback);
        params.local_len = sizeof loopback;
    }
    params.local = nullptr;
    if (params.interface)
        interface = params.interface;
    hello.magic = kHelloMagic;
    hello.version = kVersion;
    hello.name = params.name;
    std::memcpy(hello.secret, params.secret, sizeof hello.secret);
    params.secret = nullptr;
}

zcl_context::~zcl_context()
{
    /* A child of fork(2) has the ring's and the sockets' descriptors, and no thread. */
    if (forked()) {
        static_cast<void>(server.release());
        for (auto &lane : lanes)
            static_cast<void>(lane->served.release());
        return;
    }
    if (server) {
        /* Its thread would remove lanes of strangers meanwhile. */
        server->stop();
        std::lock_guard<std::mutex> guard(lock);
        for (auto &lane : lanes)
            if (lane->state != zcl_lane_state::broken) {
                server->withdraw(*lane);
                /* Not left to the descriptor: a child may have another. */
                shutdown(lane->fd.get(), SHUT_RDWR);
            }
    }
    server.reset();
}

bool zcl_context::forked() const
{
    return forks.load(std::memory_order_relaxed) != fork_epoch;
}

void zcl_context::log(const char *what, int error) const
{
    char line[160];
    if (error)
        std::snprintf(line, sizeof line, "%s: %s", what, std::strerror(error));
    if (params.log)
        params.log(params.arg, error ? line : what);
}

const inbound::spans *zcl_context::plan(zcl_lane &lane, std::size_t tail)
{
    try {
        return &lane.in.plan(tail);
    } catch (const std::bad_alloc &) {
        fail(lane, -ENOMEM);
        return nullptr;
    }
}

int zcl_context::start()
{
    listener = owned_fd(socket(local.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int fd = listener.get();
    if (fd < 0 ||
        (!interface.empty() && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                                          static_cast<socklen_t>(interface.size() + 1)) < 0) ||
        bind(fd, reinterpret_cast<const sockaddr *>(&local), params.local_len) < 0 ||
        listen(fd, 1024) < 0)
        return -errno;

    if (params.way == ZCL_WAY_CALLER) {
        server = make_epoll_server(*this, false);
        stats.way = ZCL_WAY_CALLER;
        return server->start();
    }
    if (params.way != ZCL_WAY_THREAD) {
        server = make_uring_server(*this);
        const int error = server->start();
        if (error == 0) {
            stats.way = ZCL_WAY_URING;
            return 0;
        }
        if (params.way == ZCL_WAY_URING)
            return error;
        stats.uring_error = error;
        log("lanes are served by a thread: io_uring", -error);
    }
    server = make_epoll_server(*this, true);
    stats.way = ZCL_WAY_THREAD;
    return server->start();
}

zcl_lane *zcl_context::add(owned_fd socket, bool accepted, const unsigned char *secret)
{
    zcl::hello first = hello;
    if (secret)
        std::memcpy(first.secret, secret, sizeof first.secret);
    prepare(socket.get());
    lanes.push_back(std::make_unique<zcl_lane>(*this, std::move(socket), accepted, first));
    nr_opening++;
    zcl_lane *lane = lanes.back().get();
    try {
        server->add(*lane);
    } catch (const std::bad_alloc &) {
        nr_opening--;
        lanes.pop_back();
        throw;
    }
    return lane;
}

/* Makes room if too many wait to prove themselves. False: none of them has had time to. */
bool zcl_context::make_room()
{
    const auto now = zcl::clock::now();
    std::size_t waiting = 0;
    zcl_lane *oldest = nullptr;
    for (auto &lane : lanes)
        if (lane->accepted && lane->state == zcl_lane_state::opening) {
            waiting++;
            if (!oldest || lane->deadline < oldest->deadline)
                oldest = lane.get();
        }
    if (waiting < kMostStrangers)
        return true;
    const auto since = oldest->deadline - std::chrono::milliseconds(params.hello_timeout_ms);
    if (now - since < kLeastTime)
        return false;
    fail(*oldest, -ETIMEDOUT);
    return true;
}

void zcl_context::accept_all()
{
    while (accepting()) {
        if (nr_opening >= kMostStrangers && !make_room()) {
            accept_again = zcl::clock::now() + kFullPause;
            return;
        }
        owned_fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd.get() < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                if (!std::exchange(told_of_descriptors, true))
                    log("cannot accept a lane, and tries again", errno);
                accept_again = zcl::clock::now() + kAcceptPause;
            }
            return;
        }
        try {
            add(std::move(fd), true, nullptr);
        } catch (const std::bad_alloc &) {
            log("cannot accept a lane", ENOMEM);
        }
    }
}

void zcl_context::fail(zcl_lane &lane, int status)
{
    if (lane.state == zcl_lane_state::broken)
        return;
    const bool opening = lane.state == zcl_lane_state::opening;
    lane.state = zcl_lane_state::broken;
    server->withdraw(lane);
    /* Not left to the descriptor: a child may have another. */
    shutdown(lane.fd.get(), SHUT_RDWR);
    lane.fd = owned_fd();
    if (opening)
        nr_opening--;
    if (opening && lane.accepted) {
        stats.strangers++;
        lane.stranger = true;
        nr_sent_away++;
        if (!std::exchange(told_of_strangers, true))
            log("a stranger was sent away; of further ones only the statistics tell");
        return;
    }
    /* The cause is reported once, to the first call that asks; the other gets EPIPE. */
    if (lane.send_error && (status == 0 || (opening && lane.send_error != -EPIPE)))
        status = lane.send_error;
    drop_unsent(lane, status ? status : -ECONNRESET);
    zcl_event_t &e = lane.ends.front();
    e.type = ZCL_EVENT_BROKEN;
    e.status = status;
    e.lane = &lane;
    e.name = lane.name;
    events.splice(events.end(), lane.ends);
    server->happened();
}

void zcl_context::tell_sent(zcl_lane &lane, outbound::item &i, int status)
{
    zcl_event_t &e = i.told.front();
    e.type = ZCL_EVENT_SENT;
    e.status = status;
    e.lane = &lane;
    e.name = lane.name;
    e.token = i.token;
    e.frame = {i.head.id, i.head.len, i.head.page_class, i.head.tag};
    events.splice(events.end(), i.told);
}

void zcl_context::drop_unsent(zcl_lane &lane, int status)
{
    lane.out.drop([&](outbound::item &i) { tell_sent(lane, i, status); });
}

void zcl_context::send_failed(zcl_lane &lane, int status)
{
    lane.send_error = status;
    drop_unsent(lane, status);
}

void zcl_context::remove(zcl_lane &lane)
{
    if (lane.state != zcl_lane_state::broken) {
        server->withdraw(lane);
        if (lane.state == zcl_lane_state::opening)
            nr_opening--;
        lane.state = zcl_lane_state::broken;
        shutdown(lane.fd.get(), SHUT_RDWR);
    }
    gone.direct += lane.in.counts().direct;
    gone.landed += lane.in.counts().landed;
    gone.moved += lane.in.counts().moved;
    std::erase_if(events, [&](const zcl_event_t &e) { return e.lane == &lane; });
    std::erase_if(lanes, [&](const auto &l) { return l.get() == &lane; });
}

bool zcl_context::received(zcl_lane &lane, ssize_t n, int error)
{
    if (lane.state == zcl_lane_state::broken)
        return false;
    if (n < 0) {
        if (error != EAGAIN && error != EINTR)
            fail(lane, -error);
        return false;
    }
    if (n == 0) {
        fail(lane, lane.in.within() ? -ECONNRESET : 0);
        return false;
    }
    const bool greeting = lane.in.greeting();
    try {
        if (lane.in.consumed(static_cast<std::size_t>(n)))
            return true;
        fail(lane, greeting ? -EACCES : -EPROTO);
    } catch (const std::bad_alloc &) {
        fail(lane, -ENOMEM);
    }
    return false;
}

void zcl_context::sweep()
{
    for (std::size_t i = 0; nr_sent_away > 0 && i < lanes.size();) {
        if (lanes[i]->stranger) {
            remove(*lanes[i]);
            nr_sent_away--;
        } else {
            i++;
        }
    }
}

void zcl_context::sent(zcl_lane &lane, std::size_t bytes)
{
    lane.out.consumed(bytes, [&](outbound::item &i) {
        tell_sent(lane, i, 0);
        stats.frames_sent++;
        stats.bytes_sent += i.head.len;
    });
}

std::size_t zcl_context::share() const
{
    const std::size_t fair = params.budget_bytes / std::max<std::size_t>(lanes.size(), 1);
    return std::min(params.landing_bytes, std::max(fair, kLeastShare));
}

zcl::clock::time_point zcl_context::check_deadlines()
{
    auto next = zcl::clock::time_point::max();
    if (accept_again > zcl::clock::now())
        next = accept_again;
    if (nr_opening > 0) {
        const auto now = zcl::clock::now();
        for (std::size_t i = 0; i < lanes.size(); i++) {
            if (lanes[i]->state != zcl_lane_state::opening)
                continue;
            if (lanes[i]->deadline <= now)
                fail(*lanes[i], -ETIMEDOUT);
            else
                next = std::min(next, lanes[i]->deadline);
        }
    }
    return next;
}

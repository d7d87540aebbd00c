/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_context.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>

using namespace zcl;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kConnectTries = 3; /* after the first: 15 to 20 s */

/* Fields beyond the caller's size stay as they are here: zero. */
bool read_params(const zcl_params_t *given, zcl_params_t *p)
{
    if (!given || given->size < offsetof(zcl_params_t, local) || given->size > 4096)
        return false;
    std::memcpy(p, given, std::min(given->size, sizeof *p));
    if (p->hello_timeout_ms == 0)
        p->hello_timeout_ms = 5000;
    if (p->landing_bytes == 0)
        p->landing_bytes = std::size_t{64} << 20;
    if (p->budget_bytes == 0)
        p->budget_bytes = std::size_t{256} << 20;
    const bool local_is_good = !p->local || (p->local_len >= sizeof(sa_family_t) &&
                                             p->local_len <= sizeof(sockaddr_storage));
    return p->secret && p->way >= ZCL_WAY_AUTO && p->way <= ZCL_WAY_CALLER && local_is_good &&
           p->landing_bytes >= ZCL_PAGE && p->landing_bytes < SIZE_MAX / 2;
}

bool good(const zcl_frame_t *frame)
{
    return frame && frame->len <= kLongest &&
           (frame->page_class < ZCL_PAGE || frame->page_class == ZCL_CLASS_NONE);
}

/* Nothing thrown crosses the C interface: memory is all that can fail. */
template <typename F>
int guarded(F f)
{
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

} // namespace

const char *zcl_way_name(zcl_way_t way) ZCL_NOEXCEPT
{
    switch (way) {
    case ZCL_WAY_AUTO:
        return "auto";
    case ZCL_WAY_URING:
        return "uring";
    case ZCL_WAY_THREAD:
        return "thread";
    case ZCL_WAY_CALLER:
        return "caller";
    }
    return "unknown";
}

int zcl_create(const zcl_params_t *params, zcl_t **out) ZCL_NOEXCEPT
{
    zcl_params_t p{};
    if (!out || !read_params(params, &p))
        return -EINVAL;
    return guarded([&] {
        auto context = std::make_unique<zcl_context>(p);
        const int error = context->start();
        if (error == 0)
            *out = context.release();
        return error;
    });
}

void zcl_destroy(zcl_t *context) ZCL_NOEXCEPT
{
    delete context;
}

int zcl_address(const zcl_t *context, struct sockaddr *address, socklen_t *len) ZCL_NOEXCEPT
{
    if (!context || !address || !len)
        return -EINVAL;
    if (context->forked())
        return -ECHILD;
    sockaddr_storage found{};
    socklen_t found_len = sizeof found;
    if (getsockname(context->listener.get(), reinterpret_cast<sockaddr *>(&found), &found_len) < 0)
        return -errno;
    if (*len < found_len)
        return -EINVAL;
    std::memcpy(address, &found, found_len);
    *len = found_len;
    return 0;
}

int zcl_descriptor(const zcl_t *context) ZCL_NOEXCEPT
{
    if (!context)
        return -EINVAL;
    if (context->forked())
        return -ECHILD;
    return context->server->descriptor();
}

int zcl_connect(zcl_t *context, const struct sockaddr *address, socklen_t len,
                const unsigned char *secret, zcl_lane_t **out) ZCL_NOEXCEPT
{
    if (!context || !address || !out || len > sizeof(sockaddr_storage))
        return -EINVAL;
    if (context->forked())
        return -ECHILD;
    return guarded([&] {
        owned_fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (fd.get() < 0)
            return -errno;
        sockaddr_storage from = context->local;
        auto *from4 = reinterpret_cast<sockaddr_in *>(&from);
        auto *from6 = reinterpret_cast<sockaddr_in6 *>(&from);
        if (from.ss_family == AF_INET)
            from4->sin_port = 0;
        else if (from.ss_family == AF_INET6)
            from6->sin6_port = 0;
        const std::string &device = context->interface;
        /* A local port may serve connections to several peers: there are only some 28,000. And a
         * peer that drops packets is given up after 20 s, not after two minutes. */
        const int on = 1;
        setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        setsockopt(fd.get(), IPPROTO_TCP, TCP_SYNCNT, &kConnectTries, sizeof kConnectTries);
        if ((!device.empty() && setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.c_str(),
                                           static_cast<socklen_t>(device.size() + 1)) < 0) ||
            bind(fd.get(), reinterpret_cast<sockaddr *>(&from), context->params.local_len) < 0 ||
            (connect(fd.get(), address, len) < 0 && errno != EINPROGRESS))
            return -errno;
        std::lock_guard<std::mutex> guard(context->lock);
        *out = context->add(std::move(fd), false, secret);
        return 0;
    });
}

int zcl_send(zcl_lane_t *lane, const zcl_frame_t *frame, const void *data, void *token) ZCL_NOEXCEPT
{
    if (!lane || !good(frame) || (frame->len > 0 && !data))
        return -EINVAL;
    if (lane->context.forked())
        return -ECHILD;
    return guarded([&] {
        std::lock_guard<std::mutex> guard(lane->context.lock);
        if (lane->state == zcl_lane_state::broken || lane->send_error)
            return -EPIPE;
        lane->out.push(*frame, data, token);
        /* From here on its event tells. */
        try {
            lane->context.server->send(*lane);
        } catch (const std::bad_alloc &) {
            lane->context.fail(*lane, -ENOMEM);
        }
        return 0;
    });
}

int zcl_expect(zcl_lane_t *lane, const zcl_frame_t *frame, void *buf) ZCL_NOEXCEPT
{
    if (!lane || !good(frame) || frame->page_class != ZCL_CLASS_NONE || (frame->len > 0 && !buf))
        return -EINVAL;
    if (lane->context.forked())
        return -ECHILD;
    return guarded([&] {
        std::lock_guard<std::mutex> guard(lane->context.lock);
        if (lane->state == zcl_lane_state::broken)
            return -EPIPE;
        lane->in.expect(*frame, buf);
        lane->context.server->receive(*lane);
        return 0;
    });
}

int zcl_poll(zcl_t *context, zcl_event_t *events, int max, int64_t timeout_ns) ZCL_NOEXCEPT
{
    if (!context || !events || max < 1)
        return -EINVAL;
    if (context->forked())
        return -ECHILD;
    return guarded([&] {
        std::unique_lock<std::mutex> held(context->lock);
        const auto begin = zcl::clock::now();
        int status = 0;
        context->server->serve();
        while (context->events.empty() && timeout_ns != 0 && status == 0) {
            int64_t left = 3600 * kSecond;
            const int64_t gone = std::chrono::nanoseconds(zcl::clock::now() - begin).count();
            if (timeout_ns > 0 && (left = timeout_ns - gone) <= 0)
                break;
            status = context->server->wait(held, left);
        }
        int nr = 0;
        for (; nr < max && !context->events.empty(); nr++) {
            events[nr] = context->events.front();
            context->events.pop_front();
        }
        return nr > 0 ? nr : status;
    });
}

int zcl_release(zcl_lane_t *lane, void *data) ZCL_NOEXCEPT
{
    if (!lane)
        return -EINVAL;
    if (lane->context.forked())
        return -ECHILD;
    return guarded([&] {
        std::lock_guard<std::mutex> guard(lane->context.lock);
        if (!lane->in.release(data))
            return -EINVAL;
        if (lane->state != zcl_lane_state::broken)
            lane->context.server->receive(*lane);
        return 0;
    });
}

int zcl_close(zcl_lane_t *lane) ZCL_NOEXCEPT
{
    if (!lane)
        return 0;
    zcl_context &context = lane->context;
    if (context.forked())
        return -ECHILD;
    std::lock_guard<std::mutex> guard(context.lock);
    context.remove(*lane);
    return 0;
}

int zcl_stats(const zcl_t *context, zcl_stats_t *stats) ZCL_NOEXCEPT
{
    if (!context || !stats || stats->size < sizeof(size_t))
        return -EINVAL;
    if (context->forked())
        return -ECHILD;
    std::lock_guard<std::mutex> guard(const_cast<zcl_t *>(context)->lock);
    zcl_stats_t now = context->stats;
    inbound_counts all = context->gone;
    for (const auto &lane : context->lanes) {
        all.direct += lane->in.counts().direct;
        all.landed += lane->in.counts().landed;
        all.moved += lane->in.counts().moved;
        now.lanes_now += lane->state == zcl_lane_state::open;
    }
    now.bytes_direct = all.direct;
    now.bytes_landed = all.landed;
    now.bytes_moved = all.moved;
    now.size = stats->size;
    std::memcpy(stats, &now, std::min(stats->size, sizeof now));
    return 0;
}

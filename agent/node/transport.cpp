/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <vector>

#include <fmt/format.h>

#include "message.h"

namespace zc::agent {
namespace {

constexpr int kQueue = 64;              /* messages waiting for one peer */
constexpr nanos kIdle = 900 * kSecond;  /* an unused socket is closed */
constexpr std::size_t kMostPeers = 400; /* two descriptors each, with what they send us */

/* Close dead connections soon, so that what comes after a cut goes over a new one. */
constexpr int kUserTimeout = 4000; /* ms, TCP_USER_TIMEOUT */

void set(void *socket, int option, int value)
{
    if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
        throw transport_error(
            fmt::format("ZeroMQ option {}: {}", option, zmq_strerror(zmq_errno())));
}

void set(void *socket, int option, const std::string &value)
{
    if (zmq_setsockopt(socket, option, value.data(), value.size()) != 0)
        throw transport_error(
            fmt::format("ZeroMQ option {}: {}", option, zmq_strerror(zmq_errno())));
}

} // namespace

transport::transport(const std::string &listen, const key_pair &keys, std::size_t most_inbound)
    : keys_(keys), most_inbound_(most_inbound)
{
    rlimit most{};
    if (getrlimit(RLIMIT_NOFILE, &most) == 0)
        most_inbound_ = std::min<std::size_t>(most_inbound_, most.rlim_cur / 2);
    context_ = zmq_ctx_new();
    zmq_ctx_set(context_, ZMQ_MAX_SOCKETS,
                2 * static_cast<int>(kMostPeers)); /* closed ones live on for a moment */
    try {
        /* The handler of authentication must listen before any socket does (ZeroMQ RFC 27). */
        door_.emplace(context_, keys_.public_key);
        inbox_ = open_or_throw(ZMQ_PULL);
        set(inbox_, ZMQ_CURVE_SERVER, 1);
        set(inbox_, ZMQ_CURVE_SECRETKEY, keys_.secret_key);
        set(inbox_, ZMQ_ZAP_DOMAIN, "zcmd");
        set(inbox_, ZMQ_RCVHWM, 1000);
        set(inbox_, ZMQ_HANDSHAKE_IVL, 5000);
        int64_t longest = kMaxProbe;
        zmq_setsockopt(inbox_, ZMQ_MAXMSGSIZE, &longest, sizeof longest);
        zmq_socket_monitor(inbox_, "inproc://monitor",
                           ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_LISTENING |
                               ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
        monitor_ = open_or_throw(ZMQ_PAIR);
        zmq_connect(monitor_, "inproc://monitor");
        if (zmq_bind(inbox_, listen.c_str()) != 0)
            throw transport_error(fmt::format(
                "cannot listen at {}: {}{}", listen, zmq_strerror(zmq_errno()),
                zmq_errno() == EADDRINUSE
                    ? ". If an agent of yours runs here already (zcctl nodes), that is all it "
                      "takes; if the port belongs "
                      "to another program, choose another for agent.listen, the same on all nodes"
                    : ""));
        std::array<char, 256> name{};
        std::size_t size = name.size();
        zmq_getsockopt(inbox_, ZMQ_LAST_ENDPOINT, name.data(), &size);
        endpoint_ = name.data();
    } catch (...) {
        for (void *socket : {inbox_, monitor_}) {
            if (socket != nullptr)
                zmq_close(socket);
        }
        door_.reset();
        zmq_ctx_term(context_);
        throw;
    }
}

transport::~transport()
{
    for (auto &[address, peer] : peers_)
        zmq_close(peer.socket);
    zmq_socket_monitor(inbox_, nullptr, 0);
    zmq_close(monitor_);
    zmq_close(inbox_);
    door_.reset();
    zmq_ctx_term(context_);
}

void *transport::open(int type)
{
    void *socket = zmq_socket(context_, type);
    int linger = 0;
    if (socket != nullptr)
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    return socket;
}

void *transport::open_or_throw(int type)
{
    void *socket = open(type);
    if (socket == nullptr)
        throw transport_error(fmt::format("no socket: {}", zmq_strerror(zmq_errno())));
    return socket;
}

/** The one that has not been used for longest, whose place another needs. */
void transport::close_oldest()
{
    auto oldest = std::min_element(peers_.begin(), peers_.end(), [](const auto &a, const auto &b) {
        return a.second.used < b.second.used;
    });
    if (oldest != peers_.end()) {
        zmq_close(oldest->second.socket);
        peers_.erase(oldest);
    }
}

/** nullptr: no way there. */
void *transport::connect(nanos now, const std::string &address)
{
    if (!address.starts_with("tcp://"))
        return nullptr;
    if (peers_.size() >= kMostPeers)
        close_oldest();
    void *socket = open(ZMQ_PUSH);
    if (socket == nullptr) {
        /* No descriptors: the next one will have some. Not at once, as ZeroMQ closes in the
         * background. */
        if (now - made_room_ > kSecond) {
            made_room_ = now;
            close_oldest();
        }
        return nullptr;
    }
    set(socket, ZMQ_CURVE_SERVERKEY, keys_.public_key);
    set(socket, ZMQ_CURVE_PUBLICKEY, keys_.public_key);
    set(socket, ZMQ_CURVE_SECRETKEY, keys_.secret_key);
    set(socket, ZMQ_SNDHWM, kQueue);
    set(socket, ZMQ_RECONNECT_IVL, 200);
    set(socket, ZMQ_RECONNECT_IVL_MAX, 2000);
    set(socket, ZMQ_CONNECT_TIMEOUT, 2000);
    set(socket, ZMQ_TCP_MAXRT, kUserTimeout);
    if (zmq_connect(socket, address.c_str()) != 0) {
        zmq_close(socket);
        return nullptr;
    }
    return socket;
}

void transport::send(nanos now, const std::string &address, const std::string &bytes)
{
    auto at = peers_.find(address);
    if (at == peers_.end()) {
        void *socket = connect(now, address);
        if (socket == nullptr) {
            dropped_++;
            return;
        }
        at = peers_.emplace(address, peer_socket{socket, now}).first;
    }
    at->second.used = now;
    if (zmq_send(at->second.socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT) < 0)
        dropped_++;
}

bool transport::receive(std::string &bytes)
{
    std::vector<std::string> parts = receive_parts(inbox_);
    if (parts.empty())
        return false;
    /* We send one part; more are joined and will not decode. */
    bytes = std::move(parts[0]);
    for (std::size_t i = 1; i < parts.size(); i++)
        bytes += parts[i];
    return true;
}

void transport::read_monitor()
{
    for (;;) {
        std::vector<std::string> event = receive_parts(monitor_);
        if (event.empty())
            return;
        std::uint16_t kind = 0;
        if (event[0].size() >= 2)
            std::memcpy(&kind, event[0].data(), sizeof kind);
        std::uint32_t value = 0;
        if (event[0].size() >= sizeof kind + sizeof value)
            std::memcpy(&value, event[0].data() + sizeof kind, sizeof value);
        count_inbound(kind, static_cast<int>(value));
        /* Refusals by key are counted at the door. */
        if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
            kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            strangers_++;
    }
}

/**
 * ZeroMQ takes whatever connects. When there are too many the kernel is told to drop what comes to
 * the listening socket, so that peers that want to connect try again by themselves.
 */
void transport::count_inbound(std::uint16_t kind, int fd)
{
    if (kind == ZMQ_EVENT_LISTENING)
        listener_ = fd;
    else if (kind == ZMQ_EVENT_ACCEPTED)
        inbound_.insert(fd);
    else if (kind == ZMQ_EVENT_DISCONNECTED)
        inbound_.erase(fd);
    if (listener_ < 0)
        return;
    if (!full_ && inbound_.size() >= most_inbound_) {
        sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
        const sock_fprog filter{1, nothing};
        full_ = setsockopt(listener_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
    } else if (full_ && inbound_.size() < most_inbound_ - most_inbound_ / 4) {
        const int unused = 0;
        full_ = setsockopt(listener_, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) != 0;
    }
}

void transport::tidy(nanos now)
{
    for (auto at = peers_.begin(); at != peers_.end();) {
        if (now - at->second.used > kIdle) {
            zmq_close(at->second.socket);
            at = peers_.erase(at);
        } else {
            ++at;
        }
    }
}

} // namespace zc::agent

/* SPDX-License-Identifier: BSD-3-Clause */
#include "liveness_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "error.h"
#include "identity.h"

namespace zc::holder {
namespace {

constexpr std::chrono::seconds kLongest{20000}; /* the kernel takes no more than 32767 */

/** Bound to all addresses of @family, and IPv6's is for IPv4 as well; none, and errno: it cannot
 * be. */
descriptor bound(int family)
{
    descriptor made{socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const int off = 0;
    sockaddr_in6 six{};
    sockaddr_in four{};
    six.sin6_family = AF_INET6;
    four.sin_family = AF_INET;
    const bool is_six = family == AF_INET6;
    if (made.fd < 0 ||
        (is_six && setsockopt(made.fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
        bind(made.fd,
             is_six ? reinterpret_cast<const sockaddr *>(&six)
                    : reinterpret_cast<const sockaddr *>(&four),
             is_six ? sizeof six : sizeof four) != 0)
        return {};
    return made;
}

std::size_t most_connections()
{
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur / 2;
}

/** A client whose host is gone is forgotten. */
void ask_for_probes(int fd, std::chrono::seconds patience)
{
    const int on = 1, probes = 3, half = std::max(1, static_cast<int>(patience.count() / 2)),
              between = std::max(1, half / probes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &half, sizeof half);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

} // namespace

liveness_server::liveness_server(loop &events, std::chrono::seconds patience)
    : loop_(events), patience_(std::min<std::chrono::seconds>(patience, kLongest)),
      token_(draw_identity()), socket_(bound(AF_INET6)), epoll_(epoll_create1(EPOLL_CLOEXEC)),
      most_(most_connections())
{
    if (socket_.fd < 0)
        socket_ = bound(AF_INET);
    sockaddr_in6 where{}; /* the port is at the same place in both */
    socklen_t length = sizeof where;
    if (epoll_.fd < 0 || socket_.fd < 0 || ::listen(socket_.fd, SOMAXCONN) != 0 ||
        getsockname(socket_.fd, reinterpret_cast<sockaddr *>(&where), &length) != 0)
        throw_errno(errno, "a socket for processes of other worlds");
    port_ = ntohs(where.sin6_port);
    loop_.watch(epoll_.fd, POLLIN, [this] { look_at_clients(); });
    listen();
}

liveness_server::~liveness_server()
{
    loop_.forget(socket_.fd);
    loop_.forget(epoll_.fd);
    for (const int client : clients_)
        close(client);
}

std::string liveness_server::order() const
{
    return fmt::format("LIVES {} {:x} {}", port_, token_, patience_.count());
}

void liveness_server::listen()
{
    loop_.watch(socket_.fd, POLLIN, [this] { accept(); });
}

void liveness_server::accept()
{
    const int client = accept4(socket_.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) {
        /* Without descriptors or memory it would be called again at once; until a client has gone
         * the kernel keeps those that connect. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            loop_.forget(socket_.fd);
        return;
    }
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = client;
    if (clients_.size() >= most_ || epoll_ctl(epoll_.fd, EPOLL_CTL_ADD, client, &wanted) != 0) {
        close(client);
        return;
    }
    clients_.insert(client);
    ask_for_probes(client, patience_);
    if (send(client, &token_, sizeof token_, MSG_NOSIGNAL) != sizeof token_)
        forget(client);
}

void liveness_server::look_at_clients()
{
    std::array<epoll_event, 64> ready;
    const int nr = epoll_wait(epoll_.fd, ready.data(), ready.size(), 0);
    for (int i = 0; i < nr; i++) {
        char byte;
        const int client = ready[static_cast<std::size_t>(i)].data.fd;
        if (recv(client, &byte, sizeof byte, 0) >= 0 || (errno != EAGAIN && errno != EINTR))
            forget(client);
    }
}

void liveness_server::forget(int client)
{
    clients_.erase(client);
    close(client);
    listen();
}

} // namespace zc::holder

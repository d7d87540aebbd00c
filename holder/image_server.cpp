/* SPDX-License-Identifier: BSD-3-Clause */
#include "image_server.h"

#include <arpa/inet.h>
#include <cerrno>
#include <exception>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include <spdlog/spdlog.h>

#include "error.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

constexpr int kBacklog = 64;
constexpr auto kNoDescriptors = 100ms;
constexpr std::uint64_t kMostWarnings = 8;
constexpr std::size_t kAtOnce = 256 << 10; /* bytes of one call */
constexpr std::size_t kOfTurn = kAtOnce;   /* what is used at once is in the cache still */
/* A sender waits for room only when its window is nearly full. */
constexpr std::uint64_t kWorthTelling = 1 << 20;

std::string name_of(const sockaddr_in &one)
{
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &one.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(one.sin_port));
}

} // namespace

image_server::image_server(loop &events, const std::string &address, const tls_key &key)
    : loop_(events), context_(tls_context::end::SERVER, key),
      listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))
{
    sockaddr_in at{};
    at.sin_family = AF_INET;
    socklen_t size = sizeof at;
    if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1)
        throw error(EINVAL, address + " is no address for an image");
    if (listening_.fd < 0 ||
        bind(listening_.fd, reinterpret_cast<const sockaddr *>(&at), sizeof at) != 0 ||
        listen(listening_.fd, kBacklog) != 0 ||
        getsockname(listening_.fd, reinterpret_cast<sockaddr *>(&at), &size) != 0)
        throw_errno(errno, "cannot listen at " + address);
    endpoint_ = "tcp://" + name_of(at);
    loop_.watch(listening_.fd, POLLIN, [] {});
}

image_server::~image_server()
{
    drop();
    for (const guest &each : guests_)
        loop_.forget(each.connection->fd());
    loop_.forget(listening_.fd);
}

void image_server::accept()
{
    if (listen_at_) {
        if (clock::now() < *listen_at_)
            return;
        listen_at_.reset();
        loop_.watch(listening_.fd, POLLIN, [] {});
    }
    for (std::size_t some = 0; some < kMostGuests; some++) {
        sockaddr_in from{};
        socklen_t size = sizeof from;
        descriptor socket{accept4(listening_.fd, reinterpret_cast<sockaddr *>(&from), &size,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (socket.fd < 0 &&
            (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            /* They stay in the backlog, and poll(2) would tell of them all the time. */
            loop_.forget(listening_.fd);
            listen_at_ = clock::now() + kNoDescriptors;
            return;
        }
        if (socket.fd < 0 && errno == EAGAIN)
            return;
        if (socket.fd < 0)
            continue; /* it has gone already */
        const int on = 1;
        setsockopt(socket.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        try {
            guests_.push_back({clock::now(),
                               std::make_unique<tls_connection>(context_, std::move(socket)),
                               name_of(from)});
        } catch (const std::exception &) {
            continue; /* there is no memory for it now: it comes again */
        }
        if (guests_.size() > kMostGuests) {
            refuse(guests_.front(), "others came after it");
            guests_.pop_front();
        }
    }
}

void image_server::refuse(const guest &one, const std::string &why)
{
    loop_.forget(one.connection->fd());
    if (++refused_ <= kMostWarnings)
        spdlog::warn("a connection for the image, from {}, is refused: {}{}", one.from, why,
                     refused_ == kMostWarnings ? "; further ones are not told of" : "");
}

void image_server::receive_guests()
{
    for (auto each = guests_.begin(); each != guests_.end();) {
        const auto one = each++;
        one->connection->shake_hands();
        if (one->connection->now() == tls_connection::state::OPEN) {
            adopt(std::move(one->connection));
            guests_.erase(one);
        } else if (one->connection->now() == tls_connection::state::CLOSED) {
            refuse(*one, one->connection->why().empty() ? "it has ended" : one->connection->why());
            guests_.erase(one);
        } else if (clock::now() - one->came > kGuestPatience) {
            refuse(*one, "it has not shown the key");
            guests_.erase(one);
        } else {
            loop_.watch(one->connection->fd(), one->connection->events(), [] {});
        }
    }
}

void image_server::drop()
{
    if (connection_)
        loop_.forget(connection_->fd());
    connection_.reset();
    said_.clear();
    has_more_ = false;
}

void image_server::adopt(std::unique_ptr<tls_connection> one)
{
    drop();
    connection_ = std::move(one);
    tell(in_.expected());
}

/** Bytes that the owner has not used wait in the socket, and the sender with them. */
void image_server::receive()
{
    has_more_ = true;
    for (std::size_t got = 0; got < kOfTurn;) {
        if (in_.bytes().size() >= kOfTurn)
            return;
        const std::size_t bytes = connection_->read(in_.room(kAtOnce), kAtOnce);
        if (bytes == 0) {
            has_more_ = false;
            return;
        }
        in_.came(bytes);
        got += bytes;
    }
}

/** Or later, when the other reads again. */
void image_server::tell(std::uint64_t offset)
{
    if (!said_.empty())
        return;
    told_ = offset;
    for (unsigned shift = 64; shift > 0; shift -= 8)
        said_ += static_cast<char>(told_ >> (shift - 8));
    sign_ = clock::now();
    flush();
}

void image_server::flush()
{
    said_.erase(0, connection_->write(said_));
    connection_->flush();
}

void image_server::acknowledge()
{
    const std::uint64_t used = in_.used();
    if (connection_ && (used >= told_ + kWorthTelling || (used > told_ && !has_more_)))
        tell(used);
}

void image_server::pump()
{
    accept();
    receive_guests();
    if (!connection_)
        return;
    flush();
    if (clock::now() - sign_ > image_protocol::kSign)
        tell(in_.used());
    receive();
    acknowledge(); /* what was used before, if nothing has come since: the owner may be done */
    if (connection_->now() == tls_connection::state::CLOSED) {
        spdlog::info("the connection for the image has ended{}{}",
                     connection_->why().empty() ? "" : ": ", connection_->why());
        return drop();
    }
    loop_.watch(connection_->fd(), connection_->events(), [] {});
}

} // namespace zc::holder

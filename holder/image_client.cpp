/* SPDX-License-Identifier: BSD-3-Clause */
#include "image_client.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include "error.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstPause = 100ms, kMostPause = 1000ms;
/* RFC 8446, 5.5: 2^24.5 records of 16 KiB of AES-GCM at most are sent with one key. */
constexpr std::uint64_t kOfOneKey = std::uint64_t{1} << 37;

} // namespace

image_client::image_client(loop &events, const std::string &endpoint, const tls_key &key)
    : loop_(events), context_(tls_context::end::CLIENT, key), since_(clock::now()), heard_(since_)
{
    constexpr std::string_view kTcp = "tcp://";
    const std::size_t colon = endpoint.rfind(':');
    const char *const end = endpoint.data() + endpoint.size();
    if (!endpoint.starts_with(kTcp) || colon < kTcp.size() ||
        std::from_chars(endpoint.data() + colon + 1, end, port_).ptr != end || port_ == 0)
        throw error(EINVAL, endpoint + " is no place for an image");
    host_ = endpoint.substr(kTcp.size(), colon - kTcp.size());
    pump();
}

image_client::~image_client()
{
    if (watched_ >= 0)
        loop_.forget(watched_);
}

std::chrono::milliseconds image_client::silence() const
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - heard_);
}

void image_client::enter(state next)
{
    state_ = next;
    since_ = clock::now();
}

void image_client::fail(const std::string &why)
{
    if (watched_ >= 0)
        loop_.forget(std::exchange(watched_, -1));
    why_ = why;
    connection_.reset();
    socket_ = descriptor{};
    attempt_++;
    pause_ = std::clamp<std::chrono::milliseconds>(2 * pause_, kFirstPause, kMostPause);
    enter(state::PAUSE);
}

/** What is waited for is the state's. */
void image_client::watch()
{
    const int fd = connection_ ? connection_->fd() : socket_.fd;
    const short events = connection_ ? connection_->events() : short{POLLOUT};
    if (fd == watched_ && (fd < 0 || events == events_))
        return;
    if (watched_ >= 0 && watched_ != fd)
        loop_.forget(watched_);
    watched_ = fd;
    events_ = events;
    if (fd >= 0)
        loop_.watch(fd, events, [] {});
}

/** A host may have another address when it is looked for again. */
void image_client::begin()
{
    if (clock::now() - since_ < pause_)
        return;
    lookup_.emplace(host_, port_);
    enter(state::LOOKUP);
}

void image_client::connect()
{
    auto found = lookup_->result();
    if (!found)
        return;
    if (found->empty())
        return fail(lookup_->why());
    addresses_ = std::move(*found);
    const sockaddr_in &to = addresses_[attempt_ % addresses_.size()];
    socket_ = descriptor{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const int on = 1;
    if (socket_.fd < 0 || setsockopt(socket_.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        (::connect(socket_.fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0 &&
         errno != EINPROGRESS))
        return fail(std::strerror(errno));
    enter(state::CONNECTING);
}

void image_client::finish_connecting()
{
    pollfd ready{socket_.fd, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0)
        return;
    int code = 0;
    socklen_t size = sizeof code;
    if (getsockopt(socket_.fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0 || code != 0)
        return fail(std::strerror(code ? code : errno));
    connection_.emplace(context_, std::exchange(socket_, {}));
    offset_bytes_ = 0;
    of_this_key_ = 0;
    enter(state::HANDSHAKE);
}

/** False: the other says what cannot be. */
bool image_client::heard(std::uint64_t offset)
{
    const bool resumes = state_ == state::RESUMING;
    if (resumes ? !out_.resume(offset) : offset > out_.sent())
        return false; /* which is no sign, either: else its owner's patience would not end */
    heard_ = since_ = clock::now();
    if (resumes) {
        pause_ = {};
        why_.clear();
        enter(state::SENDING);
    } else {
        out_.acknowledge(offset);
    }
    return true;
}

void image_client::hear()
{
    while (const std::size_t got =
               connection_->read(reinterpret_cast<char *>(offset_.data()) + offset_bytes_,
                                 offset_.size() - offset_bytes_)) {
        offset_bytes_ += got;
        if (offset_bytes_ < offset_.size())
            continue;
        offset_bytes_ = 0;
        std::uint64_t offset = 0;
        for (const unsigned char byte : offset_)
            offset = offset << 8 | byte;
        if (!heard(offset))
            return fail("it says that it has what was not sent");
    }
}

void image_client::send()
{
    while (const std::size_t sent = connection_->write(out_.unsent())) {
        out_.note_sent(sent);
        of_this_key_ += sent;
        if (of_this_key_ >= kOfOneKey) {
            connection_->renew_key();
            of_this_key_ = 0;
        }
    }
    connection_->flush();
}

void image_client::pump()
{
    if (state_ == state::PAUSE)
        begin();
    if (state_ == state::LOOKUP)
        connect();
    if (state_ == state::CONNECTING)
        finish_connecting();
    if (state_ == state::HANDSHAKE) {
        connection_->shake_hands();
        if (connection_->now() == tls_connection::state::OPEN)
            enter(state::RESUMING);
    }
    if (state_ == state::RESUMING || state_ == state::SENDING)
        hear();
    if (state_ == state::SENDING)
        send();
    if (connection_ && connection_->now() == tls_connection::state::CLOSED)
        fail(connection_->why().empty() ? "the connection has ended" : connection_->why());
    else if (state_ > state::LOOKUP && clock::now() - since_ > image_protocol::kNoSign)
        fail("there is no answer");
    watch();
}

} // namespace zc::holder

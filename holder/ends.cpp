/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "error.h"
#include "line.h"

namespace zc::holder {
namespace {

constexpr std::size_t kBit = 64 << 10;
/* A pipe that can be written takes so much without waiting, though its description, which may be
 * another process's, too, has no O_NONBLOCK. */
constexpr std::size_t kPipeBit = PIPE_BUF;

} // namespace

std::string end::name() const
{
    return (is_socket ? "socket:[" : "pipe:[") + std::to_string(inode) + "]";
}

std::optional<end> end_at(int fd, stream_id stream)
{
    struct stat found;
    if (fstat(fd, &found) != 0 || !(S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)))
        return {};
    end made;
    made.stream = stream;
    made.is_socket = S_ISSOCK(found.st_mode);
    made.inode = found.st_ino;
    made.flags = fcntl(fd, F_GETFL);
    const bool both = stream == stream_id::manager || stream == stream_id::control;
    made.is_read = both || stream == stream_id::input;
    made.is_written = both || stream != stream_id::input;
    return made;
}

descriptor taken_from(pid_t pid, const end &of)
{
    const descriptor process{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))};
    std::error_code gone;
    for (const auto &entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
        std::error_code ignored;
        if (std::filesystem::read_symlink(entry, ignored) != of.name())
            continue;
        const int number = std::stoi(entry.path().filename());
        descriptor taken{static_cast<int>(syscall(SYS_pidfd_getfd, process.fd, number, 0))};
        const int mode = taken.fd < 0 ? -1 : fcntl(taken.fd, F_GETFL) & O_ACCMODE;
        /* The program may have both halves of a pipe that it had as a stream. */
        if (mode == O_RDWR || mode == (of.is_read ? O_RDONLY : O_WRONLY))
            return taken;
    }
    return {};
}

std::string peek(int fd, const end &of)
{
    int unread = 0;
    if (fd < 0 || !of.is_read || ioctl(fd, FIONREAD, &unread) != 0 || unread <= 0)
        return {};
    std::string bytes(static_cast<std::size_t>(unread), '\0');
    ssize_t got = 0;
    if (of.is_socket) {
        got = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    } else {
        int copy[2];
        if (pipe2(copy, O_CLOEXEC) != 0)
            throw_errno(errno, "pipe");
        const descriptor from{copy[0]}, to{copy[1]};
        fcntl(to.fd, F_SETPIPE_SZ, 1 << 20);
        got = tee(fd, to.fd, bytes.size(), SPLICE_F_NONBLOCK);
        got = got <= 0 ? got : read(from.fd, bytes.data(), static_cast<std::size_t>(got));
    }
    if (got != unread)
        throw error(EIO, "what the rank has not read of " + of.name() + " cannot be copied");
    return bytes;
}

nlohmann::json to_json(const end &what, const std::string &unread)
{
    return {{"stream", static_cast<int>(what.stream)},
            {"socket", what.is_socket},
            {"read", what.is_read},
            {"written", what.is_written},
            {"inode", what.inode},
            {"flags", what.flags},
            {"unread",
             nlohmann::json::binary(std::vector<std::uint8_t>(unread.begin(), unread.end()))}};
}

new_end::new_end(const nlohmann::json &before)
{
    what.stream = static_cast<stream_id>(before.at("stream").get<int>());
    what.is_socket = before.at("socket");
    what.is_read = before.at("read");
    what.is_written = before.at("written");
    what.inode = before.at("inode");
    what.flags = before.at("flags");
    int both[2];
    const int made = what.is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both)
                                    : pipe2(both, O_CLOEXEC);
    if (made != 0)
        throw_errno(errno, what.name());
    /* Of a pipe the first is read. */
    const int rank = what.is_socket || what.is_read ? 0 : 1;
    theirs = descriptor{both[rank]};
    ours = descriptor{both[1 - rank]};
    fcntl(theirs.fd, F_SETFL, what.flags & (O_NONBLOCK | O_APPEND));
    const auto &unread = before.at("unread").get_binary();
    if (!unread.empty() &&
        write(ours.fd, unread.data(), unread.size()) != static_cast<ssize_t>(unread.size()))
        throw_errno(errno, what.name());
}

/* ---- the relay ---- */

void relay::add(descriptor fd, const end &what, bool reads, bool writes)
{
    if (reads)
        streams_.out(what.stream);
    if (writes)
        streams_.in(what.stream);
    halves_.push_back({std::move(fd), what, reads, writes});
}

void relay::update()
{
    for (half &each : halves_) {
        if (each.drops)
            drop(streams_.in(each.what.stream));
        if (each.fd.fd < 0)
            continue;
        short events = 0;
        if (!stopped_ && each.reads && streams_.out(each.what.stream).room() > 0)
            events = POLLIN;
        if (!stopped_ && each.writes) {
            incoming &from = streams_.in(each.what.stream);
            if (!from.bytes().empty() || from.is_at_end())
                write_some(each);
            if (each.fd.fd >= 0 && !from.bytes().empty())
                events = static_cast<short>(events | POLLOUT);
        }
        if (each.fd.fd < 0)
            continue;
        if (events == 0) {
            loop_.forget(each.fd.fd);
            continue;
        }
        loop_.watch(each.fd.fd, events, [this, &each] {
            if (each.reads && streams_.out(each.what.stream).room() > 0)
                read_some(each);
            /* update() writes. */
        });
    }
}

bool relay::read_some(half &of)
{
    pollfd ready{of.fd.fd, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0 || !(ready.revents & (POLLIN | POLLHUP | POLLERR)))
        return false;
    std::array<char, kBit> bytes;
    const ssize_t got = read(of.fd.fd, bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got > 0) {
        streams_.out(of.what.stream).push({bytes.data(), static_cast<std::size_t>(got)});
        return true;
    }
    streams_.out(of.what.stream).end();
    loop_.forget(of.fd.fd);
    of.reads = false;
    if (!of.writes)
        of.fd = descriptor{};
    return false;
}

/** Nothing can be done with it any more. */
void relay::drop(incoming &from)
{
    from.use(from.bytes().size());
    if (from.is_at_end())
        from.use_end();
}

void relay::write_some(half &of)
{
    incoming &from = streams_.in(of.what.stream);
    while (!from.bytes().empty()) {
        const std::string_view bytes = from.bytes();
        pollfd ready{of.fd.fd, POLLOUT, 0};
        if (!of.broken &&
            (poll(&ready, 1, 0) <= 0 || !(ready.revents & (POLLOUT | POLLERR | POLLHUP))))
            return;
        const ssize_t put =
            of.broken ? static_cast<ssize_t>(bytes.size())
            : of.what.is_socket
                ? send(of.fd.fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                : write(of.fd.fd, bytes.data(), std::min(bytes.size(), kPipeBit));
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (put < 0) {
            of.broken = true;
            broken_.push_back(of.what.stream);
            continue;
        }
        from.use(static_cast<std::size_t>(put));
    }
    if (!from.is_at_end())
        return;
    from.use_end();
    of.writes = false;
    of.drops = true;
    loop_.forget(of.fd.fd);
    if (of.what.is_socket)
        shutdown(of.fd.fd, SHUT_WR);
    if (!of.reads)
        of.fd = descriptor{};
}

void relay::stop()
{
    stopped_ = true;
    for (const half &each : halves_) {
        if (each.fd.fd >= 0)
            loop_.forget(each.fd.fd);
    }
}

void relay::drain()
{
    for (half &each : halves_) {
        while (each.fd.fd >= 0 && each.reads && read_some(each))
            continue;
    }
}

std::vector<stream_id> relay::take_broken()
{
    return std::exchange(broken_, {});
}

void relay::close_reading(stream_id which)
{
    for (half &each : halves_) {
        if (each.what.stream != which || !each.reads || each.fd.fd < 0)
            continue;
        loop_.forget(each.fd.fd);
        streams_.out(which).end();
        each.reads = false;
        if (each.what.is_socket)
            shutdown(each.fd.fd, SHUT_RD);
        if (!each.writes)
            each.fd = descriptor{};
    }
}

} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent_client.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime_directory.h"

namespace zc::control {
namespace {

constexpr std::size_t kLongest = std::size_t{64} << 20;
constexpr std::chrono::seconds kPatience{10};

struct descriptor {
    int fd;
    ~descriptor()
    {
        if (fd >= 0)
            close(fd);
    }
};

/** HTTP/1.0: the answer ends where the connection does. */
std::string exchange(const std::string &path, const std::string &method, const std::string &page,
                     std::chrono::milliseconds patience)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw client_error(path + ": too long for a socket");
    path.copy(address.sun_path, path.size());
    descriptor s{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(patience).count();
    const timeval limit{micros / 1'000'000, micros % 1'000'000};
    setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* for connect(), too */
    const bool connected =
        s.fd >= 0 && connect(s.fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
    if (!connected && errno == EAGAIN) /* it listens, but so many wait that no more can */
        throw client_error(path + ": no answer in time");
    if (!connected)
        throw no_agent("no agent at " + path + ": " + std::strerror(errno) + " (is zcmd running?)");
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(s.fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
        (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0))
        throw client_error(path + " belongs to another user's process");
    std::string text = method + " " + page + " HTTP/1.0\r\nHost: zcmd\r\nContent-Length: 0\r\n\r\n";
    if (send(s.fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        throw client_error(path + ": " + std::strerror(errno));
    std::string answer;
    std::array<char, 65536> buffer;
    for (;;) {
        ssize_t got = recv(s.fd, buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            throw client_error(path + ": " +
                               (errno == EAGAIN ? "no answer in time" : std::strerror(errno)));
        if (got == 0)
            break;
        answer.append(buffer.data(), static_cast<std::size_t>(got));
        if (answer.size() > kLongest)
            throw client_error(path + ": the answer does not end");
    }
    auto body = answer.find("\r\n\r\n");
    auto code = answer.find(' ');
    if (body == std::string::npos || !answer.starts_with("HTTP/1.") || code == std::string::npos)
        throw client_error(path + ": not an agent of zc");
    if (answer[code + 1] != '2')
        throw client_error(path + ": " + page + ": no such page (another version of zcmd?)");
    return answer.substr(body + 4);
}

} // namespace

std::string default_socket()
{
    std::string first;
    char path[PATH_MAX];
    for (int n = 0; zcm_runtime_place(n, path, sizeof path) == 0; n++) {
        std::string socket = std::string(path) + "/zcmd.sock";
        struct stat s;
        if (lstat(socket.c_str(), &s) == 0 && S_ISSOCK(s.st_mode) && s.st_uid == geteuid())
            return socket;
        if (n == 0)
            first = socket;
    }
    return first;
}

std::string get(const std::string &socket, const std::string &page,
                std::chrono::milliseconds patience)
{
    return exchange(socket, "GET", page, patience);
}

void post(const std::string &socket, const std::string &command)
{
    exchange(socket, "POST", command, kPatience);
}

} // namespace zc::control

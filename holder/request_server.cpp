/* SPDX-License-Identifier: BSD-3-Clause */
#include "request_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "error.h"
#include "line.h"
#include "runtime_directory.h"

namespace zc::holder {
namespace {

constexpr std::size_t kLongest = 64 << 10;

sockaddr_un address_of(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw error(ENAMETOOLONG, path + " is too long for a socket");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

} // namespace

request_server::request_server(loop &events, std::string path, handler then,
                               std::function<void(int client)> gone)
    : loop_(events), path_(std::move(path)), then_(std::move(then)), gone_(std::move(gone)),
      socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
    const sockaddr_un address = address_of(path_);
    unlink(path_.c_str());
    const mode_t before = umask(0177);
    const int bound =
        bind(socket_.fd, reinterpret_cast<const sockaddr *>(&address), sizeof address);
    umask(before);
    if (bound != 0 || listen(socket_.fd, 8) != 0)
        throw_errno(errno, path_);
    loop_.watch(socket_.fd, POLLIN, [this] { accept(); });
}

request_server::~request_server()
{
    loop_.forget(socket_.fd);
    unlink(path_.c_str());
    while (!clients_.empty())
        close(clients_.begin()->first);
}

received receive_line(int fd, std::string &text)
{
    std::array<char, 4096> bytes;
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return received::part;
    if (got <= 0 || text.size() > kLongest)
        return received::end;
    text.append(bytes.data(), static_cast<std::size_t>(got));
    return text.find('\n') == std::string::npos ? received::part : received::line;
}

void request_server::accept()
{
    const int client = accept4(socket_.fd, nullptr, nullptr, SOCK_CLOEXEC);
    ucred peer{};
    socklen_t size = sizeof peer;
    if (client < 0)
        return;
    clients_[client];
    if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
        return close(client);
    loop_.watch(client, POLLIN, [this, client] { read(client); });
}

void request_server::read(int client)
{
    std::string &text = clients_[client];
    const received what = receive_line(client, text);
    if (what == received::part)
        return;
    const auto said = what == received::line
                          ? nlohmann::json::parse(text.substr(0, text.find('\n')), nullptr, false)
                          : nlohmann::json();
    text.clear();
    if (!said.is_object()) {
        close(client);
        return gone_(client);
    }
    try {
        then_(client, said);
    } catch (const std::exception &problem) {
        answer(client, {{"ok", false}, {"why", reason_of(problem)}});
        gone_(client);
    }
}

void request_server::answer(int client, const nlohmann::json &what)
{
    say(client, what);
    if (clients_.contains(client))
        close(client);
}

void request_server::say(int client, const nlohmann::json &what)
{
    if (!clients_.contains(client))
        return;
    const std::string text =
        what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    send(client, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void request_server::close(int client)
{
    loop_.forget(client);
    clients_.erase(client);
    ::close(client);
}

std::string request_directory()
{
    std::array<char, PATH_MAX> path{};
    if (zcm_runtime_place(0, path.data(), path.size()) != 0)
        return {};
    struct stat found;
    if (mkdir(path.data(), 0700) != 0 && errno != EEXIST)
        return {};
    if (lstat(path.data(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
        (found.st_mode & 022) != 0)
        return {};
    return path.data();
}

std::vector<std::string> request_sockets()
{
    std::vector<std::string> found;
    std::array<char, PATH_MAX> path{};
    for (int n = 0; n < ZCM_RUNTIME_PLACES && zcm_runtime_place(n, path.data(), path.size()) == 0;
         n++) {
        std::error_code none;
        for (const auto &entry : std::filesystem::directory_iterator(path.data(), none)) {
            const std::string name = entry.path().filename();
            if (name.starts_with("hold-") && name.ends_with(".sock"))
                found.push_back(entry.path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::string request_socket_of(int pid)
{
    const std::string name = "/hold-" + std::to_string(pid) + ".sock";
    for (const std::string &path : request_sockets()) {
        if (path.ends_with(name))
            return path;
    }
    return {};
}

descriptor send_request(const std::string &path, const nlohmann::json &what)
{
    /* One that is stopped takes no more after some: connect(2) would wait for it. */
    descriptor fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const sockaddr_un address = address_of(path);
    if (connect(fd.fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
        throw_errno(errno, path);
    const std::string text = what.dump() + "\n";
    if (send(fd.fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        throw_errno(errno, path);
    return fd;
}

void tell_door(int fd, const nlohmann::json &what)
{
    const std::string text = what.dump() + "\n";
    send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

bool is_answer(const nlohmann::json &said)
{
    return !said.contains("said");
}

nlohmann::json request(const std::string &path, const nlohmann::json &what, int seconds)
{
    const descriptor fd = send_request(path, what);
    std::string answer;
    pollfd ready{fd.fd, POLLIN, 0};
    while (answer.find('\n') == std::string::npos) {
        if (poll(&ready, 1, seconds * 1000) <= 0)
            throw error(ETIMEDOUT, path + " gives no answer");
        std::array<char, 4096> bytes;
        const ssize_t got = recv(fd.fd, bytes.data(), bytes.size(), 0);
        if (got <= 0)
            throw error(ECONNRESET, path + ": zc-hold has ended");
        answer.append(bytes.data(), static_cast<std::size_t>(got));
    }
    auto said = nlohmann::json::parse(answer, nullptr, false);
    if (!said.is_object())
        throw error(EBADMSG, path + ": zc-hold has answered what is no JSON");
    return said;
}

} // namespace zc::holder

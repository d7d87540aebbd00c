/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_client.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"

namespace zc::control {

std::vector<std::string> jobs_in(const std::string &directory)
{
    std::vector<std::string> jobs;
    std::error_code ignored;
    for (const auto &entry : std::filesystem::directory_iterator(directory, ignored))
        /* The agent of the node listens there as well, and the zc-hold of each rank. */
        if (const std::string name = entry.path().stem();
            entry.path().extension() == ".sock" && name != "zcmd" && !name.starts_with("hold-"))
            jobs.push_back(name);
    std::sort(jobs.begin(), jobs.end());
    return jobs;
}

std::string ask_job(const std::string &directory, const std::string &job, const std::string &line,
                    double timeout_s)
{
    using clock = std::chrono::steady_clock;
    const std::string path = directory + "/" + job + ".sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw error(ENAMETOOLONG, "name of a socket too long: " + path);
    path.copy(address.sun_path, path.size());

    struct descriptor {
        int fd;
        ~descriptor() { close(fd); }
    } connection{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (connection.fd < 0)
        throw_errno(errno, "socket");
    if (connect(connection.fd, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
        throw_errno(errno, "cannot reach job " + job + " (" + path + ")");
    const std::string sent = line + "\n";
    if (send(connection.fd, sent.data(), sent.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(sent.size()))
        throw_errno(errno, "cannot send to job " + job);

    const auto deadline = clock::now() + std::chrono::duration<double>(timeout_s);
    std::string reply;
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
        pollfd event{connection.fd, POLLIN, 0};
        const int ready =
            left > 0 ? poll(&event, 1, static_cast<int>(std::min<long>(left, 3600000))) : 0;
        if (ready == 0 && clock::now() >= deadline)
            throw error(ETIMEDOUT, "no answer from job " + job +
                                       " in time; the request may still "
                                       "be carried out");
        if (ready <= 0)
            continue;
        char buffer[4096];
        const ssize_t got = recv(connection.fd, buffer, sizeof buffer, 0);
        if (got <= 0)
            throw error(ECONNRESET, "job " + job + " went away without an answer");
        reply.append(buffer, static_cast<std::size_t>(got));
        const auto end = reply.find('\n');
        if (end != std::string::npos)
            return reply.substr(0, end);
    }
}

} // namespace zc::control

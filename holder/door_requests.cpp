/* SPDX-License-Identifier: BSD-3-Clause */
#include "door_requests.h"

#include <poll.h>
#include <utility>
#include <vector>

#include "error.h"
#include "request_server.h"

namespace zc::holder {

door_requests::~door_requests()
{
    for (const auto &[fd, one] : open_)
        loop_.forget(fd);
}

void door_requests::ask(const std::string &path, const nlohmann::json &what,
                        clock::duration patience, handler then)
{
    descriptor socket;
    try {
        socket = send_request(path, what);
    } catch (const error &) {
        return then(nullptr); /* it has ended, or was killed and has left its socket */
    }
    const int fd = socket.fd;
    open_[fd] = {std::move(socket), std::move(then), clock::now() + patience, {}};
    loop_.watch(fd, POLLIN, [this, fd] { read(fd); });
}

void door_requests::read(int fd)
{
    std::string &text = open_.at(fd).text;
    const received what = receive_line(fd, text);
    if (what == received::end)
        return end(fd, nullptr);
    if (what == received::part)
        return;
    const auto said = nlohmann::json::parse(text, nullptr, false);
    end(fd, said.is_object() ? said : nlohmann::json());
}

void door_requests::end(int fd, const nlohmann::json &said)
{
    loop_.forget(fd);
    const handler then = std::move(open_.at(fd).then);
    open_.erase(fd);
    then(said);
}

void door_requests::tick(clock::time_point now)
{
    std::vector<int> late;
    for (const auto &[fd, one] : open_) {
        if (now > one.until)
            late.push_back(fd);
    }
    for (const int fd : late)
        end(fd, nullptr);
}

} // namespace zc::holder

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

int door_requests::ask(const std::string &path, const nlohmann::json &what,
                       clock::duration patience, handler then)
{
    descriptor socket;
    try {
        socket = send_request(path, what);
    } catch (const error &) {
        then(nullptr); /* it has ended, or was killed and has left its socket */
        return -1;
    }
    const int fd = socket.fd;
    open_[fd] = {std::move(socket), std::move(then), clock::now() + patience, {}};
    loop_.watch(fd, POLLIN, [this, fd] { read(fd); });
    return fd;
}

void door_requests::tell(int which, const nlohmann::json &what)
{
    tell_door(which, what);
}

void door_requests::read(int fd)
{
    std::string &text = open_.at(fd).text;
    const received what = receive_line(fd, text);
    if (what == received::end)
        return end(fd, nullptr);
    if (what == received::part)
        return;
    /* What came before the answer may come together with it. */
    for (std::size_t line_end; (line_end = text.find('\n')) != std::string::npos;) {
        const auto said = nlohmann::json::parse(text.substr(0, line_end), nullptr, false);
        if (!said.is_object() || is_answer(said))
            return end(fd, said.is_object() ? said : nlohmann::json());
        text.erase(0, line_end + 1);
        open_.at(fd).then(said);
    }
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

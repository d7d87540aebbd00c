/* SPDX-License-Identifier: BSD-3-Clause */
#include "address_lookup.h"

#include <arpa/inet.h>
#include <exception>
#include <mutex>
#include <netdb.h>

#include "error.h"
#include "quiet_thread.h"

namespace zc::holder {

struct address_lookup::shared {
    std::mutex lock; /* of what follows */
    bool is_done = false;
    std::vector<sockaddr_in> found;
    std::string why;
};

namespace {

/** Return: why there are none, or empty. */
std::string look_up(const std::string &host, std::uint16_t port, std::vector<sockaddr_in> &found)
{
    addrinfo wanted{}, *all = nullptr;
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    if (const int code = getaddrinfo(host.c_str(), nullptr, &wanted, &all); code != 0)
        return gai_strerror(code);
    for (const addrinfo *each = all; each; each = each->ai_next) {
        found.push_back(*reinterpret_cast<const sockaddr_in *>(each->ai_addr));
        found.back().sin_port = htons(port);
    }
    freeaddrinfo(all);
    return {};
}

} // namespace

address_lookup::address_lookup(const std::string &host, std::uint16_t port)
    : shared_(std::make_shared<shared>())
{
    sockaddr_in number{};
    number.sin_family = AF_INET;
    number.sin_port = htons(port);
    if (inet_pton(AF_INET, host.c_str(), &number.sin_addr) == 1) {
        shared_->found = {number};
        shared_->is_done = true;
        return;
    }
    try {
        quiet_thread([host, port, to = shared_] {
            std::vector<sockaddr_in> found;
            std::string why;
            try {
                why = look_up(host, port, found);
            } catch (const std::exception &) { /* there is no memory, for a reason, either */
                found.clear();
            }
            const std::lock_guard guard(to->lock);
            to->found = std::move(found);
            to->why = std::move(why);
            to->is_done = true;
        }).detach();
    } catch (const std::exception &problem) {
        shared_->why = reason_of(problem);
        shared_->is_done = true;
    }
}

std::optional<std::vector<sockaddr_in>> address_lookup::result() const
{
    const std::lock_guard guard(shared_->lock);
    return shared_->is_done ? std::optional(shared_->found) : std::nullopt;
}

std::string address_lookup::why() const
{
    const std::lock_guard guard(shared_->lock);
    return shared_->why;
}

} // namespace zc::holder

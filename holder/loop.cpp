/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include <poll.h>
#include <utility>
#include <vector>

#include <zmq.h>

namespace zc::holder {

void loop::watch(int fd, short events, action then)
{
    descriptors_[fd] = {events, std::move(then)};
}

void loop::watch(void *socket, action then)
{
    sockets_[socket] = std::move(then);
}

void loop::turn(int timeout_ms)
{
    std::vector<zmq_pollitem_t> items;
    for (const auto &[fd, what] : descriptors_) {
        short wanted = ZMQ_POLLERR;
        if (what.events & POLLIN)
            wanted = static_cast<short>(wanted | ZMQ_POLLIN);
        if (what.events & POLLOUT)
            wanted = static_cast<short>(wanted | ZMQ_POLLOUT);
        items.push_back({nullptr, fd, wanted, 0});
    }
    for (const auto &[socket, then] : sockets_)
        items.push_back({socket, 0, ZMQ_POLLIN, 0});
    if (zmq_poll(items.data(), static_cast<int>(items.size()), timeout_ms) <= 0)
        return;
    /* An action may forget what another waits for. */
    for (const zmq_pollitem_t &item : items) {
        if (!item.revents)
            continue;
        action then;
        if (item.socket) {
            if (const auto found = sockets_.find(item.socket); found != sockets_.end())
                then = found->second;
        } else if (const auto found = descriptors_.find(item.fd); found != descriptors_.end()) {
            then = found->second.then;
        }
        if (then)
            then();
    }
}

} // namespace zc::holder

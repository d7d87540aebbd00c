/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_PIECES_H_INCLUDED
#define ZCL_PIECES_H_INCLUDED

#include "inbound.h"

#include <algorithm>
#include <sys/socket.h>
#include <sys/uio.h>

namespace zcl {

/** The beginning of a plan as recvmsg(2) takes it: not so long that others wait for their turn. */
struct pieces {
    static constexpr std::size_t kMost = std::size_t{4} << 20;

    explicit pieces(const inbound::spans &plan, std::size_t most = kMost)
    {
        for (const inbound::span &s : plan) {
            if (nr == std::size(at) || len == most)
                break;
            at[nr] = {s.at, std::min(s.len, most - len)};
            len += at[nr++].iov_len;
        }
        message.msg_iov = at;
        message.msg_iovlen = nr;
    }
    pieces(const pieces &) = delete;
    pieces &operator=(const pieces &) = delete;

    iovec at[2 * ZCL_EXPECT_MAX + 4];
    std::size_t nr = 0, len = 0;
    msghdr message{};
};

} // namespace zcl

#endif /* ZCL_PIECES_H_INCLUDED */

/* SPDX-License-Identifier: BSD-3-Clause */
#include "passed_descriptor.h"

#include <array>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace zc::holder {

descriptor take_passed_descriptor(int socket)
{
    char byte = 0;
    iovec content{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const cmsghdr *const passed = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    int fd = -1;
    if (passed != nullptr && passed->cmsg_type == SCM_RIGHTS)
        std::memcpy(&fd, CMSG_DATA(passed), sizeof fd);
    return descriptor{fd};
}

} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#include "passed_descriptor.h"

#include <array>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace zc::holder {

ssize_t receive_passed(int socket, void *bytes, std::size_t room, int flags, descriptor &passed)
{
    iovec content{bytes, room};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_LEN(sizeof(int)); /* no room for a second one, which would leak */
    const ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    const cmsghdr *const one = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (one != nullptr && one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(one), sizeof fd);
        passed = descriptor{fd};
    }
    return got;
}

ssize_t send_passing(int socket, const void *bytes, std::size_t length, int flags, int fd)
{
    iovec content{const_cast<void *>(bytes), length};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr *const one = CMSG_FIRSTHDR(&message);
    one->cmsg_level = SOL_SOCKET;
    one->cmsg_type = SCM_RIGHTS;
    one->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(one), &fd, sizeof fd);
    return sendmsg(socket, &message, flags);
}

descriptor take_passed_descriptor(int socket)
{
    char byte;
    descriptor passed;
    receive_passed(socket, &byte, 1, 0, passed);
    return passed;
}

} // namespace zc::holder

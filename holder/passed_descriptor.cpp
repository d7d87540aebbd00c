/* SPDX-License-Identifier: BSD-3-Clause */
#include "passed_descriptor.h"

#include <array>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace zc::holder {
namespace {

/** A byte, and room for one descriptor. */
struct one_message {
    explicit one_message(char what) : byte(what)
    {
        head.msg_iov = &content;
        head.msg_iovlen = 1;
        head.msg_control = control.data();
        head.msg_controllen = control.size();
    }
    one_message(const one_message &) = delete;
    one_message &operator=(const one_message &) = delete;

    char byte;
    iovec content{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr head{};
};

} // namespace

bool pass_descriptor(int socket, char byte, int fd)
{
    one_message message(byte);
    if (fd >= 0) {
        cmsghdr *const passed = CMSG_FIRSTHDR(&message.head);
        passed->cmsg_level = SOL_SOCKET;
        passed->cmsg_type = SCM_RIGHTS;
        passed->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(passed), &fd, sizeof fd);
    } else {
        message.head.msg_control = nullptr;
        message.head.msg_controllen = 0;
    }
    return sendmsg(socket, &message.head, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

descriptor take_passed_descriptor(int socket)
{
    one_message message(0);
    const ssize_t got = recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC);
    const cmsghdr *const passed = got >= 0 ? CMSG_FIRSTHDR(&message.head) : nullptr;
    int fd = -1;
    if (passed != nullptr && passed->cmsg_type == SCM_RIGHTS)
        std::memcpy(&fd, CMSG_DATA(passed), sizeof fd);
    return descriptor{fd};
}

} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_DETACH_USERFAULT_H_INCLUDED
#define ZC_TESTS_DETACH_USERFAULT_H_INCLUDED

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Answers the order TRACK, as ch4:zc does it (mpi-ch4-netmod/zc/zc_order.h). -1: it cannot. */
static inline int userfault_pass(int orders)
{
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    char line[] = "TRACKED\n";
    struct iovec content = {.iov_base = line, .iov_len = sizeof line - 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof fd)];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    const struct msghdr message = {.msg_iov = &content,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (fd < 0)
        return -1;
    const ssize_t sent = sendmsg(orders, &message, MSG_NOSIGNAL);
    close(fd);
    return sent < 0 ? -1 : 0;
}

#endif

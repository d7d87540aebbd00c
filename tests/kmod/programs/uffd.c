/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int uffd_open(unsigned long long features)
{
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return -1;
    if (ioctl(fd, UFFDIO_API, &api)) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int uffd_register(int fd, void *at, size_t len, unsigned long long mode)
{
    struct uffdio_register r = {.range = {(uintptr_t)at, len}, .mode = mode};

    return ioctl(fd, UFFDIO_REGISTER, &r);
}

int uffd_unregister(int fd, void *at, size_t len)
{
    struct uffdio_range r = {(uintptr_t)at, len};

    return ioctl(fd, UFFDIO_UNREGISTER, &r);
}

int uffd_protect(int fd, void *at, size_t len, bool protect)
{
    struct uffdio_writeprotect w = {.range = {(uintptr_t)at, len},
                                    .mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0};

    return ioctl(fd, UFFDIO_WRITEPROTECT, &w);
}

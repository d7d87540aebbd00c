/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_DESCRIPTOR_H_INCLUDED
#define ZC_BASE_DESCRIPTOR_H_INCLUDED

#include <unistd.h>
#include <utility>

namespace zc {

/** A file descriptor that is closed where it goes out of sight; -1: none. */
struct descriptor {
    int fd = -1;
    descriptor() = default;
    explicit descriptor(int f) : fd(f) {}
    ~descriptor()
    {
        if (fd >= 0)
            close(fd);
    }
    descriptor(descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
    descriptor &operator=(descriptor &&other) noexcept
    {
        std::swap(fd, other.fd);
        return *this;
    }
};

} // namespace zc

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_DESCRIPTOR_H_INCLUDED
#define ZC_AGENT_DESCRIPTOR_H_INCLUDED

#include <unistd.h>

namespace zc::agent {

/** A file descriptor that is closed where it goes out of sight. */
struct descriptor {
    int fd;
    explicit descriptor(int f) : fd(f) {}
    ~descriptor()
    {
        if (fd >= 0)
            close(fd);
    }
    descriptor(const descriptor &) = delete;
    descriptor &operator=(const descriptor &) = delete;
};

} // namespace zc::agent

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PASSED_DESCRIPTOR_H_INCLUDED
#define ZC_HOLDER_PASSED_DESCRIPTOR_H_INCLUDED

#include <cstddef>

#include <sys/types.h>

#include "descriptor.h"

namespace zc::holder {

/** As recv(2). A descriptor that comes with the bytes takes the place of @passed. */
ssize_t receive_passed(int socket, void *bytes, std::size_t room, int flags, descriptor &passed);

/** Sends @bytes as send(2), and @fd, which stays the caller's, with them. */
ssize_t send_passing(int socket, const void *bytes, std::size_t length, int flags, int fd);

/** The one that the next byte brings; -1: none. */
descriptor take_passed_descriptor(int socket);

} // namespace zc::holder

#endif

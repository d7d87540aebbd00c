/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PASSED_DESCRIPTOR_H_INCLUDED
#define ZC_HOLDER_PASSED_DESCRIPTOR_H_INCLUDED

#include "descriptor.h"

namespace zc::holder {

/** Sends @byte by @socket, and @fd with it, if it is one. It waits for no room, and allocates
 * nothing. */
bool pass_descriptor(int socket, char byte, int fd = -1);
/** The one that the next byte brings; -1: none. */
descriptor take_passed_descriptor(int socket);

} // namespace zc::holder

#endif

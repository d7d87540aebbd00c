/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PASSED_DESCRIPTOR_H_INCLUDED
#define ZC_HOLDER_PASSED_DESCRIPTOR_H_INCLUDED

#include "descriptor.h"

namespace zc::holder {

/** The one that the next byte brings; -1: none. */
descriptor take_passed_descriptor(int socket);

} // namespace zc::holder

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "error.h"

#include <cstring>

namespace zc {

void throw_errno(int code, const std::string &what)
{
    char text[128];
    throw error(code, what + ": " + strerror_r(code, text, sizeof text));
}

} // namespace zc

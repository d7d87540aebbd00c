/* SPDX-License-Identifier: BSD-3-Clause */
#include "host_name.h"

#include <array>
#include <unistd.h>

namespace zc {

std::string host_name()
{
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

} // namespace zc

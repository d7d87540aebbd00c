/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <random>

namespace zc {

std::uint64_t draw_identity()
{
    std::random_device device;
    std::uint64_t drawn = 0;
    while (drawn == 0)
        drawn = std::uint64_t{device()} << 32 | device();
    return drawn;
}

} // namespace zc

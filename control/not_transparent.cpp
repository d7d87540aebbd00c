/* SPDX-License-Identifier: BSD-3-Clause */

/* Where zc-hold is not built. */
#include "transparent.h"

#include <cstdio>

namespace zc::control {

bool transparent_is_built()
{
    return false;
}

bool has_held_job(const transparent_options &)
{
    return false;
}

int print_held_status(const transparent_options &)
{
    return kNoJob;
}

void drain_transparently(const transparent_options &, const std::string &,
                         const std::vector<std::string> &, nlohmann::json &)
{
}

int move_transparently(const transparent_options &, const std::vector<int> &, const std::string &)
{
    std::fputs("zcctl: this build has no zc-hold\n", stderr);
    return kRefused;
}

} // namespace zc::control

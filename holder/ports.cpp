/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/ports.h"

#include <unistd.h>

#include "endpoint.h"

namespace zc::holder {

int default_port(unsigned uid)
{
    constexpr unsigned kFirst = 8000, kPorts = 12000; /* zcmd's begin at 20000 */
    return static_cast<int>(kFirst + uid % kPorts);
}

std::string listener_at(const std::string &place)
{
    return whole_endpoint(place, std::to_string(default_port(geteuid())));
}

} // namespace zc::holder

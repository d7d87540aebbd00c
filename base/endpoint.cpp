/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

namespace zc {

std::size_t port_at(const std::string &endpoint)
{
    const auto host = endpoint.find("://") == std::string::npos ? 0 : endpoint.find("://") + 3;
    const auto colon = endpoint.find(
        ':', endpoint.find(']', host) == std::string::npos ? host : endpoint.find(']', host));
    return colon == std::string::npos ? colon : colon + 1;
}

std::string whole_endpoint(std::string endpoint, const std::string &port)
{
    if (endpoint.find("://") == std::string::npos)
        endpoint = "tcp://" + endpoint;
    return port_at(endpoint) == std::string::npos ? endpoint + ":" + port : endpoint;
}

} // namespace zc

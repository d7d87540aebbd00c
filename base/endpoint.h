/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_ENDPOINT_H_INCLUDED
#define ZC_BASE_ENDPOINT_H_INCLUDED

#include <cstddef>
#include <string>

namespace zc {

/** Where the port of @endpoint, as tcp://HOST:PORT or HOST:PORT, begins; npos if it has none. */
std::size_t port_at(const std::string &endpoint);

/** @endpoint with tcp:// before it, and with @port, where it has neither. */
std::string whole_endpoint(std::string endpoint, const std::string &port);

} // namespace zc

#endif

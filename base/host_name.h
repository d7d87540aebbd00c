/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_HOST_NAME_H_INCLUDED
#define ZC_BASE_HOST_NAME_H_INCLUDED

#include <string>

namespace zc {

/** Name of this host, as launchers and agents have it: that of gethostname(2). */
std::string host_name();

} // namespace zc

#endif

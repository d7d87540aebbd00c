/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_ENVIRONMENT_H_INCLUDED
#define ZC_HOLDER_ENVIRONMENT_H_INCLUDED

#include <cstdlib>
#include <string>

namespace zc::holder {

/** Of the environment of this process; empty if it is not set. */
inline std::string variable_of_this_process(const char *name)
{
    const char *const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

} // namespace zc::holder

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_SOFT_LIMITS_H_INCLUDED
#define ZC_BASE_SOFT_LIMITS_H_INCLUDED

#include <initializer_list>

#include <sys/resource.h>

namespace zc {

/** The soft limits of this process, as far as it may raise them. */
inline void raise_limits(std::initializer_list<__rlimit_resource> which)
{
    for (const __rlimit_resource each : which) {
        rlimit now{};
        if (getrlimit(each, &now) == 0 && now.rlim_cur < now.rlim_max) {
            now.rlim_cur = now.rlim_max;
            setrlimit(each, &now);
        }
    }
}

} // namespace zc

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_BOOT_TIME_H_INCLUDED
#define ZC_HOLDER_BOOT_TIME_H_INCLUDED

#include <string>

#include <sys/types.h>

namespace zc::holder {

/** When the host was booted, as CLOCK_MONOTONIC of the process @pid says: in seconds of
 * CLOCK_REALTIME. In a time namespace (time_namespaces(7)) that is not when it was. */
double boot_time(pid_t pid);

/**
 * Why a rank whose host was booted at @theirs cannot come to one that was booted at @here: its
 * CLOCK_MONOTONIC would jump, backwards perhaps, so what it measures would be wrong, and what it
 * waits for might not come for days. Empty: it can. @makes_namespace: a time namespace, in which
 * its clock goes on, can be made there.
 */
std::string clock_reason(double theirs, double here, bool makes_namespace);

} // namespace zc::holder

#endif

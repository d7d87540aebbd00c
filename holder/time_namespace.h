/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_TIME_NAMESPACE_H_INCLUDED
#define ZC_HOLDER_TIME_NAMESPACE_H_INCLUDED

#include <chrono>

#include <sys/types.h>

namespace zc::holder {

/** What a process sees of the clocks that a time namespace (time_namespaces(7)) has of its own. */
struct clock_readings {
    std::chrono::nanoseconds monotonic, boottime;
};

/** What the time namespace of @pid, or of what it starts, adds to the clocks of the host; 0 where
 * the kernel has none. */
clock_readings clock_offsets(pid_t pid);
/** Of the process @pid, now. */
clock_readings clocks_of(pid_t pid);
/** This process, which has one thread, and what it starts see clocks that go on from @then. Throws
 * error. */
void go_on_from(const clock_readings &then);
/** This process, and what it starts, sees the clocks of @pid. It has one thread. Throws error. */
void share_clocks(pid_t pid);
/** Whether go_on_from() is possible for a process like this one, in a user namespace if it needs
 * one; CRIU does the like for root. */
bool makes_time_namespaces();

} // namespace zc::holder

#endif

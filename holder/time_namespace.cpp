/* SPDX-License-Identifier: BSD-3-Clause */
#include "time_namespace.h"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "capabilities.h"
#include "descriptor.h"
#include "error.h"
#include "own_namespaces.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace zc::holder {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr const char *kOwnOffsets = "/proc/self/timens_offsets";

nanoseconds reading(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

/** As the kernel wants it: the nanoseconds are none below 0. */
std::string line(const char *clock, nanoseconds offset)
{
    const seconds whole = std::chrono::floor<seconds>(offset);
    return std::string(clock) + " " + std::to_string(whole.count()) + " " +
           std::to_string((offset - whole).count()) + "\n";
}

} // namespace

clock_readings clock_offsets(pid_t pid)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/timens_offsets");
    clock_readings found{};
    std::string clock;
    for (std::int64_t s = 0, ns = 0; file >> clock >> s >> ns;)
        (clock == "monotonic" ? found.monotonic : found.boottime) = seconds(s) + nanoseconds(ns);
    return found;
}

clock_readings clocks_of(pid_t pid)
{
    const clock_readings ours = clock_offsets(getpid()), theirs = clock_offsets(pid);
    return {reading(CLOCK_MONOTONIC) - ours.monotonic + theirs.monotonic,
            reading(CLOCK_BOOTTIME) - ours.boottime + theirs.boottime};
}

void go_on_from(const clock_readings &then)
{
    const clock_readings now = clocks_of(getpid()), ours = clock_offsets(getpid());
    if (unshare(CLONE_NEWTIME) != 0)
        throw_errno(errno, "a time namespace");
    std::ofstream file(kOwnOffsets);
    file << line("monotonic", ours.monotonic + then.monotonic - now.monotonic)
         << line("boottime", ours.boottime + then.boottime - now.boottime) << std::flush;
    if (!file)
        throw_errno(errno, std::string("a time namespace: ") + kOwnOffsets);
    /* Before Linux 6.3 execve(2) does not enter it, and a process that is not in that of its
     * children can make none that shares its memory, as CRIU does. */
    const descriptor made{open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC)};
    if (made.fd < 0 || setns(made.fd, CLONE_NEWTIME) != 0)
        throw_errno(errno, "a time namespace");
}

void share_clocks(pid_t pid)
{
    struct stat ours, theirs;
    const descriptor other{
        open(("/proc/" + std::to_string(pid) + "/ns/time").c_str(), O_RDONLY | O_CLOEXEC)};
    if (stat("/proc/self/ns/time", &ours) != 0)
        return; /* the kernel has none */
    if (other.fd < 0 || fstat(other.fd, &theirs) != 0)
        throw_errno(errno, "a time namespace");
    if (ours.st_ino != theirs.st_ino && setns(other.fd, CLONE_NEWTIME) != 0)
        throw_errno(errno, "a time namespace");
}

bool makes_time_namespaces()
{
    return access(kOwnOffsets, F_OK) == 0 &&
           (needs_user_namespace() || has_capabilities_for_time_namespaces());
}

} // namespace zc::holder

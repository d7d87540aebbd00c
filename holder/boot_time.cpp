/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot_time.h"

#include <cmath>
#include <ctime>
#include <fstream>

namespace zc::holder {
namespace {

/* Both hosts' CLOCK_REALTIME is compared, so that is how well it must be set. */
constexpr double kSameBoot = 1; /* seconds */

double seconds_of(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/** What the time namespace of the children of @process adds; 0 where the kernel has none. */
double monotonic_offset(const std::string &process)
{
    std::ifstream file("/proc/" + process + "/timens_offsets");
    std::string clock;
    for (double s = 0, ns = 0; file >> clock >> s >> ns;) {
        if (clock == "monotonic")
            return s + ns * 1e-9;
    }
    return 0;
}

} // namespace

double boot_time(pid_t pid)
{
    const double here = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_MONOTONIC);
    return here + monotonic_offset("self") - monotonic_offset(std::to_string(pid));
}

std::string clock_reason(double theirs, double here, bool makes_namespace)
{
    const double jump = theirs - here;
    if (makes_namespace || std::abs(jump) <= kSameBoot)
        return "";
    return "its monotonic clock is " + std::to_string(std::llround(std::abs(jump))) + " s " +
           (jump < 0 ? "behind" : "ahead of") +
           " the rank's, and CRIU makes a time namespace for root only";
}

} // namespace zc::holder

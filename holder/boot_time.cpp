/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot_time.h"

#include <cmath>
#include <ctime>

#include "time_namespace.h"

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

} // namespace

double boot_time(pid_t pid)
{
    const std::chrono::duration<double> monotonic = clocks_of(pid).monotonic;
    return seconds_of(CLOCK_REALTIME) - monotonic.count();
}

std::string clock_reason(double theirs, double here, bool makes_namespace)
{
    const double jump = theirs - here;
    if (makes_namespace || std::abs(jump) <= kSameBoot)
        return "";
    return "its monotonic clock is " + std::to_string(std::llround(std::abs(jump))) + " s " +
           (jump < 0 ? "behind" : "ahead of") +
           " the rank's, and no time namespace can be made there";
}

} // namespace zc::holder

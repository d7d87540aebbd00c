/* SPDX-License-Identifier: BSD-3-Clause */
#include "quantity.h"

#include <fmt/format.h>

#include <cmath>

namespace zc::forecast {

std::string time_text(double seconds)
{
    const double size = std::abs(seconds);
    if (size >= 1)
        return fmt::format("{:.2f} s", seconds);
    return size >= 1e-3 ? fmt::format("{:.1f} ms", seconds * 1e3)
                        : fmt::format("{:.0f} us", seconds * 1e6);
}

std::string time_text(std::int64_t ns)
{
    return time_text(static_cast<double>(ns) / 1e9);
}

std::string bytes_text(std::uint64_t bytes)
{
    const auto n = static_cast<double>(bytes);
    if (bytes >= 10 << 20)
        return fmt::format("{:.0f} MiB", n / (1 << 20));
    return bytes >= 10 << 10 ? fmt::format("{:.0f} KiB", n / (1 << 10))
                             : fmt::format("{} B", bytes);
}

std::string hit_rate_text(const predictability &p)
{
    return p.asked ? fmt::format("{:.0f} %", 100 * p.hit_rate()) : "-";
}

} // namespace zc::forecast

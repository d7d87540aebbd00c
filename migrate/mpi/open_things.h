/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <string>

namespace zc::migrate {

/** What the program has open that cannot be made again where its rank goes. */
struct open_things {
    static inline std::atomic<int> windows{0};
    static inline std::atomic<int> files{0};

    /** "2 windows and 1 file", or "". */
    static std::string text()
    {
        const auto some = [](int n, const char *what) {
            return n == 0 ? "" : std::to_string(n) + " " + what + (n == 1 ? "" : "s");
        };
        const std::string first = some(windows, "window"), second = some(files, "file");
        return first + (!first.empty() && !second.empty() ? " and " : "") + second;
    }
};

} // namespace zc::migrate

/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <vector>

namespace zc::instrument {

/** Something that was found in a source. */
struct finding {
    std::string place;  /* FILE:LINE, may be empty */
    std::string reason; /* a sentence without its full stop */

    friend bool operator<(const finding &a, const finding &b)
    {
        return a.place != b.place ? a.place < b.place : a.reason < b.reason;
    }
    friend bool operator==(const finding &a, const finding &b)
    {
        return a.place == b.place && a.reason == b.reason;
    }
};

using findings = std::vector<finding>;

} // namespace zc::instrument

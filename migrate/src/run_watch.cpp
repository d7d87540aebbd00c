/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_watch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace zc::migrate {

run_watch::run_watch(std::vector<position> before, std::string directory, double patience_s,
                     double now)
    : before_(std::move(before)), directory_(std::move(directory)), patience_s_(patience_s),
      changed_(now)
{
}

std::string run_watch::why_to_end(double now)
{
    std::vector<position> here = positions_in(directory_);
    if (here != last_) {
        last_ = std::move(here);
        changed_ = now;
    }
    for (std::size_t rank = 0; rank < std::min(last_.size(), before_.size()); rank++)
        if (last_[rank].safe_point > before_[rank].safe_point)
            return "rank " + std::to_string(rank) + " has come to safe point " +
                   std::to_string(last_[rank].safe_point) + ", and ended after " +
                   std::to_string(before_[rank].safe_point) + " without moves";
    if (now - changed_ <= patience_s_)
        return "";
    char text[96];
    std::snprintf(text, sizeof text, "no rank has come to a safe point for %.3g s", patience_s_);
    return text;
}

} // namespace zc::migrate

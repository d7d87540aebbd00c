/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/rank_mark.h"

#include <sstream>

namespace zc::holder {

std::string mark_of(const held_rank &one)
{
    std::ostringstream text;
    text << one.pid << ' ' << one.rank << ' ' << one.size << ' ' << one.home << ' ' << one.job;
    return text.str();
}

std::optional<held_rank> read_mark(const std::string &text)
{
    std::istringstream in(text);
    held_rank one;
    if (!(in >> one.pid >> one.rank >> one.size >> one.home) || in.get() != ' ' ||
        !std::getline(in, one.job) || one.pid <= 0 || one.rank < 0 || one.size < 0)
        return {};
    return one;
}

} // namespace zc::holder

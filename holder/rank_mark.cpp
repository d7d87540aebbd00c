/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/rank_mark.h"

#include <algorithm>
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

std::uint64_t number_of_job(const std::string &name)
{
    std::uint64_t number = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char c : name)
        number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return std::max<std::uint64_t>(number, 1);
}

} // namespace zc::holder

/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_build.h"

#include <cerrno>
#include <map>

#include "error.h"
#include "object_identity.h"

namespace zc::migrate {

std::string rank_build::to_text() const
{
    std::string text = host;
    for (const std::string &part : {path, program, library})
        text.append(1, '\0').append(part);
    return text;
}

rank_build rank_build::from_text(const std::string &text)
{
    rank_build found;
    std::size_t at = 0;
    for (std::string *part : {&found.host, &found.path, &found.program, &found.library}) {
        const std::size_t end = text.find('\0', at);
        const bool is_last = part == &found.library;
        if ((end == std::string::npos) != is_last)
            throw error(EBADMSG, "what a rank has told of its build cannot be understood");
        *part = text.substr(at, is_last ? end : end - at);
        at = end + 1;
    }
    return found;
}

std::string why_not_one_job(const std::vector<rank_build> &ranks)
{
    std::map<std::string, std::size_t> first; /* rank that runs the program of this path */
    for (std::size_t rank = 0; rank < ranks.size(); rank++) {
        const rank_build &one = ranks[rank];
        const auto differs = [&](std::size_t other, const std::string &what,
                                 const std::string &mine, const std::string &its) {
            return "rank " + std::to_string(rank) + " on host " + one.host +
                   " has another build of " + what + " than rank " + std::to_string(other) +
                   " on host " + ranks[other].host + ": " + mine + ", not " + its;
        };
        if (rank != 0 && !is_same_build(one.library, ranks[0].library))
            return differs(0, "libzcm", one.library, ranks[0].library);
        const std::size_t other = first.emplace(one.path, rank).first->second;
        if (other != rank && !is_same_build(one.program, ranks[other].program))
            return differs(other, one.path, one.program, ranks[other].program);
    }
    return "";
}

} // namespace zc::migrate

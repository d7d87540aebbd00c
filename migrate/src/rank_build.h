/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>
#include <vector>

namespace zc::migrate {

/** Which builds the process of a rank runs, as all are told when a job starts. */
struct rank_build {
    std::string host;
    std::string path;             /* of the program */
    std::string program, library; /* identities of that and of libzcm: preflight.h */

    /** Any bytes but 0 may be in a path, and 0 lies between the parts. */
    std::string to_text() const;
    /** Throws error(EBADMSG). */
    static rank_build from_text(const std::string &text);
};

/**
 * Why @ranks, by rank, are not to be one job; "" if they may be. Processes of two builds cannot
 * take each other's place, and what they register may not mean the same. Ranks may run several
 * programs: those of one path are to be one build.
 */
std::string why_not_one_job(const std::vector<rank_build> &ranks);

} // namespace zc::migrate

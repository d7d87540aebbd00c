/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zc::migrate {

/** Two runs of a program, by what their ranks have recorded (checksum_log.h). */
struct comparison {
    /** What differs first, a sentence for each: empty if nothing does. */
    std::vector<std::string> differences;
    /** How far each rank has come in the second run, a sentence for each. */
    std::vector<std::string> positions;
    bool differ_in_length = false;       /* only in these positions: differences name them */
    std::vector<std::string> registered; /* names, in the first run */
    std::uint64_t points = 0;            /* ranks and safe points at which both were the same */
    std::uint64_t moves = 0;             /* of the second run */

    /** Throws error if there is no record in one of the directories. */
    static comparison of(const std::string &first, const std::string &second);
};

} // namespace zc::migrate

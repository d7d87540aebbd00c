/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_PREDICTABILITY_H_INCLUDED
#define ZCF_PREDICTABILITY_H_INCLUDED

#include <cstdint>
#include <vector>

#include "zct/trace.h"

namespace zc::forecast {

/** What the engine of ch4:zc says of where a message goes. */
enum class answer : std::uint8_t { not_asked, right, wrong, unknown };

/** How often it foresees that, of some unexpected messages. */
struct predictability {
    std::uint64_t asked = 0;
    std::uint64_t right = 0;
    std::uint64_t wrong = 0;
    std::uint64_t unknown = 0; /* the engine gave no answer */

    void add(answer given)
    {
        asked += given != answer::not_asked;
        right += given == answer::right;
        wrong += given == answer::wrong;
        unknown += given == answer::unknown;
    }

    /** Share of right answers; 1 if nothing was asked. */
    double hit_rate() const
    {
        return asked ? static_cast<double>(right) / static_cast<double>(asked) : 1;
    }
};

/** The answers for a run: it is asked for those that are sent before their receive is posted. */
struct prediction {
    predictability total; /* of point-to-point and collective messages */
    /* By rank, of its point-to-point receives in order of posting. */
    std::vector<std::vector<answer>> answers;
};

/** Feeds the receives of the next rank to an engine of its own, in the order of the run. Of
 * messages below @least_bytes it learns, but is not asked. */
void predict(const zct::rank_trace &rank, std::uint64_t least_bytes, prediction &result);

} // namespace zc::forecast

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_PREDICTABILITY_H_INCLUDED
#define ZCF_PREDICTABILITY_H_INCLUDED

#include <cstdint>

#include "zct/trace.h"

namespace zc::forecast {

/** How often the engine of ch4:zc foresees where an unexpected message goes. */
struct predictability {
    std::uint64_t asked = 0; /* point-to-point and collective messages sent before their receive */
    std::uint64_t right = 0;
    std::uint64_t wrong = 0;
    std::uint64_t unknown = 0; /* the engine gave no answer */

    /** Share of right answers; 1 if nothing was asked. */
    double hit_rate() const
    {
        return asked ? static_cast<double>(right) / static_cast<double>(asked) : 1;
    }
};

/** Feeds the receives of a rank to an engine of its own, in the order of the run. Of messages below
 * @least_bytes it learns, but is not asked. */
void predict(const zct::rank_trace &rank, std::uint64_t least_bytes, predictability &result);

} // namespace zc::forecast

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_EXPERIENCE_H_INCLUDED
#define ZC_EXPERIENCE_H_INCLUDED

#include "zc/zc.h"

#include <array>
#include <cstdint>

namespace zc {

/**
 * experience - what deliveries have taken, beside what they were predicted to
 *
 * Costs are measured in a loop of some milliseconds. In the application the
 * caches hold something else, other threads run, and the address space is
 * larger. So each means has a factor that its costs are multiplied by:
 *
 *     factor += (sample - factor) / samples    for the first few,
 *     factor += (sample - factor) / 8          from then on
 *
 * where a sample is measured / predicted. None counts as more than twice or
 * less than half the factor, since one that was interrupted says nothing, and
 * the factor stays between 1/4 and 4.
 *
 * Not for several threads at once.
 */
class experience {
  public:
    void learn(zc_means_t means, double predicted_ns, double measured_ns);
    void forget() { lessons_ = {}; }

    double factor(zc_means_t means) const { return lessons_[means].factor; }
    /** @costs as experience has it. */
    zc_costs_t applied(zc_costs_t costs) const;

  private:
    struct lesson {
        double factor = 1;
        unsigned samples = 0;
    };
    std::array<lesson, ZC_MEANS_COUNT> lessons_{};
};

/** How much dearer the second cheapest way may be for a close call. */
inline constexpr double kClose = 2;

/**
 * tries_the_other - should the @nth close call (from 1) go the other way?
 *
 * What is never done is never measured, and a factor that was learned in bad
 * times would stay. One in 64 then; sooner at first, when little is known.
 */
bool tries_the_other(std::uint64_t nth);

} // namespace zc

#endif /* ZC_EXPERIENCE_H_INCLUDED */

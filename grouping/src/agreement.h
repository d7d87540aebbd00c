/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_AGREEMENT_H_INCLUDED
#define ZCP_GROUPING_AGREEMENT_H_INCLUDED

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "flow.h"

namespace zc::groups {

/**
 * How well one way of forecasting has done of late, sender by sender: what both
 * forecast and period have, over what either has (Jaccard); once of the bytes, once
 * of the pairs that are likely to talk, and the mean of both, lest large messages
 * alone decide. Decayed by a quarter every period in which there was any.
 */
class agreement {
  public:
    agreement(uint32_t ranks, std::pmr::memory_resource *memory)
        : scores_(ranks, 0.0f, memory), tallies_(ranks, tally{}, memory)
    {
    }

    /** @forecast, times @scale, was expected; @actual has come. */
    void score(const flow_table &forecast, double scale, const flow_table &actual);
    float of(uint32_t sender) const { return scores_[sender]; }
    /** Of all senders together. */
    float overall() const { return overall_; }

    static size_t bytes_needed(uint32_t ranks) { return ranks * (sizeof(float) + sizeof(tally)); }

  private:
    /* Of one sender: in both, and the sum of either. */
    struct tally {
        double common_bytes = 0;
        double all_bytes = 0;
        double common_pairs = 0;
        double all_pairs = 0;

        void expected(const flow &f, double scale, const flow *came);
        void came(const flow &f);
        float score() const;
    };

    std::pmr::vector<float> scores_;
    std::pmr::vector<tally> tallies_; /* scratch, zero between calls */
    float overall_ = 0;
};

} // namespace zc::groups

#endif

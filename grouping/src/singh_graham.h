/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_SINGH_GRAHAM_H_INCLUDED
#define ZCP_GROUPING_SINGH_GRAHAM_H_INCLUDED

#include <optional>

#include "agreement.h"
#include "archive.h"
#include "catalogue.h"
#include "forecaster.h"
#include "memory.h"
#include "traffic.h"

namespace zc::groups {

/**
 * The predictors of R. Singh and P. Graham, "Grouping MPI processes for partial
 * checkpoint and co-migration", Euro-Par 2009, section 4.
 *
 * An event is the symbol src * N + dst. Events are cut into samples of one
 * sampling period each, and TEIRESIAS finds the patterns of a sample when it is
 * over. A request can come at any time.
 *   basic        the longest pattern of the latest sample that has occurred there at
 *                least twice; of equally long ones the one closest to the request. If
 *                there is none, the last pattern of the sample before.
 *   specific     the latest earlier sample is looked for that has exactly the basic
 *                pattern. What came next there is expected: in that sample, or, where
 *                it ended with the pattern, first in the one after it. If there is no
 *                such sample, as basic.
 *   levenshtein  the same with the earlier pattern that is most like the basic one, if
 *                the edit distance is at most a quarter of the longer one's length.
 * With KMP, patterns give way to their fundamental ones in all samples. Of KMP, of the
 * latest sample and of having a pattern there are other readings: see the setting's
 * kmp, recent and match.
 * With an adaptive period the sample becomes a multiple of the fundamental
 * pattern, and grows while there is none.
 *
 * docs/papers/singh-graham.md says where the text is silent, and what was chosen.
 */
class singh_graham final : public forecaster {
  public:
    enum class predictor { basic, specific, levenshtein };
    /** Expected over and over, from place @phase on. The symbols live until the next event. */
    struct prediction {
        std::span<const uint32_t> pattern;
        size_t phase;
    };

    singh_graham(const setting &s, predictor how, std::pmr::memory_resource *memory);

    void learn(const zcp_event_t &event, tick now) override;
    void period_over(tick now) override;
    void forecast(view, tick now, std::pmr::vector<flow> &out,
                  std::pmr::memory_resource *scratch) const override;
    uint64_t pairs_dropped() const override { return traffic_.dropped(); }
    uint64_t partial_searches() const override { return partial_; }
    uint32_t sampling() const override { return sampling_; }
    float agreement() const override { return agreement_.overall(); }

    /** What is expected if the request comes now; none if no pattern has been found yet. */
    std::optional<prediction> predict() const;

    static size_t bytes_needed(const setting &s);

  private:
    /* The basic pattern and how many places ago its last occurrence ended. */
    struct base {
        catalogue::pattern pattern;
        size_t since;
        size_t sample; /* which is not over yet if it is past_.size() */
    };

    void sample_over();
    void adapt(const catalogue &sample);
    catalogue search() const;
    bool uses_current() const;
    std::optional<base> basic() const;
    std::optional<archive::successor> specific(const base &now) const;
    std::optional<archive::successor> nearest(const base &now) const;
    void lay_out(flow_table &out) const;

    setting setting_;
    predictor how_;
    std::pmr::memory_resource *memory_;
    traffic traffic_;
    flow_table said_;
    groups::agreement agreement_;
    std::pmr::vector<uint32_t> sample_;
    uint32_t sampling_;
    archive past_;
    size_t events_ = 0; /* of this period */
    size_t length_ = 0; /* of the last period, events */
    mutable bounded_memory desk_;
    /* The current sample as far as it has come: requests with no event between them share it. */
    mutable std::optional<catalogue> current_;
    mutable uint64_t partial_ = 0;
};

} // namespace zc::groups

#endif

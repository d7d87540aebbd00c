/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_SINGH_GRAHAM_H_INCLUDED
#define ZCP_GROUPING_SINGH_GRAHAM_H_INCLUDED

#include <optional>

#include "agreement.h"
#include "forecaster.h"
#include "memory.h"
#include "teiresias.h"
#include "traffic.h"

namespace zc::groups {

/**
 * Reference: the predictors of R. Singh and P. Graham, "Grouping MPI processes for
 * partial checkpoint and co-migration", Euro-Par 2009.
 *
 * An event is the symbol src * N + dst. Events are cut into samples of one
 * sampling period each. TEIRESIAS finds the patterns of a sample; the one that
 * covers most of it is its pattern. What comes next is
 *   basic        that pattern, over and over;
 *   historical   what followed the last time this very pattern was a sample's
 *                pattern, else as basic;
 *   levenshtein  what followed the pattern most like it, if the edit distance is
 *                at most a quarter of the longer one, else as basic.
 * With KMP a pattern is first reduced to its fundamental pattern: TEIRESIAS
 * reports the longest, which holds several rounds of what is being repeated.
 * With an adaptive period the sample becomes a multiple of the fundamental
 * pattern, and grows while there is none.
 *
 * docs/grouping.md says where this had to be interpreted.
 */
class singh_graham final : public forecaster {
  public:
    enum class memory_of { nothing, same, similar }; /* basic, historical, levenshtein */

    singh_graham(const setting &s, memory_of past, std::pmr::memory_resource *memory);

    void learn(const zcp_event_t &event, tick now) override;
    void period_over(tick now) override;
    void forecast(view, tick now, std::pmr::vector<flow> &out,
                  std::pmr::memory_resource *scratch) const override;
    uint64_t pairs_dropped() const override { return traffic_.dropped(); }
    uint64_t partial_searches() const override { return partial_; }
    uint32_t sampling() const override { return sampling_; }
    float agreement() const override { return agreement_.overall(); }

    /** The next @length symbols expected; fewer only if there is no pattern. */
    void expect(size_t length, std::pmr::vector<uint32_t> &out) const;

    static size_t bytes_needed(const setting &s);

  private:
    using symbols = std::pmr::vector<uint32_t>;
    /* A sample's pattern, without don't-cares at its ends, and where in it the
     * sample stopped. */
    struct finding {
        symbols pattern;
        size_t phase;
        double coverage; /* share of the sample it explains */
        size_t period;   /* of the fundamental pattern */
    };
    struct episode {
        symbols pattern;
        symbols successor;
        size_t phase; /* where in the successor its sample began */
    };

    void sample_over();
    std::optional<finding> examine(std::span<const uint32_t> sample);
    finding describe(const teiresias::pattern &found, double coverage) const;
    void remember(const finding &now);
    void decide(const finding &now);
    void lay_out(flow_table &out) const;
    void adapt(const std::optional<finding> &now);
    const episode *recall(const symbols &pattern) const;

    setting setting_;
    memory_of past_;
    std::pmr::memory_resource *memory_;
    traffic traffic_;
    flow_table said_;
    groups::agreement agreement_;
    symbols sample_;
    uint32_t sampling_;
    symbols last_pattern_;
    std::pmr::vector<episode> episodes_; /* oldest first */
    symbols expected_;                   /* repeats */
    size_t expected_phase_ = 0;
    size_t events_ = 0; /* of this period */
    size_t length_ = 0; /* of the last period, events */
    uint64_t partial_ = 0;
};

} // namespace zc::groups

#endif

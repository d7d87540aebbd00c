/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_TRAFFIC_H_INCLUDED
#define ZCP_GROUPING_TRAFFIC_H_INCLUDED

#include "agreement.h"
#include "flow.h"
#include "forecaster.h"

namespace zc::groups {

/** Traffic of this period, of the last one, and of all of them, halved every period. */
class traffic {
  public:
    traffic(const setting &s, std::pmr::memory_resource *memory);

    void learn(const zcp_event_t &event);
    void period_over();

    const flow_table &current() const { return current_; }
    /** The last period, or this one before the first is over. */
    const flow_table &latest() const { return any_period_ ? previous_ : current_; }
    /** Does not hold the current period. */
    const flow_table &matrix() const { return any_period_ ? matrix_ : current_; }
    /** Is there anything but the current period? */
    bool begun() const { return any_period_; }
    /** Factor from the matrix to one period: the weights 1, 1/2, 1/4 … add up to 2. */
    static constexpr double kMatrixScale = 0.5;
    uint64_t dropped() const { return dropped_; }

    static size_t bytes_needed(const setting &s);

  private:
    flow_table current_;
    flow_table previous_;
    flow_table matrix_;
    bool any_period_ = false;
    uint64_t dropped_ = 0;
};

/** A baseline: forecasts the traffic there has been. */
class baseline : public forecaster {
  public:
    void learn(const zcp_event_t &event, tick) override { traffic_.learn(event); }
    uint64_t pairs_dropped() const override { return traffic_.dropped(); }
    float agreement() const override { return agreement_.overall(); }

    static size_t bytes_needed(const setting &s);

  protected:
    baseline(const setting &s, std::pmr::memory_resource *memory);
    /** Scores what was @forecast, times @scale, against the period that ends. */
    void end_period(const flow_table &forecast, double scale);

    traffic traffic_;
    groups::agreement agreement_;
};

/** The next period is like the last. */
class persistence final : public baseline {
  public:
    persistence(const setting &s, std::pmr::memory_resource *memory) : baseline(s, memory) {}

    void period_over(tick) override { end_period(traffic_.latest(), 1); }
    void forecast(view, tick, std::pmr::vector<flow> &out,
                  std::pmr::memory_resource *) const override;
};

/** The traffic matrix, halved every period. */
class decayed_matrix final : public baseline {
  public:
    decayed_matrix(const setting &s, std::pmr::memory_resource *memory) : baseline(s, memory) {}

    void period_over(tick) override { end_period(traffic_.matrix(), traffic::kMatrixScale); }
    void forecast(view, tick, std::pmr::vector<flow> &out,
                  std::pmr::memory_resource *) const override;
};
static_assert(sizeof(persistence) == sizeof(baseline) &&
              sizeof(decayed_matrix) == sizeof(baseline)); /* as bytes_needed() has it */

} // namespace zc::groups

#endif

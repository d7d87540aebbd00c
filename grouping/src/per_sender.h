/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_PER_SENDER_H_INCLUDED
#define ZCP_GROUPING_PER_SENDER_H_INCLUDED

#include "agreement.h"
#include "destinations.h"
#include "forecaster.h"
#include "traffic.h"

namespace zc::groups {

/**
 * The default. Three ways to tell a sender's next period are kept and scored
 * beside each other: the continuation of its destination stream, its last period,
 * its decayed traffic. For each sender the one that agreed best of late speaks;
 * so where nothing can be foretold beyond "as before", the answer is "as before",
 * and the default cannot lose to the baselines for longer than it takes to see it.
 * The mean takes all three, by the odds that their scores give them.
 */
class per_sender final : public forecaster {
  public:
    per_sender(const setting &s, std::pmr::memory_resource *memory);

    void learn(const zcp_event_t &event, tick now) override;
    void period_over(tick now) override;
    void forecast(view wanted, tick now, std::pmr::vector<flow> &out,
                  std::pmr::memory_resource *scratch) const override;
    uint64_t pairs_dropped() const override { return traffic_.dropped(); }
    float agreement() const override { return said_agreement_.overall(); }

    static size_t bytes_needed(const setting &s);

  private:
    void walk(tick now, flow_table &out) const;
    const groups::agreement &best_for(uint32_t sender) const;
    template <typename Emit>
    void choose(const flow_table &walked, Emit emit) const;
    template <typename Emit>
    void mix(const flow_table &walked, Emit emit) const;

    setting setting_;
    traffic traffic_;
    destinations destinations_;
    flow_table walked_; /* the walk made when this period began */
    flow_table said_;   /* what was chosen then */
    bool walked_before_ = false;
    groups::agreement walk_agreement_;
    groups::agreement last_agreement_;
    groups::agreement matrix_agreement_;
    groups::agreement said_agreement_;
};

} // namespace zc::groups

#endif

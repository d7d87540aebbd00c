/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

namespace zc::groups {

/* A pair unheard of for some ten periods is forgotten. */
constexpr float kLeastMessages = 1.0f / 1024;

traffic::traffic(const setting &s, std::pmr::memory_resource *memory)
    : current_(s.period_flows, memory), previous_(s.period_flows, memory),
      matrix_(s.lasting_flows, memory)
{
}

size_t traffic::bytes_needed(const setting &s)
{
    return 2 * flow_table::bytes_needed(s.period_flows) + flow_table::bytes_needed(s.lasting_flows);
}

void traffic::learn(const zcp_event_t &event)
{
    flow *f = current_.at(event.src, event.dst);
    if (!f) {
        dropped_++;
        return;
    }
    f->bytes += static_cast<double>(event.bytes);
    f->messages += 1;
}

void traffic::period_over()
{
    matrix_.halve(kLeastMessages);
    for (const flow &f : current_.flows()) {
        flow *sum = matrix_.at(f.src, f.dst);
        if (!sum) {
            dropped_++;
            continue;
        }
        sum->bytes += f.bytes;
        sum->messages += f.messages;
    }
    previous_.swap(current_);
    current_.clear();
    any_period_ = true;
}

baseline::baseline(const setting &s, std::pmr::memory_resource *memory)
    : traffic_(s, memory), agreement_(s.ranks, memory)
{
}

size_t baseline::bytes_needed(const setting &s)
{
    return sizeof(baseline) + traffic::bytes_needed(s) + agreement::bytes_needed(s.ranks);
}

void baseline::end_period(const flow_table &forecast, double scale)
{
    if (traffic_.begun())
        agreement_.score(forecast, scale, traffic_.current());
    traffic_.period_over();
}

void persistence::forecast(view, tick, std::pmr::vector<flow> &out,
                           std::pmr::memory_resource *) const
{
    for (flow f : traffic_.latest().flows()) {
        f.confidence = agreement_.of(f.src);
        out.push_back(f);
    }
}

void decayed_matrix::forecast(view wanted, tick, std::pmr::vector<flow> &out,
                              std::pmr::memory_resource *) const
{
    for (flow f : traffic_.matrix().flows()) {
        f.bytes *= traffic::kMatrixScale;
        f.messages *= static_cast<float>(traffic::kMatrixScale);
        if (wanted == view::likely && f.messages < kLikelyMessages)
            continue;
        f.confidence = agreement_.of(f.src);
        out.push_back(f);
    }
}

} // namespace zc::groups

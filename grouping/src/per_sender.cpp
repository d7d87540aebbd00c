/* SPDX-License-Identifier: BSD-3-Clause */
#include "per_sender.h"

#include <algorithm>

namespace zc::groups {

/* The walk tells more than the baselines do (an order, a time), but also errs in
 * more ways: where scores are within the noise, the baselines speak. */
constexpr float kNoise = 0.02f;

per_sender::per_sender(const setting &s, std::pmr::memory_resource *memory)
    : setting_(s), traffic_(s, memory), destinations_(s.ranks, s.history, memory),
      walked_(s.period_flows, memory), said_(2 * s.period_flows + s.lasting_flows, memory),
      walk_agreement_(s.ranks, memory), last_agreement_(s.ranks, memory),
      matrix_agreement_(s.ranks, memory), said_agreement_(s.ranks, memory)
{
}

size_t per_sender::bytes_needed(const setting &s)
{
    return sizeof(per_sender) + traffic::bytes_needed(s) +
           destinations::bytes_needed(s.ranks, s.history) +
           flow_table::bytes_needed(s.period_flows) +
           flow_table::bytes_needed(2 * s.period_flows + s.lasting_flows) +
           4 * agreement::bytes_needed(s.ranks);
}

void per_sender::learn(const zcp_event_t &event, tick now)
{
    traffic_.learn(event);
    destinations_.learn(event.src, event.dst, event.bytes, now);
}

void per_sender::walk(tick now, flow_table &out) const
{
    for (uint32_t sender = 0; sender < setting_.ranks; sender++)
        destinations_.walk(sender, now, setting_.period, out);
}

const groups::agreement &per_sender::best_for(uint32_t sender) const
{
    const bool matrix = matrix_agreement_.of(sender) > last_agreement_.of(sender);
    const groups::agreement &baseline = matrix ? matrix_agreement_ : last_agreement_;
    return walk_agreement_.of(sender) > baseline.of(sender) + kNoise ? walk_agreement_ : baseline;
}

/** The flows of each sender from the way that is best for it. */
template <typename Emit>
void per_sender::choose(const flow_table &walked, Emit emit) const
{
    const auto take = [&](const groups::agreement &way, const flow_table &table, double scale) {
        for (flow f : table.flows()) {
            if (&best_for(f.src) != &way)
                continue;
            f.bytes *= scale;
            f.messages *= static_cast<float>(scale);
            f.confidence = way.of(f.src);
            if (f.messages >= kLikelyMessages)
                emit(f);
        }
    };
    take(walk_agreement_, walked, 1);
    take(last_agreement_, traffic_.latest(), 1);
    take(matrix_agreement_, traffic_.matrix(), traffic::kMatrixScale);
}

static float odds(const groups::agreement &way, uint32_t sender)
{
    const float score = std::clamp(way.of(sender), 0.02f, 0.98f);
    return score / (1 - score);
}

/* Where even the best way was wrong, things may be as usual, or be like nothing
 * that any of the three knows: half of the doubt goes to the matrix. */
template <typename Emit>
void per_sender::mix(const flow_table &walked, Emit emit) const
{
    const auto take = [&](const groups::agreement &way, const flow_table &table, double scale) {
        for (flow f : table.flows()) {
            const float all = odds(walk_agreement_, f.src) + odds(last_agreement_, f.src) +
                              odds(matrix_agreement_, f.src);
            const float best = std::max({walk_agreement_.of(f.src), last_agreement_.of(f.src),
                                         matrix_agreement_.of(f.src)});
            const float doubt = (1 - best) / 2;
            const float usual = &way == &matrix_agreement_ ? doubt : 0;
            const float share = (1 - doubt) * odds(way, f.src) / all + usual;
            f.bytes *= scale * static_cast<double>(share);
            f.messages *= static_cast<float>(scale) * share;
            f.confidence = way.of(f.src);
            emit(f);
        }
    };
    take(walk_agreement_, walked, 1);
    take(last_agreement_, traffic_.latest(), 1);
    take(matrix_agreement_, traffic_.matrix(), traffic::kMatrixScale);
}

void per_sender::period_over(tick now)
{
    const flow_table &actual = traffic_.current();
    if (walked_before_) {
        walk_agreement_.score(walked_, 1, actual);
        said_agreement_.score(said_, 1, actual);
        last_agreement_.score(traffic_.latest(), 1, actual);
        matrix_agreement_.score(traffic_.matrix(), traffic::kMatrixScale, actual);
    }
    traffic_.period_over();
    walked_.clear();
    walk(now, walked_);
    walked_before_ = true;
    said_.clear();
    choose(walked_, [this](const flow &f) {
        flow *said = said_.at(f.src, f.dst); /* has room for all that can be chosen */
        said->bytes = f.bytes;
        said->messages = f.messages;
    });
}

void per_sender::forecast(view wanted, tick now, std::pmr::vector<flow> &out,
                          std::pmr::memory_resource *scratch) const
{
    flow_table walked(setting_.period_flows, scratch);
    walk(now, walked);
    const auto emit = [&out](const flow &f) { out.push_back(f); };
    if (wanted == view::likely)
        choose(walked, emit);
    else
        mix(walked, emit);
}

} // namespace zc::groups

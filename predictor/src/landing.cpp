/* SPDX-License-Identifier: BSD-3-Clause */
#include "landing.h"

#include <algorithm>
#include <utility>

namespace zc::predict {

landing::landing(std::unique_ptr<predictor> predictor, size_t max_bytes, uint32_t horizon,
                 float min_confidence)
    : zcp(max_bytes - max_bytes / 3, horizon, min_confidence), predictor_(std::move(predictor)),
      flows_(max_bytes / 3), scratch_(horizon)
{
}

bool landing::open(const zcp_envelope_t &envelope, message &claim) noexcept
{
    const key key = key::exact(envelope);
    flow *flow = flows_.insert(key, key.hash(), [](const auto &f) { return f.unsettled != 0; });
    if (!flow)
        return false;
    flow->unsettled++;
    claim.flows.exact = flows_.index(flow);
    return true;
}

void landing::close(const message &claim) noexcept
{
    flows_.value_at(claim.flows.exact).unsettled--;
}

void landing::answer(const zcp_envelope_t &envelope, message &claim, zcp_landing_t &out) noexcept
{
    flow &flow = flows_.value_at(claim.flows.exact);
    guess guess;
    if (flow.unsettled > horizon_ ||
        !predictor_->locate({envelope, flow.unsettled, {scratch_.data(), horizon_}}, guess))
        return;
    if (!flow.answers.begun())
        flow.answers.begin(trust::half(), 0); /* no opinion of its own; outcomes decide */
    claim.expected = guess.addr;
    claim.state = claim_state::withheld;
    if (flow.answers.confidence() < min_confidence_)
        return;
    const uint32_t modulus = predictor_->modulus();
    claim.state = modulus ? claim_state::answered_class : claim_state::answered;
    out.addr = guess.addr;
    out.confidence = flow.answers.confidence();
    out.ahead = guess.ahead;
    out.modulus = modulus;
}

void landing::settle(const message &claim, uint64_t addr) noexcept
{
    flow &flow = flows_.value_at(claim.flows.exact);
    /* Withheld guesses count too: that is how a silenced flow is heard again. */
    if (claim.state != claim_state::unknown)
        flow.answers.count(predictor_->modulus() ? congruent(claim.expected, addr)
                                                 : claim.expected == addr);
    const zcp_receive_t received = {flows_.key_at(claim.flows.exact).envelope(), addr};
    close(claim);
    learn(received);
}

uint32_t landing::next(std::span<zcp_receive_t> out) const noexcept
{
    return predictor_->next(out.first(std::min<size_t>(out.size(), horizon_)));
}

void landing::explain(const zcp_envelope_t &envelope, zcp_explanation_t &out) const noexcept
{
    const key key = key::exact(envelope);
    const flow *flow = flows_.find(key, key.hash());
    const uint32_t unsettled = flow ? flow->unsettled : 0;
    out.unsettled = unsettled;
    guess guess;
    if (unsettled >= horizon_) {
        out.cause = ZCP_CAUSE_BEYOND;
    } else if (predictor_->locate({envelope, unsettled + 1, {scratch_.data(), horizon_}}, guess)) {
        out.guess = guess.addr;
        out.modulus = predictor_->modulus();
        score answers = flow ? flow->answers : score();
        if (!answers.begun())
            answers.begin(trust::half(), 0);
        out.confidence = answers.confidence();
        out.cause = out.confidence < min_confidence_ ? ZCP_CAUSE_UNSURE : predictor_->cause();
    }
}

size_t landing::bytes() const noexcept
{
    return sizeof(*this) - sizeof(zcp) + predictor_->bytes() + flows_.bytes() + scratch_.bytes();
}

} // namespace zc::predict

/* SPDX-License-Identifier: BSD-3-Clause */
#include "landing.h"

#include <algorithm>
#include <utility>

namespace zc::predict {

static bool same_envelope(const zcp_envelope_t &a, const zcp_envelope_t &b)
{
    return a.comm == b.comm && a.source == b.source && a.tag == b.tag && a.bytes == b.bytes;
}

static bool same_sample(const zcp_envelope_t &a, const zcp_envelope_t &b)
{
    return a.source == b.source && a.bytes == b.bytes;
}

/* Scores move by a quarter towards each outcome, as the keyed engine's trust. */
static constexpr float kScoreStep = 0.25f;

bool predictor::locate(const query &q, guess &out) const noexcept
{
    /* No opinion of itself; the flow's own outcomes decide after the first one. */
    static constexpr float kNoOpinion = 0.5f;
    const auto predicted = q.scratch.first(next(q.scratch));
    /* The samples of graph and DPD have no tag: a buffer that serves several is
     * predicted with one of them, so sender and size must do where the envelope
     * is not found. */
    for (const auto same : {same_envelope, same_sample}) {
        uint32_t nth = q.nth;
        for (uint32_t i = 0; i < predicted.size(); i++) {
            if (same(predicted[i].envelope, q.envelope) && --nth == 0) {
                out = {predicted[i].addr, i + 1, kNoOpinion};
                return true;
            }
        }
    }
    return false;
}

landing::landing(std::unique_ptr<predictor> predictor, size_t max_bytes, uint32_t horizon,
                 float min_confidence)
    : predictor_(std::move(predictor)), horizon_(horizon), min_confidence_(min_confidence),
      flows_(max_bytes / 3),
      claims_(std::min<size_t>((max_bytes - max_bytes / 3) / sizeof(open_claim), kMaxClaims)),
      scratch_(horizon)
{
}

void landing::receive(const zcp_receive_t &receive) noexcept
{
    stats_.receives++;
    predictor_->learn(receive);
}

/* Counts one more unsettled message in both flows of @envelope; false if there is no room. */
bool landing::open_flows(const zcp_envelope_t &envelope, uint32_t &exact, uint32_t &any_size)
{
    const auto pinned = [](const flow_counts &flow) { return flow.unsettled != 0; };
    const key sized = key::exact(envelope);
    const key any = key::any_size(envelope);

    flow_counts *first = flows_.insert(sized, sized.hash(), pinned);
    if (!first)
        return false;
    first->unsettled++;
    flow_counts *second = flows_.insert(any, any.hash(), pinned);
    if (!second) {
        first->unsettled--;
        return false;
    }
    second->unsettled++;
    exact = flows_.index(first);
    any_size = flows_.index(second);
    return true;
}

/* An id is the claim's serial above its index + 1: neither 0 nor kUntracked. */
zcp_claim_t landing::take_claim(uint32_t exact, uint32_t any_size)
{
    uint32_t index = fresh_;
    if (free_ != 0) {
        index = free_ - 1;
        free_ = claims_[index].flow;
    } else {
        fresh_++;
    }
    open_claim &taken = claims_[index];
    taken = {0, exact, any_size, taken.serial + 1, claim_state::unknown};
    return (uint64_t{taken.serial} << 32) | (index + 1);
}

landing::open_claim *landing::find_claim(zcp_claim_t id)
{
    const uint64_t index = (id & UINT32_MAX) - 1; /* 0 wraps and is out of range */
    if (index >= fresh_)
        return nullptr;
    open_claim &found = claims_[index];
    return found.state != claim_state::free && found.serial == id >> 32 ? &found : nullptr;
}

void landing::release_claim(open_claim &claim)
{
    flows_.value_at(claim.flow).unsettled--;
    flows_.value_at(claim.flow_any_size).unsettled--;
    claim.state = claim_state::free;
    claim.flow = free_;
    free_ = static_cast<uint32_t>(&claim - claims_.data()) + 1;
}

void landing::answer(const zcp_envelope_t &envelope, open_claim &claim, zcp_landing_t &out)
{
    flow_counts &flow = flows_.value_at(claim.flow);
    const uint32_t nth_any_size = flows_.value_at(claim.flow_any_size).unsettled;
    if (flow.unsettled > horizon_)
        return;
    guess guess;
    const query query = {
        envelope, flow.unsettled, nth_any_size, {scratch_.data(), scratch_.size()}};
    if (!predictor_->locate(query, guess))
        return;
    if (!flow.scored) {
        flow.score = guess.trust;
        flow.scored = 1;
    }
    claim.expected = guess.addr;
    claim.state = claim_state::withheld;
    if (flow.score < min_confidence_)
        return;
    claim.state = claim_state::answered;
    out.addr = guess.addr;
    out.confidence = flow.score;
    out.ahead = guess.ahead;
}

bool landing::arrive(const zcp_envelope_t &envelope, zcp_landing_t &out) noexcept
{
    stats_.arrivals++;
    out = {0, 0.0f, 0, kUntracked};
    uint32_t exact;
    uint32_t any_size;
    const bool room = free_ != 0 || fresh_ < claims_.size();
    if (!room || !open_flows(envelope, exact, any_size)) {
        untracked_++;
        return false;
    }
    out.claim = take_claim(exact, any_size);
    open_claim &claim = *find_claim(out.claim);
    answer(envelope, claim, out);
    return claim.state == claim_state::answered;
}

void landing::score(const open_claim &claim, uint64_t addr)
{
    if (claim.state != claim_state::answered)
        stats_.unknown++;
    else if (claim.expected == addr)
        stats_.hits++;
    else
        stats_.misses++;
    if (claim.state == claim_state::answered && claim.expected != addr &&
        congruent(claim.expected, addr))
        stats_.congruent++;

    /* Withheld guesses count too: that is how a silenced flow is heard again. */
    if (claim.state != claim_state::unknown) {
        flow_counts &flow = flows_.value_at(claim.flow);
        const float outcome = predictor_->right(claim.expected, addr) ? 1.0f : 0.0f;
        flow.score += kScoreStep * (outcome - flow.score);
    }
}

void landing::settle(zcp_claim_t id, uint64_t addr) noexcept
{
    if (id == kUntracked && untracked_ > 0) {
        untracked_--;
        stats_.settled++;
        stats_.unknown++;
        return;
    }
    open_claim *claim = find_claim(id);
    if (!claim)
        return;
    stats_.settled++;
    score(*claim, addr);
    const zcp_receive_t received = {flows_.key_at(claim->flow).envelope(), addr};
    release_claim(*claim);
    receive(received);
}

void landing::cancel(zcp_claim_t id) noexcept
{
    if (id == kUntracked && untracked_ > 0) {
        untracked_--;
        stats_.cancelled++;
        return;
    }
    open_claim *claim = find_claim(id);
    if (!claim)
        return;
    stats_.cancelled++;
    release_claim(*claim);
}

uint32_t landing::next(std::span<zcp_receive_t> out) const noexcept
{
    return predictor_->next(out.first(std::min<size_t>(out.size(), horizon_)));
}

void landing::read_stats(zcp_stats_t &stats) const noexcept
{
    stats = stats_;
    stats.bytes =
        sizeof(*this) + predictor_->bytes() + flows_.bytes() + claims_.bytes() + scratch_.bytes();
}

} // namespace zc::predict

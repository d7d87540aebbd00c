/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

#include <algorithm>

#include "predictor.h"

using zc::predict::claim_state;
using zc::predict::claims;
using zc::predict::congruent;

void zcp::receive(const zcp_receive_t &receive) noexcept
{
    stats_.receives++;
    learn(receive);
}

bool zcp::arrive(const zcp_envelope_t &envelope, zcp_landing_t &out) noexcept
{
    stats_.arrivals++;
    out = {0, 0.0f, 0, claims::kUntracked, 0};
    if (claims_.full()) {
        untracked_++;
        return false;
    }
    message &claim = claims_.take();
    claim.bytes = std::min(envelope.bytes, message::kMostBytes) & message::kMostBytes;
    if (!open(envelope, claim)) {
        claims_.release(claim);
        untracked_++;
        return false;
    }
    out.claim = claims_.id_of(claim);
    answer(envelope, claim, out);
    return claim.state == claim_state::answered || claim.state == claim_state::answered_class;
}

void zcp::count(const message &claim, uint64_t addr)
{
    stats_.settled++;
    stats_.receives++;
    const bool same_class = congruent(claim.expected, addr);
    if (claim.state == claim_state::answered_class && same_class) {
        stats_.hits++;
    } else if (claim.state == claim_state::answered_class) {
        stats_.misses++;
    } else if (claim.state != claim_state::answered) {
        stats_.unknown++;
    } else if (claim.expected == addr) {
        stats_.hits++;
    } else {
        stats_.misses++;
        stats_.congruent += same_class;
    }
}

void zcp::settle(zcp_claim_t id, uint64_t addr) noexcept
{
    if (id == claims::kUntracked && untracked_ > 0) {
        untracked_--;
        stats_.settled++;
        stats_.unknown++;
        return;
    }
    message *claim = claims_.find(id);
    if (!claim)
        return;
    count(*claim, addr);
    settle(*claim, addr);
    claims_.release(*claim);
}

void zcp::cancel(zcp_claim_t id) noexcept
{
    if (id == claims::kUntracked && untracked_ > 0) {
        untracked_--;
        stats_.cancelled++;
        return;
    }
    message *claim = claims_.find(id);
    if (!claim)
        return;
    stats_.cancelled++;
    close(*claim);
    claims_.release(*claim);
}

void zcp::read_stats(zcp_stats_t &stats) const noexcept
{
    stats = stats_;
    stats.bytes = sizeof(*this) + claims_.bytes() + bytes();
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "accuracy.h"

#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "contender.h"

namespace zc::report {

namespace {

using sample = std::tuple<int32_t, uint64_t, uint64_t>;

sample sample_of(const zcp_receive_t &r)
{
    return {r.envelope.source, r.envelope.bytes, r.addr};
}

std::vector<size_t> positions(const trace &trace, order order)
{
    if (order == order::arrival)
        return trace.arrival_order();
    std::vector<size_t> posted(trace.receives.size());
    std::iota(posted.begin(), posted.end(), size_t{0});
    return posted;
}

void count(shares_ahead &shares, const traced_receive &r, uint32_t horizon, bool right)
{
    shares[every_size][horizon - 1].count(right);
    if (r.large())
        shares[over_8k][horizon - 1].count(right);
}

/** @said: NULL: nothing. */
void count_all(accuracy &result, const traced_receive &r, uint32_t horizon,
               const zcp_receive_t *said)
{
    const bool size = said && said->envelope.bytes == r.receive.envelope.bytes;
    const bool address = said && said->addr == r.receive.addr;
    count(result.ahead, r, horizon, said && sample_of(*said) == sample_of(r.receive));
    count(result.parts[static_cast<size_t>(part::address)], r, horizon, address);
    count(result.parts[static_cast<size_t>(part::size)], r, horizon, size);
    count(result.parts[static_cast<size_t>(part::both)], r, horizon, address && size);
}

/** Notes when the predictor has got the hang of the stream. */
class learning_time {
  public:
    void count(bool right)
    {
        seen_++;
        recent_ += right;
        window_.push_back(right);
        if (window_.size() > kWindow)
            recent_ -= window_[window_.size() - kWindow - 1];
        if (learned_after_ < 0 && seen_ >= kWindow && recent_ * 10 >= kWindow * 9)
            learned_after_ = static_cast<int64_t>(seen_ - kWindow);
    }
    int64_t learned_after() const { return learned_after_; }

  private:
    static constexpr size_t kWindow = 50;
    std::vector<bool> window_;
    size_t seen_ = 0;
    size_t recent_ = 0;
    int64_t learned_after_ = -1;
};

/** The last predictions, each kept until what it foretold has come. */
class pending {
  public:
    void store(size_t now, std::span<const zcp_receive_t> coming)
    {
        for (uint32_t h = 1; h <= kHorizons; h++) {
            slot &place = slots_[(now + h - 1) % kHorizons][h - 1];
            place.given = h <= coming.size();
            if (place.given)
                place.receive = coming[h - 1];
        }
    }
    /** What was said of receive @now, @horizon before; NULL: nothing. */
    const zcp_receive_t *said(size_t now, uint32_t horizon) const
    {
        const slot &place = slots_[now % kHorizons][horizon - 1];
        return place.given && now + 1 >= horizon ? &place.receive : nullptr;
    }

  private:
    struct slot {
        bool given = false;
        zcp_receive_t receive{};
    };
    std::array<std::array<slot, kHorizons>, kHorizons> slots_;
};

next_outcome outcome(const zcp_receive_t *said, const zcp_receive_t &came, bool seen)
{
    if (said && sample_of(*said) == sample_of(came))
        return next_outcome::right;
    if (!seen)
        return next_outcome::never_seen;
    if (!said)
        return next_outcome::silent;
    if (said->envelope.source != came.envelope.source)
        return next_outcome::wrong_sender;
    return said->envelope.bytes != came.envelope.bytes ? next_outcome::wrong_size
                                                       : next_outcome::wrong_address;
}

} // namespace

accuracy measure_accuracy(const trace &trace, const std::string &predictor, order order)
{
    const auto contender = make_contender(predictor);
    const auto stream = positions(trace, order);
    accuracy result;
    pending pending;
    learning_time learning;
    std::set<sample> seen;
    std::array<zcp_receive_t, kHorizons> coming;
    for (size_t now = 0; now < stream.size(); now++) {
        const traced_receive &r = trace.receives[stream[now]];
        pending.store(now, {coming.data(), contender->next(coming)});
        for (uint32_t h = 1; h <= kHorizons; h++)
            count_all(result, r, h, pending.said(now, h));
        const bool was_seen = !seen.insert(sample_of(r.receive)).second;
        const next_outcome how = outcome(pending.said(now, 1), r.receive, was_seen);
        if (r.large())
            result.outcomes[static_cast<size_t>(how)]++;
        learning.count(how == next_outcome::right);
        contender->receive(r.receive);
    }
    result.learned_after = learning.learned_after();
    return result;
}

accuracy measure_keyed_accuracy(const trace &trace, const std::string &predictor, order order)
{
    const auto stream = positions(trace, order);
    accuracy result;
    for (uint32_t h = 1; h <= kHorizons; h++) {
        const auto contender = make_contender(predictor);
        zcp_t *engine = contender->engine();
        std::vector<zcp_claim_t> claims;
        learning_time learning;
        for (size_t now = 0; now < stream.size(); now++) {
            const traced_receive &r = trace.receives[stream[now]];
            zcp_landing_t landing{};
            const bool known = zcp_arrival(engine, &r.receive.envelope, &landing) == 1;
            const bool right = known && landing.addr == r.receive.addr;
            count(result.ahead, r, h, right);
            learning.count(right);
            claims.push_back(landing.claim);
            if (now + 1 >= h)
                zcp_settle(engine, claims[now + 1 - h],
                           trace.receives[stream[now + 1 - h]].receive.addr);
        }
        if (h == 1)
            result.learned_after = learning.learned_after();
    }
    return result;
}

} // namespace zc::report

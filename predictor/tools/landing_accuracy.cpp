/* SPDX-License-Identifier: BSD-3-Clause */
#include "landing_accuracy.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "contender.h"

namespace zc::report {

namespace {

constexpr uint64_t kPageBytes = 4096;
using sender = std::tuple<uint32_t, int32_t, int32_t>;

struct event {
    int64_t time;
    size_t row;
    bool arrival;
};

std::vector<event> replay_of(const trace &trace)
{
    std::vector<event> events;
    for (size_t i = 0; i < trace.receives.size(); i++) {
        const traced_receive &r = trace.receives[i];
        if (r.unexpected())
            events.push_back({r.sent, i, true});
        events.push_back({r.posted, i, false});
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const event &a, const event &b) { return a.time < b.time; });
    return events;
}

/** Plays @events to @engine; @asked sees each answer. */
template <typename Asked>
void play(zcp_t *engine, const trace &trace, const std::vector<event> &events, Asked asked)
{
    std::vector<zcp_claim_t> claims(trace.receives.size());
    for (const event &event : events) {
        const traced_receive &r = trace.receives[event.row];
        if (event.arrival) {
            zcp_landing_t landing;
            const bool known = zcp_arrival(engine, &r.receive.envelope, &landing) == 1;
            claims[event.row] = landing.claim;
            asked(event.row, known, landing);
        } else if (r.unexpected()) {
            zcp_settle(engine, claims[event.row], r.receive.addr);
        } else {
            zcp_receive(engine, &r.receive);
        }
    }
}

/** What is known of the addresses of each sender and tag, beforehand and in hindsight. */
class address_book {
  public:
    explicit address_book(const trace &trace) : fresh_(trace.receives.size())
    {
        std::map<sender, std::set<uint64_t>> seen;
        std::map<sender, size_t> previous;
        next_.assign(trace.receives.size(), 0);
        for (size_t i = 0; i < trace.receives.size(); i++) {
            const zcp_receive_t &r = trace.receives[i].receive;
            const sender key{r.envelope.comm, r.envelope.source, r.envelope.tag};
            auto &addresses = seen[key];
            fresh_[i] = addresses.empty()                 ? unseen_key
                        : addresses.insert(r.addr).second ? unseen_address
                                                          : known;
            addresses.insert(r.addr);
            if (const auto before = previous.find(key); before != previous.end())
                next_[before->second] = i;
            previous[key] = i;
        }
    }

    landing_outcome miss(size_t row, bool silent) const
    {
        if (fresh_[row] == unseen_key)
            return landing_outcome::unseen_key;
        if (silent)
            return landing_outcome::silent;
        if (fresh_[row] == known)
            return landing_outcome::wrong_of_several;
        const size_t next = next_[row];
        return next != 0 && fresh_[next] == unseen_address ? landing_outcome::phase_change
                                                           : landing_outcome::new_address;
    }

  private:
    enum freshness : uint8_t { known, unseen_address, unseen_key };
    std::vector<freshness> fresh_;
    std::vector<size_t> next_; /* row of the same sender and tag; 0: none */
};

bool claim_holds(const zcp_landing_t &landing, uint64_t addr)
{
    return landing.modulus ? (landing.addr ^ addr) % landing.modulus == 0 : landing.addr == addr;
}

} // namespace

landing_result measure_landing(const trace &trace, const std::string &predictor)
{
    const auto contender = make_contender(predictor);
    const address_book book(trace);
    landing_result result;
    const auto count = [&](size_t row, bool known, const zcp_landing_t &landing) {
        const traced_receive &r = trace.receives[row];
        const bool exact = known && landing.addr == r.receive.addr;
        const bool congruent = known && (landing.addr ^ r.receive.addr) % kPageBytes == 0;
        for (const size_class c : {every_size, over_8k}) {
            if (c == over_8k && !r.large())
                continue;
            landing_result::counts &counts = result.by_class[c];
            counts.exact += exact;
            counts.congruent += congruent;
            counts.silent += !known;
            counts.n++;
        }
        if (r.large()) {
            const landing_outcome how = exact       ? landing_outcome::exact
                                        : congruent ? landing_outcome::congruent
                                                    : book.miss(row, !known);
            result.outcomes[static_cast<size_t>(how)]++;
        }
        if (known) {
            const auto bin = static_cast<size_t>(landing.confidence * kConfidenceBins);
            result.calibration[std::min(bin, kConfidenceBins - 1)].count(
                claim_holds(landing, r.receive.addr));
        }
    };
    play(contender->engine(), trace, replay_of(trace), count);

    zcp_stats_t stats{};
    stats.size = sizeof(stats);
    zcp_stats(contender->engine(), &stats);
    result.bytes = stats.bytes;
    return result;
}

double measure_cost_ns(const trace &trace, const std::string &predictor)
{
    using clock = std::chrono::steady_clock;
    const auto contender = make_contender(predictor);
    const auto events = replay_of(trace);
    const auto start = clock::now();
    play(contender->engine(), trace, events, [](size_t, bool, const zcp_landing_t &) {});
    const std::chrono::duration<double, std::nano> taken = clock::now() - start;
    return trace.receives.empty() ? 0 : taken.count() / static_cast<double>(trace.receives.size());
}

} // namespace zc::report

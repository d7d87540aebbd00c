/* SPDX-License-Identifier: BSD-3-Clause */
#include "evaluate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>

#include "scotch_cut.h"

namespace {

constexpr uint32_t kWarmUp = 2;     /* periods */
constexpr size_t kMostScored = 150; /* evenly spread; asking and cutting is most of the work */

using pair = std::pair<uint32_t, uint32_t>;
using events = std::span<const zcp_event_t>;

struct release {
    void operator()(zcp_groups_t *g) const { zcp_groups_destroy(g); }
};
using engine = std::unique_ptr<zcp_groups_t, release>;

engine make(uint32_t ranks, zcp_groups_kind_t kind, uint32_t period)
{
    zcp_groups_params_t params{};
    params.size = sizeof(params);
    params.ranks = ranks;
    params.kind = kind;
    params.period_events = period;
    params.kmp = ZCP_GROUPS_KMP_ZC;
    params.adaptive = 1;
    zcp_groups_t *out = nullptr;
    if (zcp_groups_create(&params, &out) != 0)
        throw std::runtime_error("engine refused");
    return engine(out);
}

using flows = std::vector<zcp_flow_t>;

/** What a predictor says: which ranks will communicate, and what to cut groups by. */
struct foretold {
    flows likely;
    flows mean;
};

template <typename Ask>
flows ask(const zcp_groups_t *g, Ask how)
{
    const int64_t nr = how(g, nullptr, 0);
    flows out(static_cast<size_t>(std::max<int64_t>(nr, 0)));
    how(g, out.data(), out.size());
    return out;
}

flows actual(events period)
{
    std::map<pair, zcp_flow_t> sums;
    for (const zcp_event_t &e : period) {
        zcp_flow_t &f = sums[{e.src, e.dst}];
        f.src = e.src;
        f.dst = e.dst;
        f.bytes += e.bytes;
        f.messages++;
    }
    flows out;
    for (const auto &[key, f] : sums) {
        if (f.src != f.dst)
            out.push_back(f);
    }
    return out;
}

double jaccard(const flows &likely, const flows &came)
{
    std::set<pair> either;
    for (const flows *each : {&likely, &came}) {
        for (const zcp_flow_t &f : *each)
            either.insert({f.src, f.dst});
    }
    const size_t both = likely.size() + came.size() - either.size();
    return either.empty() ? 1 : static_cast<double>(both) / static_cast<double>(either.size());
}

double inside(const flows &came, const std::vector<uint32_t> &group_of)
{
    double kept = 0;
    double all = 0;
    for (const zcp_flow_t &f : came) {
        all += static_cast<double>(f.bytes);
        kept += group_of[f.src] == group_of[f.dst] ? static_cast<double>(f.bytes) : 0;
    }
    return all > 0 ? kept / all : 1;
}

std::vector<uint32_t> groups(const flows &traffic, cutter how, uint32_t ranks, uint32_t max_size)
{
    if (how == cutter::scotch)
        return scotch_cut(traffic, ranks, max_size);
    std::vector<uint32_t> out(ranks);
    zcp_flows_cut(traffic.data(), traffic.size(), ranks, max_size, out.data());
    return out;
}

double now_ns()
{
    using namespace std::chrono;
    return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

template <typename Learn, typename Foretell>
void score_periods(const zc::groups::event_stream &stream, uint32_t period, Learn learn,
                   Foretell foretell, cutter how, uint32_t max_size, scores &out)
{
    const events all(stream.events);
    const size_t periods = all.size() / period;
    /* Odd: cycles of programs are often a power of two periods long. */
    const size_t stride = (periods / kMostScored + 1) | 1;
    for (size_t i = 0; i + 1 < periods; i++) {
        learn(all.subspan(i * period, period));
        if (i + 1 < kWarmUp || i % stride != 0)
            continue;
        const events next = all.subspan((i + 1) * period, period);
        const foretold said = foretell(next);
        const auto came = actual(next);
        out.jaccard.push_back(jaccard(said.likely, came));
        const double start = now_ns();
        const auto group_of = groups(said.mean, how, stream.ranks, max_size);
        out.cut_us.push_back((now_ns() - start) * 1e-3);
        out.inside.push_back(inside(came, group_of));
    }
}

} // namespace

scores evaluate(const zc::groups::event_stream &stream, zcp_groups_kind_t kind, cutter how,
                uint32_t period, uint32_t max_size)
{
    scores out;
    const engine g = make(stream.ranks, kind, period);
    double spent = 0;
    size_t nr = 0;
    const auto learn = [&](events past) {
        const double start = now_ns();
        for (const zcp_event_t &e : past)
            zcp_groups_event(g.get(), &e);
        spent += now_ns() - start;
        nr += past.size();
    };
    const auto foretell = [&g](events) {
        return foretold{ask(g.get(), zcp_groups_forecast), ask(g.get(), zcp_groups_expect)};
    };
    score_periods(stream, period, learn, foretell, how, max_size, out);
    out.ns_per_event = nr ? spent / static_cast<double>(nr) : 0;
    zcp_groups_stats_t stats{};
    stats.size = sizeof(stats);
    zcp_groups_stats(g.get(), &stats);
    out.bytes = stats.peak_bytes;
    return out;
}

scores evaluate_oracle(const zc::groups::event_stream &stream, uint32_t period, uint32_t max_size)
{
    scores out;
    const auto foretell = [](events future) { return foretold{actual(future), actual(future)}; };
    score_periods(
        stream, period, [](events) {}, foretell, cutter::ours, max_size, out);
    return out;
}

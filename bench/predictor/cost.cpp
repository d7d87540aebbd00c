/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include <fmt/format.h>

#include "zcp/predictor.h"

namespace {

using steady = std::chrono::steady_clock;

/** Receives of a made-up program. */
struct workload {
    std::string name;
    std::vector<zcp_receive_t> round; /* repeated for ever */
};

struct engine {
    explicit engine(zcp_kind_t kind, uint32_t horizon = 0, uint32_t window = 0)
    {
        zcp_params_t params{};
        params.size = sizeof(params);
        params.kind = kind;
        params.horizon = horizon;
        params.dpd_window = window;
        params.max_bytes = window > 4096 ? size_t{4} << 20 : 0;
        zcp_t *made = nullptr;
        if (zcp_create(&params, &made) != 0)
            throw std::bad_alloc();
        handle.reset(made);
    }
    struct destroy {
        void operator()(zcp_t *p) const { zcp_destroy(p); }
    };
    std::unique_ptr<zcp_t, destroy> handle;
};

/* Every third key alternates between two buffers, the others have one each. The
 * order of the keys is shuffled: a cache would learn a plain one. */
workload live_keys(const std::string &name, size_t keys, size_t peers)
{
    std::mt19937 random(1);
    workload workload{name, {}};
    for (uint64_t pass = 0; pass < 2; pass++) {
        std::vector<zcp_receive_t> receives;
        for (size_t i = 0; i < keys; i++) {
            const zcp_envelope_t envelope = {1, static_cast<int32_t>(i % peers),
                                             static_cast<int32_t>(i / peers), 65536};
            receives.push_back({envelope, (i + 1) * 0x100000 + (i % 3 == 0 ? pass * 0x80000 : 0)});
        }
        for (size_t i = receives.size(); i > 1; i--)
            std::swap(receives[i - 1], receives[random() % i]);
        workload.round.insert(workload.round.end(), receives.begin(), receives.end());
    }
    return workload;
}

/** Two sweeps of 31 planes and an exchange, as NAS LU makes them. */
workload nested_loops()
{
    workload workload{"nested-126", {}};
    for (int32_t sweep = 0; sweep < 2; sweep++) {
        for (int plane = 0; plane < 31; plane++) {
            workload.round.push_back({{1, 1, sweep, 1280}, 0x10000});
            workload.round.push_back({{1, 2, sweep, 1280}, 0x20000});
        }
        workload.round.push_back({{1, 3 + sweep, 9, 81920}, 0x30000});
    }
    return workload;
}

/** Sizes that are new every time, as of particles. */
workload drifting_sizes(size_t peers)
{
    std::mt19937 random(2);
    workload workload{"drifting", {}};
    for (size_t i = 0; i < 20000; i++) {
        const auto source = static_cast<int32_t>(i % peers);
        workload.round.push_back({{1, source, 5, 60000 + random() % 8000},
                                  0x100000 * (static_cast<uint64_t>(source) + 1)});
    }
    return workload;
}

workload noise()
{
    std::mt19937 random(3);
    workload workload{"noise", {}};
    for (size_t i = 0; i < 20000; i++)
        workload.round.push_back(
            {{1, static_cast<int32_t>(random() % 500), 1, random() % 100000}, random() * 16ull});
    return workload;
}

/** Nanoseconds per event of each of @batches batches, after as many to warm up. */
template <typename Event>
std::vector<double> time_batches(const workload &workload, size_t batches, Event event)
{
    constexpr size_t kBatch = 500;
    std::vector<double> ns;
    size_t at = 0;
    const size_t warm_up = std::max(batches, 4 * workload.round.size() / kBatch);
    for (size_t batch = 0; batch < batches + warm_up; batch++) {
        const auto start = steady::now();
        for (size_t i = 0; i < kBatch; i++) {
            event(workload.round[at]);
            at = at + 1 == workload.round.size() ? 0 : at + 1;
        }
        const std::chrono::duration<double, std::nano> taken = steady::now() - start;
        if (batch >= warm_up)
            ns.push_back(taken.count() / kBatch);
    }
    return ns;
}

void record(report &out, const std::string &test, zcp_kind_t kind, const char *metric,
            const std::vector<double> &ns)
{
    out.add({test, zcp_kind_name(kind), metric, "ns", ns});
    fmt::print("{:<18}{:<12}{:<26}{:>10.1f}{:>10.1f}{:>10.1f}\n", test, zcp_kind_name(kind), metric,
               quantile(ns, 0.5), quantile(ns, 0.1), quantile(ns, 0.9));
}

std::vector<double> time_queries(zcp_t *engine, const workload &workload, size_t batches)
{
    return time_batches(workload, batches, [&](const zcp_receive_t &r) {
        zcp_landing_t answer;
        zcp_arrival(engine, &r.envelope, &answer);
        zcp_settle(engine, answer.claim, r.addr);
    });
}

/** Queries, receives alone, and the next ten; returns the queries. */
std::vector<double> measure(report &out, const workload &workload, zcp_kind_t kind, size_t batches)
{
    engine landing(kind);
    const auto queries = time_queries(landing.handle.get(), workload, batches);
    record(out, workload.name, kind, "receive and landing query", queries);
    engine posted(kind);
    record(out, workload.name, kind, "receive",
           time_batches(workload, batches,
                        [&](const zcp_receive_t &r) { zcp_receive(posted.handle.get(), &r); }));
    std::vector<zcp_receive_t> coming(10);
    record(out, workload.name, kind, "next 10",
           time_batches(workload, batches, [&](const zcp_receive_t &) {
               zcp_next(posted.handle.get(), coming.data(), 10);
           }));
    return queries;
}

zcp_stats_t stats_of(const engine &engine)
{
    zcp_stats_t stats{};
    stats.size = sizeof(stats);
    zcp_stats(engine.handle.get(), &stats);
    return stats;
}

} // namespace

costs measure_costs(report &out, size_t batches, bool quick)
{
    costs result;
    fmt::print("{:<18}{:<12}{:<26}{:>10}{:>10}{:>10}\n", "case", "predictor", "ns per event",
               "median", "p10", "p90");
    const auto kinds = {ZCP_DEFAULT, ZCP_GRAPH, ZCP_DPD, ZCP_LAST_SIZE};
    const auto thousand = live_keys("keys-1000", 1000, 64);
    for (const zcp_kind_t kind : kinds) {
        const auto queries = measure(out, thousand, kind, batches);
        if (kind == ZCP_DEFAULT)
            result.live_keys = queries;
    }
    for (size_t peers = 2; peers <= 4096; peers *= quick ? 2048 : 2) {
        const auto workload = live_keys(fmt::format("peers-{}", peers), peers, peers);
        for (const zcp_kind_t kind : kinds) {
            const double median = quantile(measure(out, workload, kind, batches), 0.5);
            if (kind != ZCP_DEFAULT)
                continue;
            result.least_of_peers =
                result.least_of_peers == 0 ? median : std::min(result.least_of_peers, median);
            result.most_of_peers = std::max(result.most_of_peers, median);
        }
    }
    for (const auto &workload : {nested_loops(), drifting_sizes(64), noise()}) {
        for (const zcp_kind_t kind : kinds)
            measure(out, workload, kind, batches);
    }

    /* A run of two million receives, in tenths. */
    engine lasting(ZCP_DEFAULT);
    for (int tenth = 1; tenth <= 10; tenth++) {
        const auto ns = time_queries(lasting.handle.get(), thousand, quick ? 4 : 200);
        record(out, fmt::format("length-{}/10", tenth), ZCP_DEFAULT, "receive and landing query",
               ns);
        (tenth == 1 ? result.early : result.late) = quantile(ns, 0.5);
    }
    for (const uint32_t horizon : {8u, 64u, 512u}) {
        engine engine(ZCP_DEFAULT, horizon);
        const auto ns = time_queries(engine.handle.get(), thousand, batches);
        record(out, fmt::format("horizon-{}", horizon), ZCP_DEFAULT, "receive and landing query",
               ns);
        (horizon == 8 ? result.short_horizon : result.long_horizon) = quantile(ns, 0.5);
    }
    /* The trade-off of the papers: a window long enough for the pattern, or a quick answer. */
    for (const uint32_t window : {64u, 256u, 1024u, 4096u}) {
        engine engine(ZCP_DPD, 0, window);
        record(out, fmt::format("window-{}", window), ZCP_DPD, "receive",
               time_batches(nested_loops(), batches,
                            [&](const zcp_receive_t &r) { zcp_receive(engine.handle.get(), &r); }));
    }

    std::mt19937 random(4);
    engine deaf(ZCP_DEFAULT);
    for (int i = 0; i < (quick ? 20000 : 200000); i++) {
        const zcp_envelope_t envelope = {1, static_cast<int32_t>(random() % 500), 1,
                                         i % 2 ? 65536 : random() % 100000};
        zcp_landing_t answer;
        zcp_arrival(deaf.handle.get(), &envelope, &answer);
        zcp_settle(deaf.handle.get(), answer.claim, random() * uint64_t{16});
    }
    const zcp_stats_t stats = stats_of(deaf);
    result.silent = 100.0 * static_cast<double>(stats.unknown) /
                    static_cast<double>(std::max(stats.settled, uint64_t{1}));
    result.bytes = static_cast<double>(stats.bytes);
    return result;
}

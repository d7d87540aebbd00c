/* SPDX-License-Identifier: BSD-3-Clause */

/* What prediction costs: nanoseconds per receive, with and without a landing
 * query, by number of live keys, by number of peers, by length of the run, for
 * the default engine beside the graph and DPD of the papers. */
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "zcp/predictor.h"

namespace {

using nlohmann::ordered_json;
using steady = std::chrono::steady_clock;

struct options {
    std::string out = "out/predict.jsonl";
    size_t batches = 200;
    bool quick = false;
};

/** Receives of a made-up program. */
struct workload {
    std::string name;
    std::vector<zcp_receive_t> round; /* repeated for ever */
};

struct engine {
    explicit engine(zcp_kind_t kind)
    {
        zcp_params_t params{};
        params.size = sizeof(params);
        params.kind = kind;
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
    std::sort(ns.begin(), ns.end());
    return ns;
}

class results {
  public:
    explicit results(const std::string &path)
    {
        const auto parent = std::filesystem::path(path).parent_path();
        if (!parent.empty())
            std::filesystem::create_directories(parent);
        out_.open(path);
        utsname system{};
        uname(&system);
        const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
        out_ << ordered_json{{"context",
                              {{"kernel", system.release},
                               {"machine", system.machine},
                               {"date", fmt::format("{:%FT%TZ}", fmt::gmtime(now))}}}}
             << "\n";
        fmt::print("{:<18}{:<12}{:<26}{:>10}{:>10}{:>10}\n", "case", "predictor", "per event",
                   "median", "p10", "p90");
    }

    void add(const std::string &test, const char *impl, const char *metric, const char *unit,
             const std::vector<double> &sorted)
    {
        const auto at = [&](double q) {
            return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
        };
        out_ << ordered_json{{"bench", "predict"}, {"case", test},     {"impl", impl},
                             {"bytes", 0},         {"metric", metric}, {"unit", unit},
                             {"median", at(0.5)},  {"p10", at(0.1)},   {"p90", at(0.9)},
                             {"n", sorted.size()}}
             << "\n";
        fmt::print("{:<18}{:<12}{:<26}{:>10.1f}{:>10.1f}{:>10.1f}\n", test, impl, metric, at(0.5),
                   at(0.1), at(0.9));
    }
    bool good()
    {
        out_.flush();
        return out_.good();
    }

  private:
    std::ofstream out_;
};

void measure(results &results, const workload &workload, zcp_kind_t kind, const options &options)
{
    const char *name = zcp_kind_name(kind);
    /* DPD searches its prediction of 16 for each query; still one pass is enough. */
    engine landing(kind);
    results.add(workload.name, name, "receive and landing query", "ns",
                time_batches(workload, options.batches, [&](const zcp_receive_t &r) {
                    zcp_landing_t answer;
                    zcp_arrival(landing.handle.get(), &r.envelope, &answer);
                    zcp_settle(landing.handle.get(), answer.claim, r.addr);
                }));
    engine posted(kind);
    results.add(workload.name, name, "receive", "ns",
                time_batches(workload, options.batches, [&](const zcp_receive_t &r) {
                    zcp_receive(posted.handle.get(), &r);
                }));
    std::vector<zcp_receive_t> coming(10);
    results.add(workload.name, name, "next 10", "ns",
                time_batches(workload, options.batches, [&](const zcp_receive_t &) {
                    zcp_next(posted.handle.get(), coming.data(), 10);
                }));
}

} // namespace

int main(int argc, char **argv)
{
    options options;
    CLI::App app("cost of prediction", "bench_predict");
    app.add_option("--out", options.out, "JSON lines go to this file");
    app.add_option("--batches", options.batches, "timed batches of 500 events per case")
        ->check(CLI::PositiveNumber);
    app.add_flag("--quick", options.quick, "two cases only");
    CLI11_PARSE(app, argc, argv);

    results results(options.out);
    std::vector<workload> workloads = {live_keys("keys-1000", 1000, 64)};
    for (size_t peers = 2; peers <= 4096; peers *= options.quick ? 4096 : 2)
        workloads.push_back(live_keys(fmt::format("peers-{}", peers), peers, peers));
    workloads.push_back(nested_loops());
    workloads.push_back(drifting_sizes(64));
    workloads.push_back(noise());
    for (const workload &workload : workloads) {
        for (const zcp_kind_t kind : {ZCP_DEFAULT, ZCP_GRAPH, ZCP_DPD, ZCP_LAST_SIZE})
            measure(results, workload, kind, options);
    }
    if (!results.good()) {
        fmt::print(stderr, "bench_predict: cannot write {}\n", options.out);
        return 1;
    }
    return 0;
}

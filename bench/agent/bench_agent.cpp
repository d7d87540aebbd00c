/* SPDX-License-Identifier: BSD-3-Clause */

/* What the agents cost: a message told to the agent by a rank, messages between agents. */
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include <benchmark/benchmark.h>

#include "admission.h"
#include "message.h"
#include "placement.h"
#include "processor_speed.h"
#include "zcm/profile.h"

using namespace zc::agent;

namespace {

/** In a directory of its own, which goes with it. */
struct profile_file {
    std::string directory;
    zcm_profile *p = nullptr;

    profile_file()
    {
        char name[] = "/tmp/zca-bench-XXXXXX";
        if (const char *made = mkdtemp(name)) {
            directory = made;
            zcm_profile_create(made, 1, "bench", 0, 64, 4, &p);
        }
    }
    ~profile_file()
    {
        zcm_profile_close(p, directory.c_str());
        std::filesystem::remove_all(directory);
    }
};

void BM_ProfileSent(benchmark::State &state)
{
    profile_file file;
    if (file.p == nullptr)
        return state.SkipWithError("no profile");
    std::uint64_t t = 0;
    for (auto _ : state) {
        zcm_profile_sent(file.p, static_cast<std::uint32_t>(t % 8), 65536, t);
        t++;
    }
}
BENCHMARK(BM_ProfileSent);

void BM_ProfileSentWithoutAgent(benchmark::State &state)
{
    zcm_profile *none = nullptr;
    std::uint64_t t = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(none);
        zcm_profile_sent(none, 1, 65536, t++);
    }
}
BENCHMARK(BM_ProfileSentWithoutAgent);

void BM_ProfilePoint(benchmark::State &state)
{
    profile_file file;
    if (file.p == nullptr)
        return state.SkipWithError("no profile");
    std::uint64_t i = 0;
    for (auto _ : state)
        zcm_profile_point(file.p, ++i, 0);
}
BENCHMARK(BM_ProfilePoint);

message a_ping()
{
    msg::ping ping;
    for (node_id n = 1; n <= 10; n++) {
        member m;
        m.id = n;
        m.host = "node-with-a-name";
        m.address = "tcp://node-with-a-name:7421";
        ping.gossip.push_back(m);
    }
    return {1, 1, 1, ping};
}

void BM_EncodePing(benchmark::State &state)
{
    message m = a_ping();
    for (auto _ : state)
        benchmark::DoNotOptimize(encode(m));
}
BENCHMARK(BM_EncodePing);

void BM_AdmitPing(benchmark::State &state)
{
    admission door(99);
    message m = a_ping();
    for (auto _ : state) {
        state.PauseTiming();
        m.sequence++;
        std::string bytes = encode(m);
        state.ResumeTiming();
        message out;
        if (door.admit(bytes, 0, out) != flaw::none)
            state.SkipWithError("refused");
    }
}
BENCHMARK(BM_AdmitPing);

/* Its cost, and how exact it is: the slowest and the fastest of what was measured. */
void BM_ProcessorSpeed(benchmark::State &state)
{
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (auto _ : state) {
        const double speed = processor_speed().at(0);
        least = std::min(least, speed);
        most = std::max(most, speed);
    }
    state.counters["least"] = least;
    state.counters["most"] = most;
}
BENCHMARK(BM_ProcessorSpeed);

/* A ring of ranks over eight nodes, from a random beginning. */
void BM_Place(benchmark::State &state)
{
    auto ranks = static_cast<std::uint32_t>(state.range(0));
    random_source r(1);
    placement_problem p;
    p.room.assign(8, ranks / 8 + 1);
    p.cost.assign(64, 1);
    for (std::size_t i = 0; i < 8; i++)
        p.cost[9 * i] = 0;
    p.fixed.assign(ranks, false);
    for (rank_id k = 0; k < ranks; k++) {
        p.now.push_back(static_cast<std::uint32_t>(k % 8));
        p.flows.push_back({k, (k + 1) % ranks, 1000, 1, 1});
    }
    for (auto _ : state)
        benchmark::DoNotOptimize(place(p));
    auto placed = place(p);
    state.counters["cost"] = placement_cost(p, placed);
    state.counters["cost_before"] = placement_cost(p, p.now);
}
BENCHMARK(BM_Place)->ArgName("ranks")->RangeMultiplier(4)->Range(16, 256)->Unit(
    benchmark::kMicrosecond);

} // namespace

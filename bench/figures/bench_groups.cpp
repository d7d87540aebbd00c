/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_groups: how well the next period's traffic and groups are foretold, by the
 * default engine, the honest baselines and the predictors of Singh & Graham, on
 * synthetic streams and on real ones; and what that, and TEIRESIAS, costs.
 */

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "evaluate.h"
#include "events_csv.h"
#include "report.h"
#include "scotch_cut.h"
#include "synthetic.h"

using namespace zc::groups;

namespace {

struct options {
    std::string traces;
    std::string out = "out/groups.jsonl";
    std::vector<uint32_t> periods = {64, 336, 512};
    bool quick = false;
    bool patterns_only = false;
};

struct contender {
    const char *name;
    zcp_groups_kind_t kind;
    cutter how;
};

std::vector<contender> contenders()
{
    std::vector<contender> out = {
        {"zc", ZCP_GROUPS_DEFAULT, cutter::ours},
        {"persistence", ZCP_GROUPS_PERSISTENCE, cutter::ours},
        {"matrix", ZCP_GROUPS_MATRIX, cutter::ours},
        {"basic", ZCP_GROUPS_BASIC, cutter::ours},
        {"historical", ZCP_GROUPS_HISTORICAL, cutter::ours},
        {"levenshtein", ZCP_GROUPS_LEVENSHTEIN, cutter::ours},
    };
    if (scotch_available()) {
        out.push_back({"matrix-scotch", ZCP_GROUPS_MATRIX, cutter::scotch});
        out.push_back({"zc-scotch", ZCP_GROUPS_DEFAULT, cutter::scotch});
    }
    return out;
}

std::vector<event_stream> synthetic_streams(size_t events)
{
    const recipe clean{64, events, 0, 0, 1};
    const recipe noisy{64, events, 0.05, 32, 2};
    std::vector<event_stream> out = {
        master_slave(clean),   fem(clean),          butterfly(clean),    phases(clean, 8, 8),
        drifting(clean, 4096), random_pairs(clean), master_slave(noisy), fem(noisy),
        butterfly(noisy),      phases(noisy, 8, 8),
    };
    for (size_t i = 6; i < out.size(); i++)
        out[i].name += "-noisy";
    return out;
}

/** Runs below @folder that have events, by name. */
std::vector<event_stream> traced_streams(const std::string &folder)
{
    std::vector<std::filesystem::path> paths;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        const std::filesystem::path nested = entry.path() / "events.csv.gz";
        if (std::filesystem::exists(nested))
            paths.push_back(nested);
        else if (entry.path().filename().string().ends_with(".csv.gz"))
            paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<event_stream> out;
    for (const auto &path : paths) {
        out.push_back(read_events_csv(path));
        const std::string file = path.filename().string();
        out.back().name = file == "events.csv.gz" ? path.parent_path().filename().string()
                                                  : file.substr(0, file.find('.'));
    }
    return out;
}

double mean(const std::vector<double> &samples)
{
    return samples.empty() ? 0
                           : std::accumulate(samples.begin(), samples.end(), 0.0) /
                                 static_cast<double>(samples.size());
}

void print_heading(const std::vector<contender> &all)
{
    fmt::print("{:24} {:>6} {:>3}", "stream", "period", "n");
    for (const contender &c : all)
        fmt::print(" {:>13}", c.name);
    fmt::print(" {:>13}\n", "oracle");
}

void compare(const event_stream &stream, uint32_t period, report &out)
{
    const auto all = contenders();
    const uint32_t max_size = std::max(2u, stream.ranks / 4);
    std::string jaccard;
    std::string inside;
    std::string cost;
    size_t n = 0;
    const auto enter = [&](const char *impl, const scores &s) {
        const std::string name = fmt::format("{}/{}", stream.name, period);
        out.add({name, impl, "jaccard", "share", s.jaccard});
        out.add({name, impl, "inside", "share", s.inside});
        if (s.ns_per_event > 0) {
            out.add({name, impl, "learn", "ns/event", {s.ns_per_event}});
            out.add({name, impl, "cut", "us", s.cut_us});
            out.add({name, impl, "memory", "bytes", {static_cast<double>(s.bytes)}});
        }
        jaccard += fmt::format(" {:13.3f}", mean(s.jaccard));
        inside += fmt::format(" {:13.3f}", mean(s.inside));
        cost += s.ns_per_event > 0
                    ? fmt::format(" {:>13}", fmt::format("{:.0f}/{:.0f}", s.ns_per_event,
                                                         quantile(s.cut_us, 0.5)))
                    : fmt::format(" {:>13}", "");
        n = s.jaccard.size();
    };
    for (const contender &c : all)
        enter(c.name, evaluate(stream, c.kind, c.how, period, max_size));
    enter("oracle", evaluate_oracle(stream, period, max_size));
    if (n == 0)
        return;
    fmt::print("{:24} {:6} {:3}{}  pairs\n", stream.name, period, n, jaccard);
    fmt::print("{:24} {:6} {:3}{}  inside\n", "", "", "", inside);
    fmt::print("{:24} {:6} {:3}{}  ns to learn an event / us to cut\n", "", "", "", cost);
    std::fflush(stdout);
}

double seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void time_teiresias(const event_stream &stream, uint32_t literals, uint32_t window,
                    uint32_t support, int repetitions, report &out)
{
    std::vector<uint32_t> text;
    for (const zcp_event_t &e : stream.events)
        text.push_back(e.src * stream.ranks + e.dst);
    zcp_patterns_params_t params{};
    params.size = sizeof(params);
    params.literals = literals;
    params.window = window;
    params.support = support;
    std::vector<double> times;
    size_t nr = 0;
    size_t bytes = 0;
    uint32_t longest = 0;
    zcp_patterns_end_t end = ZCP_PATTERNS_COMPLETE;
    for (int i = 0; i < repetitions; i++) {
        zcp_patterns_t *found = nullptr;
        const double start = seconds();
        if (zcp_patterns_find(text.data(), text.size(), &params, &found) != 0)
            throw std::runtime_error("teiresias refused");
        times.push_back(seconds() - start);
        end = zcp_patterns_end(found);
        nr = zcp_patterns_count(found);
        zcp_patterns_cost(found, &bytes, nullptr);
        for (size_t p = 0; p < nr; p++) {
            zcp_pattern_t one;
            zcp_patterns_get(found, p, &one);
            longest = std::max(longest, one.literals);
        }
        zcp_patterns_destroy(found);
    }
    const std::string name = fmt::format("teiresias/{}/{}/L{}W{}K{}", stream.name, text.size(),
                                         literals, window, support);
    out.add({name, "zc", "time", "s", times});
    out.add({name, "zc", "patterns", "count", {static_cast<double>(nr)}});
    out.add({name, "zc", "memory", "bytes", {static_cast<double>(bytes)}});
    out.add({name, "zc", "complete", "bool", {end == ZCP_PATTERNS_COMPLETE ? 1.0 : 0.0}});
    fmt::print("{:48} {:6.3f} s  {:7} patterns, longest {:5}, {:6.1f} MB, {}\n", name,
               quantile(times, 0.5), nr, longest, static_cast<double>(bytes) * 1e-6,
               end == ZCP_PATTERNS_COMPLETE ? "complete" : "partial");
    std::fflush(stdout);
}

void bench_teiresias(const options &given, report &out)
{
    const size_t events = given.quick ? 20000 : 1000000;
    const uint32_t scale = static_cast<uint32_t>(1000000 / events);
    const int repetitions = given.quick ? 1 : 5;
    /* Jitter of a few places is what one communicator's traffic shows; where ranks
     * drift apart altogether, no pattern of all ranks together exists to be found. */
    std::vector<event_stream> streams = {
        butterfly({64, events, 0, 0, 1}),       butterfly({64, events, 0.01, 0, 1}),
        butterfly({64, events, 0.01, 2, 1}),    fem({64, events, 0.05, 0, 2}),
        phases({64, events, 0.01, 2, 3}, 8, 8), random_pairs({64, events, 0, 0, 4})};
    streams[1].name += "-noise1%";
    streams[2].name += "-noise1%-jitter2";
    streams[3].name += "-noise5%";
    streams[4].name += "-noise1%-jitter2";
    fmt::print("\nTEIRESIAS, {} events of 64 ranks\n", events);
    for (const event_stream &stream : streams) {
        for (const auto &[window, support] :
             {std::pair{3u, 1000u}, {4u, 2000u}, {5u, 1000u}, {5u, 250u}})
            time_teiresias(stream, 3, window, std::max(2u, support / scale), repetitions, out);
    }
}

void compare_all(const options &given, report &out)
{
    auto streams = synthetic_streams(given.quick ? 4000 : 40000);
    if (!given.traces.empty()) {
        for (event_stream &stream : traced_streams(given.traces))
            streams.push_back(std::move(stream));
    }
    print_heading(contenders());
    for (const event_stream &stream : streams) {
        for (const uint32_t period : given.periods)
            compare(stream, period, out);
    }
}

} // namespace

int main(int argc, char **argv)
{
    options given;
    CLI::App app("Quality and cost of grouping, against the baselines");
    app.add_option("--traces", given.traces, "folder of runs with events.csv.gz, or of such files");
    app.add_option("--out", given.out, "JSON lines");
    app.add_option("--periods", given.periods, "events per period")->delimiter(',');
    app.add_flag("--quick", given.quick, "small inputs: does it run?");
    app.add_flag("--patterns-only", given.patterns_only, "only TEIRESIAS");
    CLI11_PARSE(app, argc, argv);

    try {
        report out("groups", given.out);
        if (!given.patterns_only)
            compare_all(given, out);
        bench_teiresias(given, out);
    } catch (const std::exception &problem) {
        fmt::print(stderr, "bench_groups: {}\n", problem.what());
        return 1;
    }
    return 0;
}

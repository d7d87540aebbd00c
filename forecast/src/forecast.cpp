/* SPDX-License-Identifier: BSD-3-Clause */
#include "forecast.h"

#include <algorithm>

#include "replay.h"

namespace zc::forecast {

namespace {

using times = std::vector<std::int64_t>;

double seconds(std::int64_t ns)
{
    return static_cast<double>(ns) / 1e9;
}

gain gain_of(std::int64_t begin, std::int64_t recorded, std::int64_t cautious, std::int64_t likely,
             std::int64_t hopeful)
{
    gain g;
    g.recorded_s = seconds(recorded - begin);
    g.saved_s = seconds(recorded - likely);
    g.least_saved_s = std::min(g.saved_s, seconds(recorded - cautious));
    g.most_saved_s = std::max(g.saved_s, seconds(recorded - hopeful));
    return g;
}

std::int64_t last(const times &ends)
{
    return *std::max_element(ends.begin(), ends.end());
}

void replay_all(const zct::run &run, const replay &replay, const timeline &steps, forecast &f)
{
    const double hits = f.prediction.hit_rate();
    const auto stock = replay.stock();
    const auto cautious = replay.with(cautious_model(hits));
    const auto likely = replay.with(likely_model(hits));
    const auto hopeful = replay.with(hopeful_model());
    zc_model only = likely_model(hits);
    only.lands = false;
    const auto freed = replay.with(only);
    only.lands = true;
    only.frees_senders = false;
    const auto landed = replay.with(only);
    if (!stock || !cautious || !likely || !hopeful || !freed || !landed) {
        f.no_forecast = "the recorded order of messages cannot be replayed";
        return;
    }
    std::int64_t first = INT64_MAX;
    for (std::size_t i = 0; i < run.ranks.size(); i++) {
        const std::int64_t begin = steps.ranks[i].empty() ? 0 : steps.ranks[i].front().begin_ns;
        first = std::min(first, begin);
        f.ranks.push_back(
            {run.ranks[i].rank, run.ranks[i].host,
             gain_of(begin, (*stock)[i], (*cautious)[i], (*likely)[i], (*hopeful)[i])});
    }
    f.job = gain_of(first, last(*stock), last(*cautious), last(*likely), last(*hopeful));
    f.freed_senders_s = seconds(last(*stock) - last(*freed));
    f.landed_s = seconds(last(*stock) - last(*landed));
}

} // namespace

forecast make_forecast(const zct::run &run, const std::vector<message> &messages,
                       const site_names &names, const predictability &prediction)
{
    forecast f;
    f.program = run.program;
    f.mpi = run.mpi;
    f.processes = run.processes;
    f.recorded_ranks = run.ranks.size();
    f.unmatched = run.unmatched_receives;
    for (const zct::rank_trace &rank : run.ranks)
        f.clock_error_us =
            std::max(f.clock_error_us, static_cast<double>(rank.clock_error_ns) / 1e3);
    f.found = find(run, messages, names);
    f.links = measure_network(run, messages);
    f.prediction = prediction;
    f.unrecorded = find_unrecorded(run, names);
    const timeline steps = timeline_of(run, messages);
    f.no_forecast = steps.unusable;
    if (f.no_forecast.empty() && f.recorded_ranks != static_cast<std::size_t>(f.processes))
        f.no_forecast = "not all ranks were recorded";
    if (f.no_forecast.empty())
        replay_all(run, replay(run, messages, steps, f.links), steps, f);
    return f;
}

} // namespace zc::forecast

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

/** When the ranks end with ch4:zc. */
struct ends {
    times cautious, likely, hopeful;
    times freed, landed; /* likely, for one of the two reasons alone */
};

/** @hits: share of landed messages that are foreseen; @only: see replay::with(). */
std::optional<ends> ends_with(const replay &replay, double hits,
                              const std::vector<bool> *only = nullptr)
{
    zc_model freed = likely_model(hits);
    freed.lands = false;
    zc_model landed = likely_model(hits);
    landed.frees_senders = false;
    ends all;
    for (const auto &[model, ends_of] : {std::pair(cautious_model(hits), &all.cautious),
                                         {likely_model(hits), &all.likely},
                                         {hopeful_model(), &all.hopeful},
                                         {freed, &all.freed},
                                         {landed, &all.landed}}) {
        auto found = replay.with(model, only);
        if (!found)
            return {};
        *ends_of = std::move(*found);
    }
    return all;
}

explained_gain explained_gain_of(std::int64_t begin, const times &stock, const ends &zc)
{
    explained_gain g{
        gain_of(begin, last(stock), last(zc.cautious), last(zc.likely), last(zc.hopeful))};
    g.freed_senders_s = seconds(last(stock) - last(zc.freed));
    g.landed_s = seconds(last(stock) - last(zc.landed));
    return g;
}

void replay_sites(const replay &replay, std::int64_t begin, const times &stock,
                  std::size_t nr_sites, forecast &f)
{
    for (const std::size_t place : f.found.by_cost()) {
        const finding &found = f.found.sites[place].found;
        if (!nr_sites-- || !found.cost_ns())
            return;
        std::vector<bool> only(f.found.site_of.size());
        for (std::size_t m = 0; m < only.size(); m++)
            only[m] = f.found.site_of[m] == place;
        const predictability &foreseen = found.foreseen.asked ? found.foreseen : f.foreseen;
        if (const auto zc = ends_with(replay, foreseen.hit_rate(), &only))
            f.site_gains[place] = explained_gain_of(begin, stock, *zc);
    }
}

void replay_all(const zct::run &run, const replay &replay, const timeline &steps,
                std::size_t nr_sites, forecast &f)
{
    const auto stock = replay.stock();
    const auto zc = ends_with(replay, f.foreseen.hit_rate());
    if (!stock || !zc) {
        f.no_forecast = "the recorded order of messages cannot be replayed";
        return;
    }
    std::int64_t first = INT64_MAX;
    for (std::size_t i = 0; i < run.ranks.size(); i++) {
        const std::int64_t begin = steps.ranks[i].empty() ? 0 : steps.ranks[i].front().begin_ns;
        first = std::min(first, begin);
        f.ranks.push_back(
            {run.ranks[i].rank, run.ranks[i].host,
             gain_of(begin, (*stock)[i], zc->cautious[i], zc->likely[i], zc->hopeful[i])});
    }
    f.job = explained_gain_of(first, *stock, *zc);
    replay_sites(replay, first, *stock, nr_sites, f);
}

} // namespace

forecast make_forecast(const zct::run &run, const std::vector<message> &messages,
                       const site_names &names, const predictability &foreseen,
                       std::size_t nr_sites)
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
    f.site_gains.resize(f.found.sites.size());
    f.links = measure_network(run, messages);
    f.foreseen = foreseen;
    f.unrecorded = find_unrecorded(run, names);
    const timeline steps = timeline_of(run, messages);
    f.no_forecast = steps.unusable;
    if (f.no_forecast.empty() && f.recorded_ranks != static_cast<std::size_t>(f.processes))
        f.no_forecast = "not all ranks were recorded";
    if (f.no_forecast.empty())
        replay_all(run, replay(run, messages, steps, f.links), steps, nr_sites, f);
    return f;
}

} // namespace zc::forecast

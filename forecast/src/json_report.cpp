/* SPDX-License-Identifier: BSD-3-Clause */
#include <nlohmann/json.hpp>
#include <ostream>

#include "forecast.h"

namespace zc::forecast {

namespace {

using json = nlohmann::ordered_json;

double seconds(std::int64_t ns)
{
    return static_cast<double>(ns) / 1e9;
}

json json_of(const predictability &p)
{
    return {{"asked", p.asked},
            {"right", p.right},
            {"wrong", p.wrong},
            {"unknown", p.unknown},
            {"hit_rate", p.asked ? json(p.hit_rate()) : json(nullptr)}};
}

json json_of(const finding &f)
{
    return {
        {"messages", f.messages},
        {"bytes", f.bytes},
        {"late_senders", {{"messages", f.late_senders}, {"seconds", seconds(f.late_sender_ns)}}},
        {"late_receivers",
         {{"messages", f.late_receivers},
          {"bytes", f.late_receiver_bytes},
          {"held_seconds", seconds(f.held_ns)},
          {"transfer_seconds", seconds(f.transfer_wait_ns)}}},
        {"unexpected", {{"messages", f.unexpected}, {"bytes", f.unexpected_bytes}}},
        {"unexpected_memory",
         {{"bytes", f.most_unexpected_bytes}, {"rank", f.most_unexpected_rank}}},
        {"foreseen", json_of(f.foreseen)},
        {"lost_overlap_seconds", seconds(f.lost_overlap_ns)},
    };
}

json json_of(const gain &g)
{
    return {{"recorded_seconds", g.recorded_s},
            {"saved_seconds", g.saved_s},
            {"saved_percent", g.percent()},
            {"least_saved_seconds", g.least_saved_s},
            {"most_saved_seconds", g.most_saved_s}};
}

json json_of(const explained_gain &g)
{
    json all = json_of(static_cast<const gain &>(g));
    all["by_freed_senders_seconds"] = g.freed_senders_s;
    all["by_landing_seconds"] = g.landed_s;
    return all;
}

json json_of(const network::path &p)
{
    return {{"latency_us", p.latency_ns / 1e3},
            {"mb_per_second", p.usual * 1e3},
            {"slow_mb_per_second", p.slow * 1e3},
            {"fast_mb_per_second", p.fast * 1e3},
            {"measured_by", p.samples}};
}

json json_of(const unrecorded_by_place &unrecorded)
{
    json all = json::array();
    for (const auto &[place, calls] : unrecorded)
        all.push_back({{"function", name_of(place.what)},
                       {"site", place.site},
                       {"calls", calls.calls},
                       {"bytes", calls.bytes},
                       {"seconds", seconds(static_cast<std::int64_t>(calls.ns))}});
    return all;
}

json forecast_of(const forecast &f)
{
    if (!f.no_forecast.empty())
        return nullptr;
    json ranks = json::array();
    for (const rank_gain &r : f.ranks) {
        json rank = {{"rank", r.rank}, {"host", r.host}};
        rank.update(json_of(r.time));
        ranks.push_back(rank);
    }
    json all = {{"method", "replay"}};
    all.update(json_of(f.job));
    all["ranks"] = ranks;
    return all;
}

} // namespace

void write_json(std::ostream &out, const forecast &f)
{
    json sites = json::array();
    for (std::size_t i = 0; i < f.found.sites.size(); i++) {
        const auto &[where, found] = f.found.sites[i];
        json site = {{"send", where.send}, {"receive", where.receive}};
        site.update(json_of(found));
        site["forecast"] = f.site_gains[i] ? json_of(*f.site_gains[i]) : json(nullptr);
        sites.push_back(site);
    }
    const json all = {
        {"program", f.program},
        {"mpi", f.mpi},
        {"processes", f.processes},
        {"recorded_ranks", f.recorded_ranks},
        {"unmatched_receives", f.unmatched},
        {"clock_error_us", f.clock_error_us},
        {"forecast", forecast_of(f)},
        {"no_forecast", f.no_forecast.empty() ? json(nullptr) : json(f.no_forecast)},
        {"total", json_of(f.found.total)},
        {"unexpected_memory",
         {{"bytes", f.found.total.most_unexpected_bytes},
          {"rank", f.found.total.most_unexpected_rank}}},
        {"foreseen", json_of(f.foreseen)},
        {"links", {{"remote", json_of(f.links.remote)}, {"local", json_of(f.links.local)}}},
        {"sites", sites},
        {"not_recorded", json_of(f.unrecorded)},
    };
    out << all.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
}

} // namespace zc::forecast

/* SPDX-License-Identifier: BSD-3-Clause */
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "forecast.h"
#include "quantity.h"

namespace zc::forecast {

namespace {

/* Less than this of a run is no gain: two runs of a program differ by more. */
constexpr double kNoticedPercent = 0.5;

void write_findings(std::ostream &out, const forecast &f)
{
    const finding &t = f.found.total;
    const predictability &p = f.foreseen;
    out << fmt::format("{:<18}{:>8}  {:>10}  {}\n", "", "messages", "bytes",
                       "time, summed over ranks");
    out << fmt::format("{:<18}{:>8}  {:>10}\n", "point-to-point", t.messages, bytes_text(t.bytes));
    out << fmt::format("{:<18}{:>8}  {:>10}  receivers waited {} for the message to be sent\n",
                       "late senders", t.late_senders, "", time_text(t.late_sender_ns));
    out << fmt::format("{:<18}{:>8}  {:>10}  senders held {} until it was posted; receivers then "
                       "waited {} for the transfer\n",
                       "late receivers", t.late_receivers, bytes_text(t.late_receiver_bytes),
                       time_text(t.held_ns), time_text(t.transfer_wait_ns));
    out << fmt::format("{:<18}{:>8}  {:>10}  at most {} at one time, at rank {}\n", "unexpected",
                       t.unexpected, bytes_text(t.unexpected_bytes),
                       bytes_text(t.most_unexpected_bytes), t.most_unexpected_rank);
    out << fmt::format(
        "{:<18}{:>8}  {:>10}  {} of transfers waited for that work could have hidden\n",
        "lost overlap", "", "", time_text(t.lost_overlap_ns));
    out << fmt::format("{:<18}{:>8}  {:>10}  {} right, {} wrong, {} not answered: where such a "
                       "message goes\n",
                       "foreseen", p.asked, "", p.right, p.wrong, p.unknown);
}

void write_sites(std::ostream &out, const forecast &f, std::size_t nr_sites)
{
    const std::vector<std::size_t> places = f.found.by_cost();
    if (places.empty() || !nr_sites)
        return;
    out << fmt::format(
        "\n{:>8} {:>10} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}  "
        "{}\n",
        "messages", "bytes", "late", "held", "transfer", "overlap", "late send", "unexpected",
        "bytes", "at once", "foreseen", "sent -> received");
    for (std::size_t i = 0; i < std::min(places.size(), nr_sites); i++) {
        const auto &[where, r] = f.found.sites[places[i]];
        out << fmt::format("{:>8} {:>10} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} "
                           "{:>8}  {} -> {}\n",
                           r.messages, bytes_text(r.bytes), r.late_receivers, time_text(r.held_ns),
                           time_text(r.transfer_wait_ns), time_text(r.lost_overlap_ns),
                           time_text(r.late_sender_ns), r.unexpected,
                           bytes_text(r.unexpected_bytes), bytes_text(r.most_unexpected_bytes),
                           hit_rate_text(r.foreseen), where.send, where.receive);
    }
    if (places.size() > nr_sites)
        out << fmt::format("(and {} more pairs of call sites: --sites)\n",
                           places.size() - nr_sites);
}

void write_unrecorded(std::ostream &out, const forecast &f, std::size_t nr_sites)
{
    using row = unrecorded_by_place::value_type;
    std::vector<const row *> rows;
    unrecorded_calls total;
    for (const row &r : f.unrecorded) {
        rows.push_back(&r);
        total.bytes += r.second.bytes;
        total.ns += r.second.ns;
    }
    if (rows.empty())
        return;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const row *a, const row *b) { return a->second.ns > b->second.ns; });
    out << fmt::format(
        "\nnot in the forecast: {} that went one-sided, and {} in such calls or in "
        "starting persistent\ncollectives or messages in parts. No receive says when "
        "that was needed: all of it counts as work.\n",
        bytes_text(total.bytes), time_text(static_cast<std::int64_t>(total.ns)));
    if (!nr_sites)
        return;
    out << fmt::format("{:>8} {:>10} {:>10}  {}\n", "calls", "bytes", "time", "called in");
    for (std::size_t i = 0; i < std::min(rows.size(), nr_sites); i++) {
        const auto &[place, r] = *rows[i];
        out << fmt::format("{:>8} {:>10} {:>10}  {}: {}\n", r.calls, bytes_text(r.bytes),
                           time_text(static_cast<std::int64_t>(r.ns)), name_of(place.what),
                           place.site);
    }
    if (rows.size() > nr_sites)
        out << fmt::format("(and {} more call sites: --sites)\n", rows.size() - nr_sites);
}

std::string rate_text(const network::path &path)
{
    return path.samples
               ? fmt::format("{:.0f} MB/s ({:.0f} to {:.0f}, {} messages)", path.usual * 1e3,
                             path.slow * 1e3, path.fast * 1e3, path.samples)
               : fmt::format("{:.0f} MB/s (assumed)", path.usual * 1e3);
}

/** Of the pairs that were replayed. */
void write_site_gains(std::ostream &out, const forecast &f, std::size_t nr_sites)
{
    bool begun = false;
    for (const std::size_t place : f.found.by_cost()) {
        const std::optional<explained_gain> &g = f.site_gains[place];
        if (!g || !nr_sites--)
            return;
        if (!begun)
            out << "  of the job, if ch4:zc changes the messages of one pair of call sites alone "
                   "(such gains do not add up):\n";
        begun = true;
        const site_pair &where = f.found.sites[place].where;
        out << fmt::format("  {:>9} {:>5.1f} %  ({} to {}; {} by held senders, {} by data that is "
                           "there)  {} -> {}\n",
                           time_text(g->saved_s), g->percent(), time_text(g->least_saved_s),
                           time_text(g->most_saved_s), time_text(g->freed_senders_s),
                           time_text(g->landed_s), where.send, where.receive);
    }
}

void write_forecast(std::ostream &out, const forecast &f, std::size_t nr_sites)
{
    if (!f.no_forecast.empty()) {
        out << "\nforecast: none: " << f.no_forecast << "\n";
        return;
    }
    const double percent = f.job.percent();
    out << fmt::format("\nforecast, by replay of all ranks with ch4:zc: {} of {} ({:.1f} %)\n",
                       time_text(f.job.saved_s), time_text(f.job.recorded_s), percent);
    out << fmt::format(
        "  between {} and {}: transfers as measured, rate of links between hosts {}, "
        "on one host {}\n",
        time_text(f.job.least_saved_s), time_text(f.job.most_saved_s), rate_text(f.links.remote),
        rate_text(f.links.local));
    if (percent < kNoticedPercent)
        out << "  no gain that could be told from the differences between two runs\n";
    else
        out << fmt::format("  {} by letting held senders go on, {} by data that is there when its "
                           "receive is posted (each alone)\n",
                           time_text(f.job.freed_senders_s), time_text(f.job.landed_s));
    for (const rank_gain &r : f.ranks)
        out << fmt::format("  rank {:>4}  {:>9} of {:>9}  {:>5.1f} %  ({} to {})  {}\n", r.rank,
                           time_text(r.time.saved_s), time_text(r.time.recorded_s),
                           r.time.percent(), time_text(r.time.least_saved_s),
                           time_text(r.time.most_saved_s), r.host);
    write_site_gains(out, f, nr_sites);
}

} // namespace

void write_text(std::ostream &out, const forecast &f, std::size_t nr_sites)
{
    out << fmt::format("{}: {} of {} ranks recorded, {}\n\n", f.program, f.recorded_ranks,
                       f.processes, f.mpi);
    write_findings(out, f);
    write_sites(out, f, nr_sites);
    write_unrecorded(out, f, nr_sites);
    write_forecast(out, f, nr_sites);
    if (f.unmatched)
        out << fmt::format("\n{} receives were left out: their sends were not found\n",
                           f.unmatched);
    if (f.clock_error_us > 0)
        out << fmt::format("\nclocks of hosts were compared to within {:.1f} us\n",
                           f.clock_error_us);
}

} // namespace zc::forecast

/* SPDX-License-Identifier: BSD-3-Clause */
#include "site_table.h"

#include <fmt/format.h>

#include <ostream>

#include "markup.h"
#include "quantity.h"

namespace zc::forecast {

namespace {

constexpr const char *kHead =
    "<table id=\"sites\">\n"
    "<thead><tr><th>sent</th><th>received</th><th>messages</th><th>bytes</th>"
    "<th>late senders</th><th>receivers waited</th>"
    "<th>late receivers</th><th>senders held</th><th>transfers waited for</th>"
    "<th>unexpected</th><th>their bytes</th><th>at most at one time</th><th>foreseen</th>"
    "<th>lost overlap</th><th>ch4:zc gives back</th><th>between</th><th>by freed senders</th>"
    "<th>by landing</th></tr></thead>\n<tbody>\n";

std::string cell(const std::string &text)
{
    return "<td>" + escaped(text) + "</td>";
}

std::string cells_of(const finding &f, const std::string &foreseen)
{
    std::string memory = bytes_text(f.most_unexpected_bytes);
    if (f.most_unexpected_rank >= 0)
        memory += fmt::format(" (rank {})", f.most_unexpected_rank);
    std::string cells;
    for (const std::string &text :
         {std::to_string(f.messages), bytes_text(f.bytes), std::to_string(f.late_senders),
          time_text(f.late_sender_ns), std::to_string(f.late_receivers), time_text(f.held_ns),
          time_text(f.transfer_wait_ns), std::to_string(f.unexpected),
          bytes_text(f.unexpected_bytes), memory, foreseen, time_text(f.lost_overlap_ns)})
        cells += cell(text);
    return cells;
}

std::string cells_of(const explained_gain *g)
{
    if (!g)
        return cell("-") + cell("-") + cell("-") + cell("-");
    return cell(fmt::format("{} ({:.1f} %)", time_text(g->saved_s), g->percent())) +
           cell(fmt::format("{} and {}", time_text(g->least_saved_s), time_text(g->most_saved_s))) +
           cell(time_text(g->freed_senders_s)) + cell(time_text(g->landed_s));
}

} // namespace

void write_site_table(std::ostream &out, const forecast &f, std::size_t most)
{
    out << kHead << "<tr class=\"total\">" << cell("all") << cell("")
        << cells_of(f.found.total, hit_rate_text(f.foreseen))
        << cells_of(f.no_forecast.empty() ? &f.job : nullptr) << "</tr>\n";
    for (const std::size_t place : f.found.by_cost()) {
        if (!most--)
            break;
        const auto &[where, found] = f.found.sites[place];
        const std::optional<explained_gain> &gain = f.site_gains[place];
        out << "<tr class=\"site\">" << cell(where.send) << cell(where.receive)
            << cells_of(found, hit_rate_text(found.foreseen)) << cells_of(gain ? &*gain : nullptr)
            << "</tr>\n";
    }
    out << "</tbody>\n</table>\n";
}

} // namespace zc::forecast

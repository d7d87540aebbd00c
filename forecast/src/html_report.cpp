/* SPDX-License-Identifier: BSD-3-Clause */
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "forecast.h"
#include "markup.h"
#include "site_table.h"

namespace zc::forecast {

namespace {

/* More of them would be less than a point wide, and slow to draw. */
constexpr std::size_t kMostShown = 20'000;
constexpr std::size_t kMostSites = 1000; /* rows of the table */
constexpr double kWidth = 1000;          /* of the picture, in units of its own */
constexpr double kLabels = 90;
constexpr double kRow = 22;
constexpr double kBar = 14;
constexpr double kAxis = 24;

constexpr std::array<const char *, ZCT_NR_FUNCTIONS> kFunctions = {
    "MPI_Init", "MPI_Finalize", "send",  "receive",   "send and receive",
    "wait",     "test",         "probe", "collective"};

/* Grey is what waits, red what a late receiver costs. It is XHTML, too: tests parse it. */
constexpr const char *kHead = R"(<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en">
<head>
<meta charset="utf-8"/>
<title>{title}</title>
<style>
body {{ font: 14px sans-serif; margin: 1.5em; }}
#frame {{ overflow-x: auto; border: 1px solid #888; }}
#run {{ width: 100%; height: {height}px; display: block; }}
rect.call {{ fill: #b8bec4; }}
rect.held {{ fill: #d55e00; }}
rect.transfer {{ fill: #e69f00; }}
line.late {{ stroke: #d55e00; stroke-opacity: 0.35; vector-effect: non-scaling-stroke; }}
line.row, line.tick {{ stroke: #ddd; vector-effect: non-scaling-stroke; }}
rect:hover, line.late:hover {{ fill: #0072b2; stroke: #0072b2; stroke-opacity: 1; }}
#labels {{ float: left; width: {labels}px; }}
#labels div {{ height: {row}px; line-height: {row}px; white-space: nowrap; }}
table {{ border-collapse: collapse; margin-top: 1em; }}
th, td {{ border: 1px solid #ccc; padding: 0.2em 0.5em; text-align: right; }}
td:nth-child(-n+2) {{ text-align: left; white-space: nowrap; }}
tr.total {{ font-weight: bold; }}
.key {{ display: inline-block; width: 1em; height: 0.8em; margin: 0 0.3em 0 1em; }}
</style>
</head>
<body>
)";

double ms(std::int64_t ns)
{
    return static_cast<double>(ns) / 1e6;
}

/** Bars and lines of a run; times are mapped to the width. */
class picture {
  public:
    picture(std::ostream &out, const zct::run &run) : out_(out)
    {
        for (const zct::rank_trace &rank : run.ranks) {
            for (const zct::call &c : rank.calls) {
                begin_ = std::min(begin_, c.begin_ns);
                end_ = std::max(end_, c.end_ns);
            }
        }
        begin_ = std::min(begin_, end_);
        height_ = kRow * static_cast<double>(run.ranks.size());
    }

    double x(std::int64_t time) const
    {
        return kWidth * static_cast<double>(time - begin_) /
               std::max(1.0, static_cast<double>(end_ - begin_));
    }
    static double middle(std::size_t rank) { return kRow * (static_cast<double>(rank) + 0.5); }
    double height() const { return height_ + kAxis; }
    std::int64_t begin() const { return begin_; }

    void bar(const char *what, std::size_t rank, std::int64_t from, std::int64_t to,
             const std::string &tooltip)
    {
        out_ << fmt::format("<rect class=\"{}\" x=\"{:.3f}\" y=\"{:.1f}\" width=\"{:.3f}\" "
                            "height=\"{}\"><title>{}</title></rect>\n",
                            what, x(from), middle(rank) - kBar / 2, std::max(0.05, x(to) - x(from)),
                            kBar, escaped(tooltip));
    }

    void line(std::size_t from_rank, std::int64_t from, std::size_t to_rank, std::int64_t to,
              const std::string &tooltip)
    {
        out_ << fmt::format("<line class=\"late\" x1=\"{:.3f}\" y1=\"{:.1f}\" x2=\"{:.3f}\" "
                            "y2=\"{:.1f}\"><title>{}</title></line>\n",
                            x(from), middle(from_rank), x(to), middle(to_rank), escaped(tooltip));
    }

    void grid(std::size_t nr_ranks)
    {
        for (std::size_t i = 0; i < nr_ranks; i++)
            out_ << fmt::format("<line class=\"row\" x1=\"0\" x2=\"{0}\" y1=\"{1:.1f}\" "
                                "y2=\"{1:.1f}\"/>\n",
                                kWidth, middle(i));
        constexpr int ticks = 10;
        for (int i = 0; i <= ticks; i++)
            out_ << fmt::format("<line class=\"tick\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"{1}\">"
                                "<title>{2:.1f} ms</title></line>\n",
                                kWidth * i / ticks, height_ + kAxis / 2,
                                ms((end_ - begin_) / ticks * i));
    }

  private:
    std::ostream &out_;
    std::int64_t begin_ = INT64_MAX;
    std::int64_t end_ = 0;
    double height_;
};

/** Returns how many were left out: the shortest. */
std::size_t draw_calls(picture &p, const zct::run &run, const site_names &names)
{
    struct place {
        std::size_t rank;
        std::size_t call;
    };
    const auto length = [&](const place &at) {
        const zct::call &c = run.ranks[at.rank].calls[at.call];
        return c.end_ns - c.begin_ns;
    };
    std::vector<place> all;
    for (std::size_t r = 0; r < run.ranks.size(); r++)
        for (std::size_t i = 0; i < run.ranks[r].calls.size(); i++)
            all.push_back({r, i});
    const std::size_t shown = std::min(all.size(), kMostShown);
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
                     [&](const place &a, const place &b) { return length(a) > length(b); });
    for (std::size_t i = 0; i < shown; i++) {
        const zct::call &c = run.ranks[all[i].rank].calls[all[i].call];
        p.bar("call", all[i].rank, c.begin_ns, c.end_ns,
              fmt::format("rank {}: {}, {:.3f} ms from {:.3f} ms on, {}",
                          run.ranks[all[i].rank].rank, kFunctions.at(c.function),
                          ms(c.end_ns - c.begin_ns), ms(c.begin_ns - p.begin()),
                          names(all[i].rank, c.site)));
    }
    return all.size() - shown;
}

/** Of late receivers: the sender that was held, the receiver that then waited, and the message. */
std::size_t draw_late(picture &p, const zct::run &run, const std::vector<message> &messages,
                      const site_names &names)
{
    std::vector<const message *> late;
    for (const message &m : messages)
        if (m.held_ns() > 0)
            late.push_back(&m);
    const std::size_t shown = std::min(late.size(), kMostShown);
    std::nth_element(
        late.begin(), late.begin() + static_cast<std::ptrdiff_t>(shown), late.end(),
        [](const message *a, const message *b) { return a->held_ns() > b->held_ns(); });
    for (std::size_t i = 0; i < shown; i++) {
        const message &m = *late[i];
        const std::string what =
            fmt::format("{} bytes from rank {} ({}) to rank {} ({})", m.bytes,
                        run.ranks[m.send.rank].rank, names(m.send.rank, m.send.site),
                        run.ranks[m.receive.rank].rank, names(m.receive.rank, m.receive.site));
        p.bar("held", m.send.rank, m.send.waiting_ns, m.send.waiting_ns + m.held_ns(),
              fmt::format("held for {:.3f} ms: {}", ms(m.held_ns()), what));
        if (const std::int64_t waited = m.transfer_wait_ns())
            p.bar("transfer", m.receive.rank, m.receive.done_ns - waited, m.receive.done_ns,
                  fmt::format("waited {:.3f} ms for the transfer: {}", ms(waited), what));
        p.line(m.send.rank, m.send.posted_ns, m.receive.rank, m.receive.done_ns, what);
    }
    return late.size() - shown;
}

std::string summary(const forecast &f)
{
    if (!f.no_forecast.empty())
        return "No forecast: " + f.no_forecast + ".";
    return fmt::format(
        "With ch4:zc the job would end {:.3f} s earlier, of {:.3f} s ({:.1f} %; between "
        "{:.3f} and {:.3f} s).",
        f.job.saved_s, f.job.recorded_s, f.job.percent(), f.job.least_saved_s, f.job.most_saved_s);
}

void write_sites(std::ostream &out, const forecast &f)
{
    out << "<h2>Call sites</h2>\n<p>Times are sums over messages. What ch4:zc gives back is how "
           "much "
           "earlier the job ends; of a pair of call sites, if ch4:zc changes its messages alone: "
           "such "
           "gains do not add up. Those that cost most are looked at (--sites).</p>\n"
           "<div style=\"overflow-x: auto\">\n";
    write_site_table(out, f, kMostSites);
    out << "</div>\n";
    if (f.found.sites.size() > kMostSites)
        out << fmt::format("<p>Left out: {} pairs of call sites that cost least.</p>\n",
                           f.found.sites.size() - kMostSites);
}

} // namespace

void write_html(std::ostream &out, const zct::run &run, const std::vector<message> &messages,
                const site_names &names, const forecast &f)
{
    picture p(out, run);
    out << fmt::format(kHead, fmt::arg("title", escaped(f.program)), fmt::arg("height", p.height()),
                       fmt::arg("labels", kLabels), fmt::arg("row", kRow));
    out << fmt::format("<h1>{}</h1>\n<p>{} of {} ranks recorded, {}. {}</p>\n", escaped(f.program),
                       f.recorded_ranks, f.processes, escaped(f.mpi), escaped(summary(f)));
    out << "<p><span class=\"key\" style=\"background:#b8bec4\"></span>in a call that may wait"
           "<span class=\"key\" style=\"background:#d55e00\"></span>a sender, held by a late "
           "receiver"
           "<span class=\"key\" style=\"background:#e69f00\"></span>the late receiver waits for "
           "the "
           "transfer. Lines: late messages. Point at anything for what it is.</p>\n"
           "<p><label>width <input type=\"range\" min=\"100\" max=\"5000\" value=\"100\" "
           "oninput=\"document.getElementById('run').style.width=this.value+'%'\"/></label></p>\n"
           "<div id=\"labels\">\n";
    for (const zct::rank_trace &rank : run.ranks)
        out << fmt::format("<div title=\"{}\">rank {}</div>\n", escaped(rank.host), rank.rank);
    out << fmt::format("</div>\n<div id=\"frame\">\n<svg id=\"run\" "
                       "xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
                       "preserveAspectRatio=\"none\">\n",
                       kWidth, p.height());
    p.grid(run.ranks.size());
    const std::size_t calls = draw_calls(p, run, names);
    const std::size_t late = draw_late(p, run, messages, names);
    out << "</svg>\n</div>\n";
    if (calls || late)
        out << fmt::format("<p>Left out, for there are too many: the {} shortest calls and the {} "
                           "messages whose senders were held least.</p>\n",
                           calls, late);
    write_sites(out, f);
    out << "</body>\n</html>\n";
}

} // namespace zc::forecast

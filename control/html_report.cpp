/* SPDX-License-Identifier: BSD-3-Clause */
#include "html_report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent_client.h"
#include "markup.h"

namespace zc::control {
namespace {

using nlohmann::json;

constexpr double kWidth = 960;
constexpr double kHeight = 240;
constexpr double kMargin = 56;
constexpr std::array kColours = {"#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#6a4c93",
                                 "#00798c", "#8d6a9f", "#b5651d", "#4f6d7a", "#c06c84"};
constexpr std::array kPhaseNames = {"negotiation", "checkpoint", "spawn",
                                    "transfer",    "restore",    "rebuild"};
constexpr std::size_t kMostFlows = 400;

struct point {
    double time;
    double value;
};
using line = std::vector<point>;

/** What the records say, in the order of time. */
struct run {
    double begin = INFINITY;
    double end = -INFINITY;
    std::map<std::string, line> rates;  /* by job: slowest rank */
    std::map<std::string, line> demand; /* by host */
    std::map<std::string, line> cpus;
    std::vector<json> moves; /* moved, failed, would_move */
    std::vector<json> decisions;
    std::map<std::string, json> groups; /* by job, the last seen of each host joined */
    std::map<std::string, std::map<std::uint64_t, std::string>>
        where; /* job, rank: host, at the end */
};

double number(const json &j, const char *key)
{
    auto at = j.find(key);
    return at != j.end() && at->is_number() ? at->get<double>() : 0;
}

void take_sample(run &r, const json &j,
                 std::map<std::pair<std::string, long>, std::map<std::uint64_t, double>> &rates)
{
    double time = j.at("time");
    std::string host = j.at("host");
    r.demand[host].push_back({time, number(j.at("load"), "demand")});
    r.cpus[host].push_back({time, number(j.at("load"), "cpus")});
    for (const json &rank : j.at("ranks")) {
        std::string job = rank.at("job");
        auto which = rank.at("rank").get<std::uint64_t>();
        rates[{job, std::lround(time)}][which] = number(rank, "rate");
        r.where[job][which] = host;
    }
    if (j.contains("groups")) {
        for (const json &g : j.at("groups")) {
            json &known = r.groups[g.at("job").get<std::string>()];
            if (!known.is_object())
                known = {{"flows", json::array()}};
            known["by_host"][host] = g.at("flows");
        }
    }
}

run read(const std::vector<std::string> &paths)
{
    run r;
    std::vector<json> samples;
    for (const std::string &path : paths) {
        std::ifstream in(path);
        if (!in)
            throw client_error(path + ": " + std::strerror(errno));
        std::string text;
        for (std::size_t number_of_line = 1; std::getline(in, text); number_of_line++) {
            json j = json::parse(text, nullptr, false);
            /* The agent may have been killed while it wrote the last one. */
            if (j.is_discarded() && in.peek() == EOF)
                break;
            try {
                double time = j.at("time");
                r.begin = std::min(r.begin, time);
                r.end = std::max(r.end, time);
                if (j.at("kind") == "sample") {
                    samples.push_back(std::move(j));
                } else {
                    std::string what = j.at("what");
                    j.at("ranks").get<std::vector<std::uint64_t>>();
                    j.at("why").get_ref<const std::string &>();
                    j.at("to_host").get_ref<const std::string &>();
                    if (what == "moved" || what == "failed" || what == "would_move")
                        r.moves.push_back(j);
                    r.decisions.push_back(std::move(j));
                }
            } catch (const json::exception &e) {
                throw client_error(
                    fmt::format("{}:{}: not a record of zcmd: {}", path, number_of_line, e.what()));
            }
        }
    }
    if (samples.empty())
        throw client_error("no samples in the records");
    auto by_time = [](const json &a, const json &b) { return a.at("time") < b.at("time"); };
    std::stable_sort(samples.begin(), samples.end(), by_time);
    std::stable_sort(r.moves.begin(), r.moves.end(), by_time);
    std::stable_sort(r.decisions.begin(), r.decisions.end(), by_time);
    std::map<std::pair<std::string, long>, std::map<std::uint64_t, double>> rates;
    try {
        for (const json &s : samples)
            take_sample(r, s, rates);
    } catch (const json::exception &e) {
        throw client_error(fmt::format("a sample is not of this version of zcmd: {}", e.what()));
    }
    for (const auto &[key, ranks] : rates) {
        double slowest = INFINITY;
        for (const auto &[rank, rate] : ranks)
            slowest = std::min(slowest, rate);
        r.rates[key.first].push_back({static_cast<double>(key.second), slowest});
    }
    return r;
}

class chart {
  public:
    chart(const run &r, std::string unit, double most) : r_(r), most_(most > 0 ? most * 1.05 : 1)
    {
        out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", kWidth, kHeight + 30);
        for (int i = 0; i <= 4; i++) {
            double v = most_ * i / 4;
            out_ += fmt::format(
                "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>"
                "<text x=\"{3}\" y=\"{4:.1f}\" class=\"tick\" text-anchor=\"end\">{5:.3g}</text>\n",
                kMargin, kWidth - 8, y(v), kMargin - 6, y(v) + 4, v);
        }
        double span = std::max(r_.end - r_.begin, 1.0);
        for (int i = 0; i <= 8; i++)
            out_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" class=\"tick\" "
                                "text-anchor=\"middle\">{:.0f} s</text>\n",
                                x(r_.begin + span * i / 8), kHeight + 18, span * i / 8);
        out_ += fmt::format("<text x=\"4\" y=\"12\" class=\"tick\">{}</text>\n", escaped(unit));
        for (const json &m : r_.moves)
            out_ += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"16\" y2=\"{1}\" "
                                "class=\"{2}\"><title>{3}</title></line>\n",
                                x(number(m, "time")), kHeight,
                                m.at("what") == "moved" ? "move" : "nomove",
                                escaped(m.at("why").get<std::string>()));
    }
    void add(const line &l, const char *colour, bool dashed = false)
    {
        std::string points;
        for (const point &p : l)
            points += fmt::format("{:.1f},{:.1f} ", x(p.time), y(p.value));
        out_ += fmt::format(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n",
            points, colour, dashed ? " stroke-dasharray=\"4 4\"" : "");
    }
    std::string take() { return out_ + "</svg>\n"; }

  private:
    double x(double time) const
    {
        return kMargin +
               (time - r_.begin) / std::max(r_.end - r_.begin, 1.0) * (kWidth - kMargin - 8);
    }
    double y(double value) const
    {
        return kHeight - std::clamp(value / most_, 0.0, 1.0) * (kHeight - 16);
    }

    const run &r_;
    double most_;
    std::string out_;
};

double highest(const std::map<std::string, line> &lines)
{
    double most = 0;
    for (const auto &[name, l] : lines) {
        for (const point &p : l)
            most = std::max(most, p.value);
    }
    return most;
}

std::string legend(const std::map<std::string, line> &lines)
{
    std::string out = "<p class=\"legend\">";
    std::size_t i = 0;
    for (const auto &[name, l] : lines)
        out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ",
                           kColours[i++ % kColours.size()], escaped(name));
    return out + "</p>\n";
}

std::string lines_of(const run &r, const std::map<std::string, line> &lines, const char *unit,
                     const std::map<std::string, line> *limits = nullptr)
{
    chart c(r, unit, std::max(highest(lines), limits != nullptr ? highest(*limits) : 0.0));
    std::size_t i = 0;
    for (const auto &[name, l] : lines) {
        const char *colour = kColours[i++ % kColours.size()];
        c.add(l, colour);
        if (limits != nullptr && limits->contains(name))
            c.add(limits->at(name), colour, true);
    }
    return legend(lines) + c.take();
}

std::string migrations(const run &r)
{
    if (r.moves.empty())
        return "<p>None.</p>\n";
    double longest = 1;
    for (const json &m : r.moves) {
        double sum = 0;
        for (const char *name : kPhaseNames)
            sum += number(m.at("phases_ms"), name);
        longest = std::max(longest, sum);
    }
    std::string out = "<p class=\"legend\">";
    for (std::size_t i = 0; i < kPhaseNames.size(); i++)
        out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", kColours[i],
                           kPhaseNames[i]);
    out += "</p>\n<table><tr><th>at</th><th>what</th><th>ranks</th><th>to</th><th>MiB</"
           "th><th>phases</th><th>why</th></tr>\n";
    for (const json &m : r.moves) {
        std::string bar = "<svg viewBox=\"0 0 300 16\" class=\"bar\">";
        double at = 0;
        double sum = 0;
        for (std::size_t i = 0; i < kPhaseNames.size(); i++) {
            double ms = number(m.at("phases_ms"), kPhaseNames[i]);
            bar += fmt::format("<rect x=\"{:.1f}\" width=\"{:.1f}\" y=\"1\" height=\"14\" "
                               "fill=\"{}\"><title>{} {:.0f} ms</title></rect>",
                               at / longest * 300, ms / longest * 300, kColours[i], kPhaseNames[i],
                               ms);
            at += ms;
            sum += ms;
        }
        bar += "</svg>";
        std::string ranks;
        for (const json &rank : m.at("ranks"))
            ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank.get<std::uint64_t>());
        out += fmt::format(
            "<tr><td>{:.1f} s</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1f}</td><td>{}{:.0f} "
            "ms</td><td>{}</td></tr>\n",
            number(m, "time") - r.begin, escaped(m.at("what").get<std::string>()), ranks,
            escaped(m.at("to_host").get<std::string>()), number(m, "bytes") / (1 << 20), bar, sum,
            escaped(m.at("why").get<std::string>()));
    }
    return out + "</table>\n";
}

/** Ranks on a circle, those of one host beside each other; a line is traffic expected. */
std::string groups_of(const run &r, const std::string &job)
{
    std::map<std::uint64_t, std::string> where = r.where.at(job);
    std::vector<std::pair<std::string, std::uint64_t>> order;
    std::set<std::string> hosts;
    for (const auto &[rank, host] : where) {
        order.emplace_back(host, rank);
        hosts.insert(host);
    }
    std::sort(order.begin(), order.end());
    std::map<std::uint64_t, std::pair<double, double>> place;
    double radius = 190;
    for (std::size_t i = 0; i < order.size(); i++) {
        double angle = 2 * M_PI * static_cast<double>(i) / static_cast<double>(order.size());
        place[order[i].second] = {220 + radius * std::cos(angle), 220 + radius * std::sin(angle)};
    }
    std::vector<std::array<double, 3>> flows;
    double most = 1;
    auto known = r.groups.find(job);
    if (known != r.groups.end() && known->second.contains("by_host")) {
        for (const auto &[host, list] : known->second["by_host"].items()) {
            for (const json &f : list) {
                double src = number(f, "src");
                double dst = number(f, "dst");
                if (place.contains(static_cast<std::uint64_t>(src)) &&
                    place.contains(static_cast<std::uint64_t>(dst)))
                    flows.push_back({src, dst, number(f, "bytes")});
                most = std::max(most, number(f, "bytes"));
            }
        }
    }
    std::sort(flows.begin(), flows.end(), [](const auto &a, const auto &b) { return a[2] > b[2]; });
    if (flows.size() > kMostFlows)
        flows.resize(kMostFlows);
    std::string out = fmt::format("<h3>job {}</h3>\n<p class=\"legend\">", escaped(job));
    std::map<std::string, const char *> colour;
    for (const std::string &host : hosts) {
        colour[host] = kColours[colour.size() % kColours.size()];
        out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", colour[host],
                           escaped(host));
    }
    out += "</p>\n<svg viewBox=\"0 0 440 440\" class=\"groups\">\n";
    for (const auto &[src, dst, bytes] : flows) {
        auto [x1, y1] = place[static_cast<std::uint64_t>(src)];
        auto [x2, y2] = place[static_cast<std::uint64_t>(dst)];
        out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                           "stroke=\"#667\" stroke-width=\"{:.2f}\" opacity=\"0.5\"/>\n",
                           x1, y1, x2, y2, 0.5 + 4 * bytes / most);
    }
    for (const auto &[rank, at] : place)
        out +=
            fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"10\" fill=\"{}\"/><text "
                        "x=\"{:.1f}\" y=\"{:.1f}\" class=\"rank\">{}</text>\n",
                        at.first, at.second, colour[where[rank]], at.first, at.second + 3.5, rank);
    return out + "</svg>\n";
}

constexpr const char *kStyle = R"(<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1000px; color: #223; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccd }
svg { width: 100%; height: auto } svg.bar { width: 220px; vertical-align: middle; margin-right: .5rem } svg.groups { max-width: 440px }
.grid { stroke: #e4e7ee } .tick { font-size: 11px; fill: #667 } .move { stroke: #d1495b; stroke-width: 1.5 }
.nomove { stroke: #999; stroke-dasharray: 2 3 } .rank { font-size: 9px; fill: #fff; text-anchor: middle }
table { border-collapse: collapse; font-size: 13px; width: 100% } td, th { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #e4e7ee; vertical-align: top }
.legend span { margin-right: 1rem; font-size: 13px } .legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em }
</style>)";

} // namespace

std::string make_report(const std::vector<std::string> &records)
{
    run r = read(records);
    std::size_t moved = static_cast<std::size_t>(std::count_if(
        r.moves.begin(), r.moves.end(), [](const json &m) { return m.at("what") == "moved"; }));
    std::string out =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>zc: a run</title>\n";
    out += kStyle;
    out += fmt::format("</head><body>\n<h1>A run over {:.0f} s on {} nodes, {} moves</h1>\n",
                       r.end - r.begin, r.demand.size(), moved);
    out += "<h2 id=\"rate\">Iterations per second, slowest rank of each job</h2>\n" +
           lines_of(r, r.rates, "1/s");
    out += "<h2 id=\"load\">Runnable threads per node, and its processors (dashed)</h2>\n" +
           lines_of(r, r.demand, "threads", &r.cpus);
    out += "<h2 id=\"moves\">Migrations</h2>\n" + migrations(r);
    out += "<h2 id=\"groups\">Groups: traffic expected, ranks by node</h2>\n";
    for (const auto &[job, where] : r.where)
        out += groups_of(r, job);
    out += "<h2 id=\"decisions\">Decisions</h2>\n<table>\n";
    for (const json &d : r.decisions)
        out += fmt::format("<tr><td>{:.1f} s</td><td>{}</td><td>{}</td></tr>\n",
                           number(d, "time") - r.begin, escaped(d.at("what").get<std::string>()),
                           escaped(d.at("why").get<std::string>()));
    return out + "</table>\n</body></html>\n";
}

} // namespace zc::control

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures: figures 2 to 6 of R. Singh and P. Graham, "Grouping MPI processes for
 * partial checkpoint and co-migration" (Euro-Par 2009), drawn again: the Levenshtein
 * distance of the pattern predicted from the messages that came, or how like they are
 * (--axis likeness), by the time of the request.
 * Appends a line per point with both to FOLDER/papers.jsonl, writes
 * FOLDER/singh-graham-figure2.svg to figure6.svg, and prints a table beside what
 * the paper says. docs/papers/singh-graham.md has what had to be chosen.
 */

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "events_csv.h"
#include "levenshtein.h"
#include "memory.h"
#include "plot.h"
#include "singh_graham.h"
#include "synthetic.h"

using namespace zc::groups;

namespace {

struct variant {
    const char *label; /* as in the paper's figures */
    singh_graham::predictor predictor;
    bool kmp; /* in the way that the options say */
};

constexpr variant kOriginal[] = {
    {"basic", singh_graham::predictor::basic, false},
    {"historic", singh_graham::predictor::specific, false},
    {"levenshtein", singh_graham::predictor::levenshtein, false},
};
constexpr variant kEnhanced[] = {
    {"basic (kmp)", singh_graham::predictor::basic, true},
    {"historic (kmp)", singh_graham::predictor::specific, true},
    {"levenshtein (kmp)", singh_graham::predictor::levenshtein, true},
};

/** One of the paper's figures. */
struct figure {
    int number;
    const char *title;
    event_stream stream;
    uint32_t sampling; /* period, events */
    uint32_t until;    /* last request, events */
    bool enhanced;     /* with the predictors that use KMP */
    const char *paper; /* what it says of the figure */
};

struct options {
    std::string folder = "out";
    std::vector<std::string> traces;
    std::string axis = "distance";
    std::string kmp = "zc";
    std::string match = "whole";
    std::string recent = "over";
    bool quick = false;
};

/** How far what a predictor said is from the messages that came. */
struct error {
    size_t distance; /* Levenshtein */
    size_t length;   /* of what was compared, messages */
    double likeness() const
    {
        return 1 - static_cast<double>(distance) / static_cast<double>(length);
    }
};

/** A request, and what came of it; nothing where no pattern was predicted. */
struct request {
    size_t time; /* messages */
    std::optional<error> off;
    /** Where nothing is predicted, nothing was right. */
    double likeness() const { return off ? off->likeness() : 0; }
};

/** Sums of one curve. A distance exists only where a pattern was predicted. */
struct summary {
    double distance = 0; /* mean; NaN if no request was answered */
    size_t most = 0;
    double likeness = 0; /* mean, of all requests */
    double least = 1;
    size_t unanswered = 0;
};

summary sum_up(const std::vector<request> &all)
{
    summary out;
    for (const request &each : all) {
        if (each.off) {
            out.distance += static_cast<double>(each.off->distance);
            out.most = std::max(out.most, each.off->distance);
        } else {
            out.unanswered++;
        }
        out.likeness += each.likeness();
        out.least = std::min(out.least, each.likeness());
    }
    out.distance /= static_cast<double>(all.size() - out.unanswered);
    out.likeness /= static_cast<double>(all.size());
    return out;
}

setting setting_for(const options &given, const variant &v, uint32_t ranks, uint32_t sampling)
{
    setting s{};
    s.ranks = ranks;
    s.period = s.sample = s.longest_sample = sampling;
    s.period_flows = s.lasting_flows = size_t{ranks} * (ranks - 1);
    s.search_bytes = s.archive_bytes = 32 << 20;
    s.literals = 3;
    s.window = 4;
    s.support = 2;
    if (v.kmp)
        s.kmp = given.kmp == "strict" ? ZCP_GROUPS_KMP_STRICT : ZCP_GROUPS_KMP_ZC;
    s.match = given.match == "prefix" ? ZCP_GROUPS_MATCH_PREFIX : ZCP_GROUPS_MATCH_WHOLE;
    s.recent = given.recent == "current" ? ZCP_GROUPS_RECENT_CURRENT : ZCP_GROUPS_RECENT_OVER;
    return s;
}

/** Compares the pattern predicted with as many messages that come after the request. */
std::optional<error> compare(const singh_graham &engine, const event_stream &stream, size_t at)
{
    const auto said = engine.predict();
    if (!said)
        return std::nullopt;
    const size_t length = std::min(said->pattern.size(), stream.events.size() - at);
    std::vector<uint32_t> expected;
    std::vector<uint32_t> came;
    for (size_t i = 0; i < length; i++) {
        expected.push_back(said->pattern[(said->phase + i) % said->pattern.size()]);
        const zcp_event_t &e = stream.events[at + i];
        came.push_back(e.src * stream.ranks + e.dst);
    }
    return error{levenshtein(expected, came, length, std::pmr::new_delete_resource()), length};
}

/** A request every @step events. */
std::vector<request> run(const options &given, const event_stream &stream, const variant &v,
                         uint32_t sampling, size_t step, size_t until)
{
    bounded_memory memory(size_t{256} << 20);
    singh_graham engine(setting_for(given, v, stream.ranks, sampling), v.predictor, &memory);
    std::vector<request> out;
    for (size_t i = 0; i < std::min(until, stream.events.size() - 1); i++) {
        engine.learn(stream.events[i], static_cast<tick>(i));
        if ((i + 1) % step == 0)
            out.push_back({i + 1, compare(engine, stream, i + 1)});
    }
    return out;
}

class drawing {
  public:
    explicit drawing(const options &given)
        : given_(given), out_(given.folder + "/papers.jsonl", std::ios::app)
    {
    }

    void draw(const figure &f)
    {
        const size_t until = given_.quick ? f.until / 4 : f.until;
        const size_t step = std::max<size_t>(1, f.until / 120);
        const std::string title =
            fmt::format("Figure {}: {}; {} processes, sampling period {}{}", f.number, f.title,
                        f.stream.ranks, f.sampling, f.stream.name.empty() ? "" : ", recorded");
        fmt::print("\n{}\n  the paper: {}\n", title, f.paper);
        plot p{title,
               "time of the request, messages",
               of_likeness() ? "likeness of pattern and messages that came"
                             : "Levenshtein distance, messages",
               1,
               false,
               {}};
        std::vector<curve> original;
        std::vector<curve> enhanced;
        for (const variant &v : kOriginal)
            original.push_back(curve_of(f, v, step, until));
        p.panels.emplace_back("original predictors", original);
        if (f.enhanced) {
            for (const variant &v : kEnhanced)
                enhanced.push_back(curve_of(f, v, step, until));
            p.panels.emplace_back("enhanced predictors", enhanced);
        }
        if (!of_likeness())
            p.y_most = above(p);
        const std::string path =
            fmt::format("{}/singh-graham-figure{}{}.svg", given_.folder, f.number,
                        f.stream.name.empty() ? "" : "-" + f.stream.name);
        write_svg(p, path);
        fmt::print("  {}\n", path);
        std::fflush(stdout);
        if (!out_.flush())
            throw std::runtime_error(given_.folder + "/papers.jsonl: cannot be written");
    }

  private:
    bool of_likeness() const { return given_.axis == "likeness"; }

    /** The end of an axis of whole numbers, quarters of which are whole, too. */
    static double above(const plot &p)
    {
        double most = 1;
        for (const auto &[caption, curves] : p.panels) {
            for (const curve &c : curves) {
                for (const auto &[time, value] : c.points)
                    most = std::isnan(value) ? most : std::max(most, value);
            }
        }
        return 4 * std::ceil(most / 4);
    }

    curve curve_of(const figure &f, const variant &v, size_t step, size_t until)
    {
        const auto all = run(given_, f.stream, v, f.sampling, step, until);
        write(f, v, all);
        curve out{v.label, {}, false};
        for (const request &each : all) {
            const double distance = each.off ? static_cast<double>(each.off->distance)
                                             : std::numeric_limits<double>::quiet_NaN();
            out.points.emplace_back(static_cast<double>(each.time),
                                    of_likeness() ? each.likeness() : distance);
        }
        const summary s = sum_up(all);
        fmt::print("  {:18} distance: mean {:.2f}, most {}; likeness: mean {:.3f}, least {:.3f}; "
                   "{} of {} requests without a prediction\n",
                   v.label, s.distance, s.most, s.likeness, s.least, s.unanswered, all.size());
        return out;
    }

    void write(const figure &f, const variant &v, const std::vector<request> &all)
    {
        nlohmann::ordered_json line;
        line["paper"] = "singh-graham";
        line["figure"] = f.number;
        line["title"] = f.title;
        line["program"] = f.stream.name.empty() ? "generated" : f.stream.name;
        line["ranks"] = f.stream.ranks;
        line["sampling"] = f.sampling;
        line["predictor"] = v.label;
        /* What is not as usual is said, so that lines of other readings are not taken for these. */
        if (v.kmp && given_.kmp != "zc")
            line["kmp"] = given_.kmp;
        if (given_.match != "whole")
            line["match"] = given_.match;
        if (given_.recent != "over")
            line["recent"] = given_.recent;
        for (const request &each : all) {
            line["time"] = each.time;
            line["distance"] = nullptr;
            line["length"] = nullptr;
            if (each.off) {
                line["distance"] = each.off->distance;
                line["length"] = each.off->length;
            }
            line["likeness"] = each.likeness();
            out_ << line.dump() << '\n';
        }
    }

    options given_;
    std::ofstream out_;
};

event_stream unnamed(event_stream stream)
{
    stream.name.clear();
    return stream;
}

/** The paper's programs as streams. It gives neither their messages nor the periods. */
std::vector<figure> papers_figures()
{
    const recipe eight{8, 2000, 0, 0, 1};
    const recipe four{4, 1000, 0, 0, 1};
    const event_stream master_slave = unnamed(master_slave_phases(eight, 1, 2));
    return {
        {2, "master/slave, original predictors", master_slave, 100, 1200, false,
         "basic poor, levenshtein surprisingly good, historic once drastically wrong, about 900"},
        {3, "master/slave", master_slave, 100, 1200, true,
         "the enhanced ones significantly better, of high quality throughout"},
        {4, "FFT", unnamed(butterfly(eight)), 100, 1200, true,
         "the enhanced ones significantly better, of high quality throughout"},
        {5, "master/slave, the start, small sampling period",
         unnamed(master_slave_phases(four, 1, 2)), 30, 360, true,
         "the original ones very poor, the enhanced ones with some variation"},
        {6, "master/slave, prolonged distribution phase", unnamed(master_slave_phases(eight, 6, 2)),
         200, 1200, true, "the enhanced ones much more tolerant"},
    };
}

} // namespace

int main(int argc, char **argv)
{
    options given;
    CLI::App app("Figures 2 to 6 of Singh & Graham, redrawn");
    app.add_option("--folder", given.folder, "where figures and data go");
    app.add_option("--trace", given.traces,
                   "NUMBER=FILE: draw figure NUMBER of a recorded program, too (events.csv)");
    app.add_option("--axis", given.axis,
                   "upwards: distance, as in the paper, or likeness, 1 - distance / length")
        ->check(CLI::IsMember({"distance", "likeness"}))
        ->capture_default_str();
    app.add_option("--kmp", given.kmp,
                   "fundamental patterns: as zc finds them, or strict, as the paper has it")
        ->check(CLI::IsMember({"zc", "strict"}))
        ->capture_default_str();
    app.add_option("--match", given.match,
                   "historic knows a pattern again by the whole of it, or where it is a prefix")
        ->check(CLI::IsMember({"whole", "prefix"}))
        ->capture_default_str();
    app.add_option("--recent", given.recent,
                   "most recent sampling period: the last one that is over, or the current one")
        ->check(CLI::IsMember({"over", "current"}))
        ->capture_default_str();
    app.add_flag("--quick", given.quick, "small inputs: does it run?");
    CLI11_PARSE(app, argc, argv);
    try {
        std::filesystem::create_directories(given.folder);
        drawing d(given);
        const auto figures = papers_figures();
        for (const figure &f : figures)
            d.draw(f);
        for (const std::string &trace : given.traces) {
            const auto equals = trace.find('=');
            const auto f = std::find_if(figures.begin(), figures.end(), [&](const figure &each) {
                return std::to_string(each.number) == trace.substr(0, equals);
            });
            if (equals == std::string::npos || f == figures.end())
                throw std::runtime_error(trace + ": wants NUMBER=FILE, NUMBER one of 2 to 6");
            figure recorded = *f;
            recorded.stream = read_events_csv(trace.substr(equals + 1));
            recorded.stream.name = "recorded";
            d.draw(recorded);
        }
    } catch (const std::exception &problem) {
        fmt::print(stderr, "figures: {}\n", problem.what());
        return 1;
    }
    return 0;
}

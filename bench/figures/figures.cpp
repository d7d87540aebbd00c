/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures: figures 2 to 6 of R. Singh and P. Graham, "Grouping MPI processes for
 * partial checkpoint and co-migration" (Euro-Par 2009), drawn again: how like the
 * pattern predicted is to the messages that came, by the time of the request.
 * Appends a line per point to FOLDER/papers.jsonl, writes
 * FOLDER/singh-graham-figure2.svg to figure6.svg, and prints a table beside what
 * the paper says. docs/papers/singh-graham.md has what had to be chosen.
 */

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

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
    bool kmp;
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
    bool quick = false;
};

using points = std::vector<std::pair<double, double>>;

double mean(const points &all)
{
    double sum = 0;
    for (const auto &[time, value] : all)
        sum += value;
    return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

double least(const points &all)
{
    double out = 1;
    for (const auto &[time, value] : all)
        out = std::min(out, value);
    return out;
}

setting setting_for(const variant &v, uint32_t ranks, uint32_t sampling)
{
    setting s{};
    s.ranks = ranks;
    s.period = s.sample = s.longest_sample = sampling;
    s.period_flows = s.lasting_flows = size_t{ranks} * (ranks - 1);
    s.search_bytes = s.archive_bytes = 32 << 20;
    s.literals = 3;
    s.window = 4;
    s.support = 2;
    s.kmp = v.kmp;
    return s;
}

/**
 * 1 - Levenshtein distance / length, of the pattern predicted and as many messages that
 * come after the request. Where nothing is predicted, 0: nothing was right.
 */
double likeness(const singh_graham &engine, const event_stream &stream, size_t request)
{
    const auto said = engine.predict();
    if (!said)
        return 0;
    const size_t length = std::min(said->pattern.size(), stream.events.size() - request);
    std::vector<uint32_t> expected;
    std::vector<uint32_t> came;
    for (size_t i = 0; i < length; i++) {
        expected.push_back(said->pattern[(said->phase + i) % said->pattern.size()]);
        const zcp_event_t &e = stream.events[request + i];
        came.push_back(e.src * stream.ranks + e.dst);
    }
    const size_t edits = levenshtein(expected, came, length, std::pmr::new_delete_resource());
    return 1 - static_cast<double>(edits) / static_cast<double>(length);
}

/** A request every @step events. */
points run(const event_stream &stream, const variant &v, uint32_t sampling, size_t step,
           size_t until)
{
    bounded_memory memory(size_t{256} << 20);
    singh_graham engine(setting_for(v, stream.ranks, sampling), v.predictor, &memory);
    points out;
    for (size_t i = 0; i < std::min(until, stream.events.size() - 1); i++) {
        engine.learn(stream.events[i], static_cast<tick>(i));
        if ((i + 1) % step == 0)
            out.emplace_back(i + 1, likeness(engine, stream, i + 1));
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
               "likeness of pattern and messages that came",
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
    curve curve_of(const figure &f, const variant &v, size_t step, size_t until)
    {
        const points all = run(f.stream, v, f.sampling, step, until);
        nlohmann::ordered_json line;
        line["paper"] = "singh-graham";
        line["figure"] = f.number;
        line["title"] = f.title;
        line["program"] = f.stream.name.empty() ? "generated" : f.stream.name;
        line["ranks"] = f.stream.ranks;
        line["sampling"] = f.sampling;
        line["predictor"] = v.label;
        for (const auto &[time, value] : all) {
            line["time"] = time;
            line["likeness"] = value;
            out_ << line.dump() << '\n';
        }
        fmt::print("  {:18} mean {:.3f}, least {:.3f}\n", v.label, mean(all), least(all));
        return {v.label, all, false};
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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures: figures 2 to 6 of Singh & Graham, "Grouping MPI processes for partial
 * checkpoint and co-migration" (Euro-Par 2009), on our generators: master/slave,
 * finite elements with noise, FFT butterfly. docs/grouping.md says what is on
 * which axis and what had to be chosen. Writes figure2.svg to figure6.svg and the
 * data as figures.jsonl.
 */

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>

#include "levenshtein.h"
#include "memory.h"
#include "plot.h"
#include "report.h"
#include "singh_graham.h"
#include "synthetic.h"

using namespace zc::groups;

namespace {

using past = singh_graham::memory_of;

constexpr uint32_t kRanks = 16;

struct variant {
    const char *label;
    past remembers;
    bool kmp;
    bool adaptive;
};

constexpr variant kBasic = {"basic", past::nothing, false, false};
constexpr variant kBasicKmp = {"basic, KMP", past::nothing, true, false};
constexpr variant kSame = {"specific historical", past::same, false, false};
constexpr variant kSameKmp = {"specific historical, KMP", past::same, true, false};
constexpr variant kSimilar = {"Levenshtein historical", past::similar, false, false};
constexpr variant kSimilarKmp = {"Levenshtein historical, KMP", past::similar, true, false};

struct outcome {
    double alike = 0;    /* 1 - Levenshtein distance / length, of expected and real sequences */
    double us = 0;       /* per event */
    double sampling = 0; /* at the end, events */
};

setting setting_for(const variant &v, uint32_t sample)
{
    setting s{};
    s.ranks = kRanks;
    s.period = sample;
    s.period_flows = s.lasting_flows = kRanks * (kRanks - 1);
    s.sample = sample;
    s.longest_sample = v.adaptive ? 4096 : sample;
    s.search_bytes = 32 << 20;
    s.literals = 3;
    s.window = 4;
    s.support = 2;
    s.kmp = v.kmp;
    s.adaptive = v.adaptive;
    return s;
}

double alike(const singh_graham &engine, const std::vector<zcp_event_t> &events, size_t from,
             size_t length)
{
    std::pmr::vector<uint32_t> expected;
    engine.expect(length, expected);
    std::vector<uint32_t> actual;
    for (size_t i = from; i < from + length; i++)
        actual.push_back(events[i].src * kRanks + events[i].dst);
    const size_t edits = levenshtein(expected, actual, length, std::pmr::new_delete_resource());
    return 1 - static_cast<double>(std::min(edits, length)) / static_cast<double>(length);
}

/** Expects, every @sample events after the first quarter, the next @sample events. */
outcome run(const event_stream &stream, const variant &v, uint32_t sample)
{
    using clock = std::chrono::steady_clock;
    bounded_memory memory(size_t{256} << 20);
    singh_graham engine(setting_for(v, sample), v.remembers, &memory);
    std::vector<double> scores;
    double spent = 0;
    size_t at = 0;
    for (; at + 2 * sample <= stream.events.size(); at += sample) {
        const auto start = clock::now();
        for (size_t i = at; i < at + sample; i++)
            engine.learn(stream.events[i], static_cast<tick>(i));
        spent += std::chrono::duration<double, std::micro>(clock::now() - start).count();
        if (at + sample >= stream.events.size() / 4)
            scores.push_back(alike(engine, stream.events, at + sample, sample));
    }
    outcome out;
    for (const double s : scores)
        out.alike += s / static_cast<double>(scores.size());
    out.us = at ? spent / static_cast<double>(at) : 0;
    out.sampling = engine.sampling();
    return out;
}

struct options {
    std::string folder = "out";
    bool quick = false;
};

class drawing {
  public:
    drawing(const options &given) : given_(given), out_("figures", given.folder + "/figures.jsonl")
    {
        periods_ = given.quick ? std::vector<uint32_t>{32, 128}
                               : std::vector<uint32_t>{16, 32, 48, 64, 96, 128, 192, 256, 384, 512};
    }

    std::vector<event_stream> streams(double noise) const
    {
        const recipe r{kRanks, given_.quick ? size_t{1500} : size_t{12000}, noise, 0, 7};
        std::vector<event_stream> out = {master_slave(r), fem(r), butterfly(r)};
        out[0].name = "master/slave";
        out[1].name = "finite elements";
        out[2].name = "FFT butterfly";
        return out;
    }

    /** Likeness by sampling period, a panel per program. */
    void by_period(int figure, const char *title, const std::vector<variant> &variants)
    {
        plot p{fmt::format("Figure {}: {}", figure, title),
               "sampling period, events",
               "likeness of sequences",
               1,
               true,
               {}};
        for (const event_stream &stream : streams(0.02)) {
            std::vector<curve> curves;
            for (const variant &v : variants) {
                curve c{v.label, {}, v.kmp};
                for (const uint32_t period : periods_) {
                    const outcome o = run(stream, v, period);
                    c.points.emplace_back(period, o.alike);
                    enter(figure, fmt::format("{}/{}", stream.name, period), v.label, o);
                }
                curves.push_back(c);
            }
            p.panels.emplace_back(stream.name, curves);
        }
        write(figure, p);
    }

    /** Likeness by noise at a fixed period. */
    void by_noise(int figure, const std::vector<variant> &variants)
    {
        plot p{fmt::format("Figure {}: noise, sampling period 256", figure),
               "share of random messages",
               "likeness of sequences",
               1,
               false,
               {}};
        const std::vector<double> shares =
            given_.quick ? std::vector<double>{0, 0.1}
                         : std::vector<double>{0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2};
        std::vector<std::vector<curve>> panels(3);
        std::vector<std::string> captions(3);
        for (const variant &v : variants) {
            for (auto &panel : panels)
                panel.push_back({v.label, {}, v.kmp});
            for (const double noise : shares) {
                const auto all = streams(noise);
                for (size_t i = 0; i < all.size(); i++) {
                    const outcome o = run(all[i], v, 256);
                    captions[i] = all[i].name;
                    panels[i].back().points.emplace_back(noise, o.alike);
                    enter(figure, fmt::format("{}/noise {:g}", all[i].name, noise), v.label, o);
                }
            }
        }
        for (size_t i = 0; i < panels.size(); i++)
            p.panels.emplace_back(captions[i], panels[i]);
        write(figure, p);
    }

  private:
    void enter(int figure, const std::string &name, const char *impl, const outcome &o)
    {
        const std::string full = fmt::format("figure{}/{}", figure, name);
        out_.add({full, impl, "likeness", "share", {o.alike}});
        out_.add({full, impl, "learn", "us/event", {o.us}});
        out_.add({full, impl, "sampling", "events", {o.sampling}});
    }

    void write(int figure, const plot &p) const
    {
        const std::string path = fmt::format("{}/figure{}.svg", given_.folder, figure);
        write_svg(p, path);
        fmt::print("{}\n", path);
        std::fflush(stdout);
    }

    options given_;
    report out_;
    std::vector<uint32_t> periods_;
};

} // namespace

int main(int argc, char **argv)
{
    options given;
    CLI::App app("Figures 2 to 6 of Singh & Graham, redrawn");
    app.add_option("--folder", given.folder, "where figures and data go");
    app.add_flag("--quick", given.quick, "small inputs: does it run?");
    CLI11_PARSE(app, argc, argv);
    try {
        std::filesystem::create_directories(given.folder);
        drawing d(given);
        d.by_period(2, "basic predictor, without and with KMP", {kBasic, kBasicKmp});
        d.by_period(3, "specific historical predictor", {kSame, kSameKmp});
        d.by_period(4, "Levenshtein historical predictor", {kSimilar, kSimilarKmp});
        d.by_noise(5, {kBasicKmp, kSameKmp, kSimilarKmp});
        const variant fixed = {"fixed sampling period", past::nothing, true, false};
        const variant adaptive = {"adaptive sampling period", past::nothing, true, true};
        d.by_period(6, "adaptive sampling period (basic, KMP)", {fixed, adaptive});
    } catch (const std::exception &problem) {
        fmt::print(stderr, "figures: {}\n", problem.what());
        return 1;
    }
    return 0;
}

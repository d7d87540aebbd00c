/* SPDX-License-Identifier: BSD-3-Clause */
#include "ahead.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "../figures/plot.h"

using namespace zc::report;

namespace {

constexpr size_t kGraph = 0;
constexpr size_t kDpd = 1;
constexpr uint32_t kNext = 1;
constexpr uint32_t kTenth = 10;
constexpr size_t kColumns = 4; /* of panels */

std::string capitals(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

/** The figure's measure. */
double both(const foretold &f, size_t predictor, uint32_t horizon)
{
    return percent(f, predictor, part::both, over_8k, horizon);
}

std::map<std::string, std::vector<const foretold *>> by_program(const std::vector<foretold> &all)
{
    std::map<std::string, std::vector<const foretold *>> out;
    for (const foretold &f : all)
        out[f.run->program].push_back(&f);
    return out;
}

std::string name_of(const foretold &f)
{
    return fmt::format("{} {}", capitals(f.run->program), f.run->processes);
}

/** Where the two predictors of the paper differ most. */
struct gap {
    double points = -1;
    std::string where;

    void take(const foretold &f, uint32_t horizon)
    {
        const double graph = both(f, kGraph, horizon);
        const double dpd = both(f, kDpd, horizon);
        if (graph < 0 || std::abs(graph - dpd) <= points)
            return;
        points = std::abs(graph - dpd);
        where = fmt::format("{} at +{}: G {:.1f}, D {:.1f}", name_of(f), horizon, graph, dpd);
    }
};

bool one_of(const recorded_run &run, std::initializer_list<const char *> programs)
{
    return std::any_of(programs.begin(), programs.end(),
                       [&](const char *program) { return run.program == program; });
}

statement share_above_90(const std::vector<foretold> &all)
{
    int above = 0;
    int points = 0;
    for (const foretold &f : all) {
        if (!one_of(*f.run, {"bt", "cg", "ft", "is", "lu", "sp"}))
            continue;
        for (const size_t predictor : {kGraph, kDpd}) {
            for (const uint32_t horizon : {kNext, kTenth}) {
                points++;
                above += both(f, predictor, horizon) > 90;
            }
        }
    }
    return {"very high, many times above 90 %, at +10, too",
            fmt::format("{} of {} points of G and D above 90 %", above, points)};
}

statement alike(const std::vector<foretold> &all)
{
    gap most;
    for (const foretold &f : all) {
        const bool exception = f.run->program == "bt" && f.run->processes == 25;
        if (!one_of(*f.run, {"bt", "cg", "ft", "is", "sp"}) || exception)
            continue;
        most.take(f, kNext);
        most.take(f, kTenth);
    }
    return {"G and D very similar in BT, CG, FT, IS and SP",
            most.where.empty()
                ? "no such run"
                : fmt::format("most apart, {:.1f} points: {}", most.points, most.where)};
}

statement of_run(const std::vector<foretold> &all, const char *paper, const char *program,
                 int processes)
{
    std::string here;
    for (const foretold &f : all) {
        if (f.run->program != program || (processes != 0 && f.run->processes != processes))
            continue;
        here += fmt::format("{}{}: G {:.1f} at +1, {:.1f} at +10; D {:.1f}, {:.1f}",
                            here.empty() ? "" : "\n", name_of(f), both(f, kGraph, kNext),
                            both(f, kGraph, kTenth), both(f, kDpd, kNext), both(f, kDpd, kTenth));
    }
    return {paper, here.empty() ? "no such run" : here};
}

} // namespace

std::vector<foretold> foretell(const std::vector<recorded_run> &runs)
{
    std::vector<foretold> out;
    for (const recorded_run &run : runs) {
        foretold f{&run, {}};
        for (size_t i = 0; i < kForetellers.size(); i++)
            f.by[i] = measure_accuracy(run.trace, kForetellers[i].name, order::post);
        out.push_back(std::move(f));
    }
    return out;
}

double percent(const foretold &f, size_t predictor, part what, size_class size, uint32_t horizon)
{
    const share &share = f.by[predictor].parts[static_cast<size_t>(what)][size][horizon - 1];
    return share.n != 0 ? share.percent() : -1;
}

void draw_by_processes(const std::vector<foretold> &all, const std::string &path)
{
    plot p{"Freitag et al., Figure 1: address and size of messages over 8 KiB foretold",
           "processes",
           "percent right",
           100,
           true,
           {},
           kColumns};
    for (const auto &[program, runs] : by_program(all)) {
        std::vector<curve> curves;
        for (size_t i = 0; i < kForetellers.size(); i++) {
            for (const uint32_t horizon : {kNext, kTenth}) {
                curve c{fmt::format("{}, +{}", kForetellers[i].label, horizon),
                        {},
                        horizon != kNext,
                        static_cast<int>(i)};
                for (const foretold *f : runs) {
                    if (both(*f, i, horizon) >= 0)
                        c.points.emplace_back(f->run->processes, both(*f, i, horizon));
                }
                curves.push_back(std::move(c));
            }
        }
        p.panels.emplace_back(capitals(program), std::move(curves));
    }
    write_svg(p, path);
}

void draw_by_horizon(const std::vector<foretold> &all, part what, const std::string &path)
{
    plot p{fmt::format("Messages over 8 KiB: {} foretold, mean of runs",
                       kParts[static_cast<size_t>(what)]),
           "receives ahead",
           "percent right",
           100,
           false,
           {},
           kColumns};
    for (const auto &[program, runs] : by_program(all)) {
        std::vector<curve> curves;
        for (size_t i = 0; i < kForetellers.size(); i++) {
            curve c{kForetellers[i].label, {}, false, static_cast<int>(i)};
            for (uint32_t horizon = 1; horizon <= kHorizons; horizon++) {
                double sum = 0;
                int n = 0;
                for (const foretold *f : runs) {
                    const double value = percent(*f, i, what, over_8k, horizon);
                    if (value >= 0) {
                        sum += value;
                        n++;
                    }
                }
                if (n != 0)
                    c.points.emplace_back(horizon, sum / n);
            }
            curves.push_back(std::move(c));
        }
        p.panels.emplace_back(capitals(program), std::move(curves));
    }
    write_svg(p, path);
}

std::vector<statement> statements(const std::vector<foretold> &all)
{
    return {share_above_90(all), alike(all),
            of_run(all, "BT on 25 processes: G worse at +10", "bt", 25),
            of_run(all, "LU: G right never at +10, D often", "lu", 0)};
}

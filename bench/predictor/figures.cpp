/* SPDX-License-Identifier: BSD-3-Clause */
#include "figures.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "prediction_report.h"
#include "synthetic.h"
#include "zcp/grouping.h"

using namespace zc::report;

namespace {

using by_run = std::map<std::string, double>;

by_run values(const std::vector<subject> &subjects, const std::string &predictor, figure figure)
{
    by_run out;
    for (const run_value &value : values_by_run(subjects, predictor, figure, over_8k))
        out[value.run] = value.percent;
    return out;
}

/** For each run the best of several predictors. */
by_run best_of(const std::vector<subject> &subjects, const std::vector<std::string> &predictors,
               figure figure)
{
    by_run best;
    for (const std::string &predictor : predictors) {
        for (const auto &[run, percent] : values(subjects, predictor, figure)) {
            const auto [place, is_new] = best.try_emplace(run, percent);
            place->second = std::max(place->second, percent);
        }
    }
    return best;
}

by_run difference(const by_run &a, const by_run &b)
{
    by_run out;
    for (const auto &[run, value] : a)
        out[run] = value - b.at(run);
    return out;
}

by_run only(const by_run &all, const std::function<bool(const std::string &)> &wanted)
{
    by_run out;
    std::copy_if(all.begin(), all.end(), std::inserter(out, out.end()),
                 [&](const auto &value) { return wanted(value.first); });
    return out;
}

enum class over { mean, worst };

/** Nothing if no run has a value. */
void add(std::vector<figure_row> &rows, const char *what, const char *unit, double required,
         over runs, const by_run &of, const char *note = "")
{
    if (of.empty())
        return;
    figure_row row{what, unit, true, required, 0, {}, "", note};
    const auto worst = std::min_element(
        of.begin(), of.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    double sum = 0;
    for (const auto &[run, value] : of) {
        row.values.push_back(value);
        sum += value;
    }
    row.worst = worst->first;
    row.reached = runs == over::worst ? worst->second : sum / static_cast<double>(of.size());
    rows.push_back(std::move(row));
}

/** Of the answers given with nine tenths of confidence, the share that was right. */
by_run calibration(const std::vector<subject> &subjects)
{
    std::map<std::string, share> sure;
    for (const subject &subject : subjects)
        sure[subject.run].add(subject.measurements.front().landing.calibration.back());
    by_run out;
    for (const auto &[run, share] : sure) {
        if (share.n != 0)
            out[run] = share.percent();
    }
    return out;
}

/** Of the answers given, the share that was congruent. */
by_run congruent_if_answered(const std::vector<subject> &subjects)
{
    std::map<std::string, share> answered;
    for (const subject &subject : subjects) {
        const auto &counts = subject.measurements.front().landing.by_class[over_8k];
        answered[subject.run].add({counts.congruent, counts.n - counts.silent});
    }
    by_run out;
    for (const auto &[run, share] : answered) {
        if (share.n != 0)
            out[run] = share.percent();
    }
    return out;
}

} // namespace

std::vector<figure_row> accuracy_figures(const std::string &folder, const std::string &lines)
{
    static const std::vector<std::string> kPredictors = {"default",   "default-keyed", "graph",
                                                         "dpd",       "longest-match", "last",
                                                         "last-size", "last-sender"};
    std::vector<subject> subjects;
    for (const trace &trace : load_traces(folder))
        subjects.push_back(measure(trace, kPredictors));
    append_lines(subjects, lines);

    const auto is_lu = [](const std::string &run) { return run.starts_with("npb-lu-"); };
    const auto is_double = [](const std::string &run) {
        return run == "npb-bt-A-4" || run == "npb-sp-A-4";
    };
    const std::vector<std::string> references = {"graph", "dpd", "longest-match"};
    const by_run exact = values(subjects, "default", figure::exact);
    std::vector<figure_row> rows;
    add(rows, "posting order +1, mean: stream", "%", 92.3, over::mean,
        values(subjects, "default", figure::post_1));
    add(rows, "posting order +10, mean: stream", "%", 90.5, over::mean,
        values(subjects, "default", figure::post_10));
    add(rows, "posting order +1, mean: by envelope", "%", 92.3, over::mean,
        values(subjects, "default-keyed", figure::post_1));
    add(rows, "posting order +10, mean: by envelope", "%", 90.5, over::mean,
        values(subjects, "default-keyed", figure::post_10));
    for (const auto &[what, which] :
         {std::pair{"+1 less the best reference, worst run", figure::post_1},
          std::pair{"+10 less the best reference, worst run", figure::post_10}})
        add(rows, what, "points", -1, over::worst,
            difference(values(subjects, "default", which), best_of(subjects, references, which)));
    add(rows, "LU +10, worst run", "%", 96.5, over::worst,
        only(values(subjects, "default", figure::post_10), is_lu));
    add(rows, "landing exact, mean", "%", 92, over::mean, exact);
    add(rows, "landing congruent, mean", "%", 95, over::mean,
        values(subjects, "default", figure::congruent));
    add(rows, "landing congruent where answered, mean", "%", 95, over::mean,
        congruent_if_answered(subjects));
    const by_run gain = difference(exact, values(subjects, "last-sender", figure::exact));
    add(rows, "exact less last address, BT 4 and SP 4", "points", 3, over::worst,
        only(gain, is_double));
    add(rows, "exact less last address, worst run", "points", -0.5, over::worst, gain);
    add(rows, "right at confidence 0.9 and more, worst run", "%", 90, over::worst,
        calibration(subjects));
    return rows;
}

std::vector<figure_row> cost_figures(const costs &costs)
{
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
    return {
        {"silent on random addresses", "%", true, 95, costs.silent, {}, "", ""},
        {"receive and query, 1,000 live keys, median", "ns", false, 60,
         quantile(costs.live_keys, 0.5), costs.live_keys, "", ""},
        {"the same, last tenth of 1 M events to first",
         "ratio",
         false,
         1.5,
         ratio(costs.late, costs.early),
         {},
         "",
         ""},
        {"the same, horizon 512 to 8",
         "ratio",
         false,
         1.5,
         ratio(costs.long_horizon, costs.short_horizon),
         {},
         "",
         ""},
        {"the same, most to least of 2 to 4,096 peers",
         "ratio",
         false,
         1.5,
         ratio(costs.most_of_peers, costs.least_of_peers),
         {},
         "",
         ""},
        {"memory", "KiB", false, 1024, costs.bytes / 1024, {}, "", ""},
    };
}

std::vector<figure_row> pattern_figures(bool quick)
{
    using clock = std::chrono::steady_clock;
    const size_t events = quick ? 20000 : 1000000;
    std::vector<figure_row> rows;
    for (const auto &[name, stream] :
         {std::pair{"butterfly", zc::groups::butterfly({64, events, 0, 0, 1})},
          std::pair{"butterfly, 1 % noise, jitter 2",
                    zc::groups::butterfly({64, events, 0.01, 2, 1})},
          std::pair{"finite elements, 5 % noise", zc::groups::fem({64, events, 0.05, 0, 2})}}) {
        std::vector<uint32_t> text;
        for (const zcp_event_t &e : stream.events)
            text.push_back(e.src * stream.ranks + e.dst);
        zcp_patterns_params_t params{};
        params.size = sizeof(params);
        params.literals = 3;
        params.window = 3;
        params.support = quick ? 20 : 1000;
        std::vector<double> seconds;
        std::string found;
        for (int i = 0; i < (quick ? 1 : 3); i++) {
            zcp_patterns_t *patterns = nullptr;
            const auto start = clock::now();
            if (zcp_patterns_find(text.data(), text.size(), &params, &patterns) != 0)
                throw std::runtime_error("TEIRESIAS refused its parameters");
            seconds.push_back(std::chrono::duration<double>(clock::now() - start).count());
            found = fmt::format("{} patterns, {}", zcp_patterns_count(patterns),
                                zcp_patterns_end(patterns) == ZCP_PATTERNS_COMPLETE ? "complete"
                                                                                    : "partial");
            zcp_patterns_destroy(patterns);
        }
        rows.push_back(
            {fmt::format("TEIRESIAS L3 W3 K{}, {} events, {}", params.support, events, name), "s",
             false, 2, quantile(seconds, 0.5), seconds, "", found});
    }
    return rows;
}

size_t print_figures(const std::vector<figure_row> &rows)
{
    size_t missed = 0;
    fmt::print("\n{:<68}{:>9}{:>9}  {:<8}{}\n", "figure", "required", "reached", "verdict",
               "median; worst; remarks");
    for (const figure_row &row : rows) {
        std::string remark = row.note;
        if (!row.worst.empty())
            remark =
                fmt::format("{:.1f}; {:.1f} {}", quantile(row.values, 0.5),
                            *std::min_element(row.values.begin(), row.values.end()), row.worst);
        fmt::print("{:<68}{:>9}{:>9.2f}  {:<8}{}\n", fmt::format("{} [{}]", row.what, row.unit),
                   fmt::format("{} {:g}", row.at_least ? ">=" : "<=", row.required), row.reached,
                   row.met() ? "met" : "MISSED", remark);
        missed += !row.met();
    }
    fmt::print("\n{} of {} met\n", rows.size() - missed, rows.size());
    return missed;
}

void record_figures(const std::vector<figure_row> &rows, report &out)
{
    for (const figure_row &row : rows) {
        out.add({"figure", "default", row.what, row.unit, {row.reached}});
        out.add({"figure", "required", row.what, row.unit, {row.required}});
    }
}

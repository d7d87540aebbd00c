/* SPDX-License-Identifier: BSD-3-Clause */
#include "prediction_report.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "contender.h"

using nlohmann::ordered_json;

namespace zc::report {

static constexpr const char *kKeyed = "default-keyed";
static constexpr const char *kDefault = "default";

std::vector<std::string> predictor_names()
{
    auto names = contender_names();
    names.insert(names.begin() + 1, kKeyed);
    return names;
}

subject measure(const trace &trace, const std::vector<std::string> &predictors)
{
    subject subject{trace.run, trace.rank,         trace.note, trace.receives.size(),
                    0,         find_period(trace), {}};
    for (const traced_receive &r : trace.receives)
        subject.messages_over_8k += r.large();
    for (const std::string &name : predictors) {
        measurement m{};
        m.predictor = name;
        m.has_stream = name != "offset"; /* a rule for addresses alone */
        if (name == kKeyed) {
            m.post = measure_keyed_accuracy(trace, kDefault, order::post);
            m.arrival = measure_keyed_accuracy(trace, kDefault, order::arrival);
        } else if (m.has_stream) {
            m.post = measure_accuracy(trace, name, order::post);
            m.arrival = measure_accuracy(trace, name, order::arrival);
        }
        m.has_landing = name != kKeyed && make_contender(name)->engine() != nullptr;
        if (m.has_landing) {
            m.landing = measure_landing(trace, name);
            m.ns_per_receive = measure_cost_ns(trace, name);
        }
        subject.measurements.push_back(std::move(m));
    }
    return subject;
}

double value_of(const measurement &m, figure figure, size_class size)
{
    const auto stream = [&](const accuracy &accuracy, uint32_t horizon) {
        const share &share = accuracy.ahead[size][horizon - 1];
        return m.has_stream && share.n != 0 ? share.percent() : -1.0;
    };
    const auto &landed = m.landing.by_class[size];
    const auto landing = [&](uint64_t right) {
        return m.has_landing && landed.n != 0 ? share{right, landed.n}.percent() : -1.0;
    };
    switch (figure) {
    case figure::post_1:
        return stream(m.post, 1);
    case figure::post_10:
        return stream(m.post, kHorizons);
    case figure::arrival_1:
        return stream(m.arrival, 1);
    case figure::arrival_10:
        return stream(m.arrival, kHorizons);
    case figure::exact:
        return landing(landed.exact);
    default:
        return landing(landed.congruent);
    }
}

std::vector<run_value> values_by_run(const std::vector<subject> &subjects,
                                     const std::string &predictor, figure figure, size_class size)
{
    std::map<std::string, std::pair<double, int>> sums;
    for (const subject &subject : subjects) {
        for (const measurement &m : subject.measurements) {
            const double value = value_of(m, figure, size);
            if (m.predictor != predictor || value < 0)
                continue;
            sums[subject.run].first += value;
            sums[subject.run].second++;
        }
    }
    std::vector<run_value> values;
    values.reserve(sums.size());
    for (const auto &[run, sum] : sums)
        values.push_back({run, sum.first / sum.second});
    return values;
}

static void add_accuracy(ordered_json &rows, const subject &subject, const measurement &m,
                         const accuracy &accuracy, const char *order)
{
    for (size_t c = 0; c < nr_size_classes; c++) {
        for (uint32_t h = 1; h <= kHorizons; h++) {
            const share &share = accuracy.ahead[c][h - 1];
            rows.push_back({{"run", subject.run},
                            {"rank", subject.rank},
                            {"predictor", m.predictor},
                            {"order", order},
                            {"horizon", h},
                            {"class", kClassNames[c]},
                            {"right", share.right},
                            {"n", share.n}});
        }
    }
}

static void add_landing(ordered_json &rows, const subject &subject, const measurement &m)
{
    for (size_t c = 0; c < nr_size_classes; c++) {
        const auto &counts = m.landing.by_class[c];
        rows.push_back({{"run", subject.run},
                        {"rank", subject.rank},
                        {"predictor", m.predictor},
                        {"class", kClassNames[c]},
                        {"exact", counts.exact},
                        {"congruent", counts.congruent},
                        {"silent", counts.silent},
                        {"n", counts.n}});
    }
}

static double quantile(std::vector<double> values, double q)
{
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

struct cost {
    std::vector<double> ns; /* one per trace */
    uint64_t bytes = 0;
};

static std::vector<std::pair<std::string, cost>> costs_of(const std::vector<subject> &subjects)
{
    std::vector<std::pair<std::string, cost>> costs;
    for (const measurement &m : subjects.front().measurements) {
        if (!m.has_landing)
            continue;
        cost cost;
        for (const subject &subject : subjects) {
            for (const measurement &other : subject.measurements) {
                if (other.predictor != m.predictor)
                    continue;
                cost.ns.push_back(other.ns_per_receive);
                cost.bytes = std::max(cost.bytes, other.landing.bytes);
            }
        }
        costs.emplace_back(m.predictor, std::move(cost));
    }
    return costs;
}

std::string to_json(const std::vector<subject> &subjects)
{
    ordered_json accuracy = ordered_json::array();
    ordered_json landing = ordered_json::array();
    ordered_json cost = ordered_json::array();
    for (const subject &subject : subjects) {
        for (const measurement &m : subject.measurements) {
            if (m.has_stream) {
                add_accuracy(accuracy, subject, m, m.post, "post");
                add_accuracy(accuracy, subject, m, m.arrival, "arrival");
            }
            if (m.has_landing)
                add_landing(landing, subject, m);
        }
    }
    for (const auto &[name, c] : costs_of(subjects))
        cost.push_back(
            {{"predictor", name}, {"ns_per_receive", quantile(c.ns, 0.5)}, {"bytes", c.bytes}});
    return ordered_json{{"accuracy", accuracy}, {"landing", landing}, {"cost", cost}}.dump() + "\n";
}

/* ---- tables ---- */

static void print_summary(const std::vector<subject> &subjects, size_class size, std::FILE *out)
{
    fmt::print(out, "{}, percent right: mean over runs / worst run\n\n{:16}",
               size == over_8k ? "Messages over 8 KiB" : "All messages", "");
    for (const char *name : kFigures)
        fmt::print(out, "{:>19}", name);
    fmt::print(out, "\n");
    for (const measurement &m : subjects.front().measurements) {
        fmt::print(out, "{:16}", m.predictor);
        for (size_t f = 0; f < kFigures.size(); f++) {
            const auto values = values_by_run(subjects, m.predictor, static_cast<figure>(f), size);
            if (values.empty()) {
                fmt::print(out, "{:>19}", "-");
                continue;
            }
            double sum = 0;
            double worst = 100;
            for (const run_value &value : values) {
                sum += value.percent;
                worst = std::min(worst, value.percent);
            }
            fmt::print(
                out, "{:>19}",
                fmt::format("{:.1f} / {:.1f}", sum / static_cast<double>(values.size()), worst));
        }
        fmt::print(out, "\n");
    }
    fmt::print(out, "\n");
}

static std::string cell(const std::vector<subject> &subjects, const std::string &run,
                        const std::string &predictor, figure figure)
{
    for (const run_value &value : values_by_run(subjects, predictor, figure, over_8k)) {
        if (value.run == run)
            return fmt::format("{:.1f}", value.percent);
    }
    return "-";
}

static void print_runs(const std::vector<subject> &subjects, figure figure, std::FILE *out)
{
    fmt::print(out, "Over 8 KiB, {}, by run\n\n{:20}", kFigures[static_cast<size_t>(figure)], "");
    for (const measurement &m : subjects.front().measurements)
        fmt::print(out, "{:>15}", m.predictor);
    fmt::print(out, "\n");
    std::string last;
    for (const subject &subject : subjects) {
        if (subject.run == last)
            continue;
        last = subject.run;
        fmt::print(out, "{:20}", subject.run);
        for (const measurement &m : subjects.front().measurements)
            fmt::print(out, "{:>15}", cell(subjects, subject.run, m.predictor, figure));
        fmt::print(out, "\n");
    }
    fmt::print(out, "\n");
}

template <size_t N, typename Outcomes>
static void print_causes(const std::vector<subject> &subjects, const char *title,
                         const std::array<const char *, N> &names, Outcomes outcomes,
                         std::FILE *out)
{
    fmt::print(out, "{}, over 8 KiB, percent\n\n{:16}", title, "");
    for (const char *name : names)
        fmt::print(out, "{:>{}}", name, std::max<size_t>(std::strlen(name) + 2, 12));
    fmt::print(out, "\n");
    for (size_t i = 0; i < subjects.front().measurements.size(); i++) {
        std::array<uint64_t, N> sums{};
        uint64_t n = 0;
        for (const subject &subject : subjects) {
            const auto &counts = outcomes(subject.measurements[i]);
            for (size_t k = 0; k < N; k++) {
                sums[k] += counts[k];
                n += counts[k];
            }
        }
        if (n == 0)
            continue;
        fmt::print(out, "{:16}", subjects.front().measurements[i].predictor);
        for (size_t k = 0; k < N; k++)
            fmt::print(out, "{:>{}.1f}", share{sums[k], n}.percent(),
                       std::max<size_t>(std::strlen(names[k]) + 2, 12));
        fmt::print(out, "\n");
    }
    fmt::print(out, "\n");
}

static void print_calibration(const std::vector<subject> &subjects, std::FILE *out)
{
    fmt::print(out, "Confidence of landing answers: percent right (answers)\n\n{:16}", "");
    for (size_t bin = 0; bin < kConfidenceBins; bin++)
        fmt::print(out, "{:>16}",
                   fmt::format("{:.1f}-{:.1f}", static_cast<double>(bin) / 10,
                               static_cast<double>(bin + 1) / 10));
    fmt::print(out, "{:>20}\n", "0.9-1.0, worst run");
    for (size_t i = 0; i < subjects.front().measurements.size(); i++) {
        if (!subjects.front().measurements[i].has_landing)
            continue;
        std::array<share, kConfidenceBins> sums{};
        std::map<std::string, share> sure;
        for (const subject &subject : subjects) {
            const auto &calibration = subject.measurements[i].landing.calibration;
            for (size_t bin = 0; bin < kConfidenceBins; bin++)
                sums[bin].add(calibration[bin]);
            sure[subject.run].add(calibration.back());
        }
        fmt::print(out, "{:16}", subjects.front().measurements[i].predictor);
        for (const share &sum : sums)
            fmt::print(out, "{:>16}",
                       sum.n ? fmt::format("{:.1f} ({})", sum.percent(), sum.n) : "-");
        double worst = 100;
        for (const auto &[run, share] : sure) {
            if (share.n != 0)
                worst = std::min(worst, share.percent());
        }
        fmt::print(out, "{:>20}\n", fmt::format("{:.1f}", worst));
    }
    fmt::print(out, "\n");
}

static void print_streams(const std::vector<subject> &subjects, std::FILE *out)
{
    fmt::print(out,
               "Streams in posting order: exact period, and messages until nine of ten were "
               "foretold at +1 (-: never)\n\n{:20}{:>6}{:>10}{:>10}{:>8}{:>10}{:>10}",
               "", "rank", "messages", "over 8K", "period", "from", "receives");
    for (const measurement &m : subjects.front().measurements) {
        if (m.has_stream)
            fmt::print(out, "{:>15}", m.predictor);
    }
    fmt::print(out, "\n");
    for (const subject &s : subjects) {
        fmt::print(out, "{:20}{:>6}{:>10}{:>10}{:>8}{:>10}{:>10}", s.run, s.rank, s.messages,
                   s.messages_over_8k, s.period.period, s.period.begin, s.period.length);
        for (const measurement &m : s.measurements) {
            if (m.has_stream)
                fmt::print(out, "{:>15}",
                           m.post.learned_after < 0 ? "-" : std::to_string(m.post.learned_after));
        }
        fmt::print(out, "\n");
    }
    fmt::print(out, "\n");
}

static void print_costs(const std::vector<subject> &subjects, std::FILE *out)
{
    fmt::print(out,
               "Cost of a receive with its landing query, over traces\n\n{:16}{:>12}{:>12}"
               "{:>14}\n",
               "", "median ns", "most ns", "memory KiB");
    for (const auto &[name, cost] : costs_of(subjects))
        fmt::print(out, "{:16}{:>12.0f}{:>12.0f}{:>14}\n", name, quantile(cost.ns, 0.5),
                   quantile(cost.ns, 1), (cost.bytes + 1023) / 1024);
}

void print_tables(const std::vector<subject> &subjects, std::FILE *out)
{
    print_summary(subjects, over_8k, out);
    print_summary(subjects, every_size, out);
    for (const figure figure : {figure::post_1, figure::post_10, figure::exact, figure::congruent})
        print_runs(subjects, figure, out);
    print_causes(
        subjects, "The next receive in posting order", kNextOutcomes,
        [](const measurement &m) -> const auto & { return m.post.outcomes; }, out);
    print_causes(
        subjects, "Landing", kLandingOutcomes,
        [](const measurement &m) -> const auto & { return m.landing.outcomes; }, out);
    print_calibration(subjects, out);
    print_streams(subjects, out);
    print_costs(subjects, out);
}

/* ---- benchmark lines ---- */

static ordered_json context()
{
    utsname system{};
    uname(&system);
    return {{"context",
             {{"kernel", system.release},
              {"machine", system.machine},
              {"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(
                                                    std::chrono::system_clock::now())))}}}};
}

static ordered_json line(const std::string &test, const std::string &impl,
                         const std::string &metric, const char *unit,
                         const std::vector<double> &values)
{
    return {{"bench", "predict"},
            {"case", test},
            {"impl", impl},
            {"bytes", 0},
            {"metric", metric},
            {"unit", unit},
            {"median", quantile(values, 0.5)},
            {"p10", quantile(values, 0.1)},
            {"p90", quantile(values, 0.9)},
            {"n", values.size()}};
}

void append_lines(const std::vector<subject> &subjects, const std::string &path)
{
    const auto parent = std::filesystem::path(path).parent_path();
    if (!parent.empty())
        std::filesystem::create_directories(parent);
    const bool is_new = !std::filesystem::exists(path) || std::filesystem::file_size(path) == 0;
    std::ofstream out(path, std::ios::app);
    if (is_new)
        out << context().dump() << "\n";
    for (const measurement &m : subjects.front().measurements) {
        for (const size_class size : {every_size, over_8k}) {
            for (size_t f = 0; f < kFigures.size(); f++) {
                std::vector<double> values;
                for (const run_value &value :
                     values_by_run(subjects, m.predictor, static_cast<figure>(f), size))
                    values.push_back(value.percent);
                if (!values.empty())
                    out << line(kClassNames[size], m.predictor, kFigures[f], "%", values).dump()
                        << "\n";
            }
        }
    }
    for (const auto &[name, cost] : costs_of(subjects)) {
        out << line("traces", name, "receive and landing query", "ns", cost.ns).dump() << "\n";
        out << line("traces", name, "memory", "bytes", {static_cast<double>(cost.bytes)}).dump()
            << "\n";
    }
    out.flush();
    if (!out)
        throw std::system_error(errno, std::generic_category(), path);
}

} // namespace zc::report

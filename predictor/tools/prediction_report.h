/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_PREDICTION_REPORT_H_INCLUDED
#define ZCP_TOOLS_PREDICTION_REPORT_H_INCLUDED

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "accuracy.h"
#include "landing_accuracy.h"
#include "period.h"
#include "receive_trace.h"

namespace zc::report {

/** All that is measured of one predictor on one trace. */
struct measurement {
    std::string predictor;
    bool has_stream;  /* post and arrival hold something */
    bool has_landing; /* landing and ns_per_receive hold something */
    accuracy post;
    accuracy arrival;
    landing_result landing;
    double ns_per_receive;
};

/** One trace and every predictor on it, in the order they were asked for. */
struct subject {
    std::string run;
    int rank;
    std::string note; /* trace::note */
    uint64_t messages;
    uint64_t messages_over_8k;
    period_found period;
    std::vector<measurement> measurements;
};

/** Names a report can hold: those of contender_names(), and "default-keyed". */
std::vector<std::string> predictor_names();

subject measure(const trace &trace, const std::vector<std::string> &predictors);

/** Figures of the summary, in percent. */
enum class figure { post_1, post_10, arrival_1, arrival_10, exact, congruent, count };
constexpr std::array<const char *, static_cast<size_t>(figure::count)> kFigures = {
    "post +1", "post +10", "arrival +1", "arrival +10", "landing exact", "landing congruent"};

/** Of @m, of that size class; a negative number if there was nothing to be right about. */
double value_of(const measurement &m, figure figure, size_class size);

/**
 * One value per run (the mean over its ranks) of those runs that have one, in
 * order of run.
 */
struct run_value {
    std::string run;
    double percent;
};
std::vector<run_value> values_by_run(const std::vector<subject> &subjects,
                                     const std::string &predictor, figure figure, size_class size);

/** As DESIGN.md, section 8, has it. */
std::string to_json(const std::vector<subject> &subjects);
/** For people. */
void print_tables(const std::vector<subject> &subjects, std::FILE *out);
/** Adds benchmark lines to @path; begins the file with a line of context if it is new. */
void append_lines(const std::vector<subject> &subjects, const std::string &path);
/** Accuracy over the horizon, and landing by run. */
std::string to_svg(const std::vector<subject> &subjects);

} // namespace zc::report

#endif

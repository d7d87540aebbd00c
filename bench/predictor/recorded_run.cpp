/* SPDX-License-Identifier: BSD-3-Clause */
#include "recorded_run.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <tuple>

#include <fmt/format.h>

using zc::report::trace;
using zc::report::trace_error;

static recorded_run named(const trace &trace)
{
    static const std::regex kName("(?:npb-)?(.+?)(?:-([A-FSW]))?-([0-9]{1,6})(?:\\.zct)?");
    std::smatch parts;
    if (!std::regex_match(trace.run, parts, kName))
        throw trace_error(trace.run + ": not named PROGRAM-PROCESSES or PROGRAM-CLASS-PROCESSES");
    recorded_run run{parts[1], parts[2].matched ? parts[2].str().front() : '\0',
                     std::stoi(parts[3]), trace};
    std::transform(run.program.begin(), run.program.end(), run.program.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return run;
}

static auto order(const recorded_run &run)
{
    return std::tie(run.program, run.problem, run.processes);
}

std::vector<recorded_run> load_runs(const std::vector<std::string> &paths, int rank)
{
    std::vector<recorded_run> runs;
    std::set<std::string> without;
    for (const std::string &path : paths) {
        std::set<std::string> here;
        std::set<std::string> with_rank;
        for (const trace &trace : zc::report::load_traces(path)) {
            here.insert(trace.run);
            if (trace.rank != rank)
                continue;
            with_rank.insert(trace.run);
            runs.push_back(named(trace));
        }
        std::set_difference(here.begin(), here.end(), with_rank.begin(), with_rank.end(),
                            std::inserter(without, without.end()));
    }
    if (!without.empty())
        throw trace_error(fmt::format("{}: rank {} is not recorded", *without.begin(), rank));
    std::sort(runs.begin(), runs.end(),
              [](const recorded_run &a, const recorded_run &b) { return order(a) < order(b); });
    const auto twice = std::adjacent_find(
        runs.begin(), runs.end(),
        [](const recorded_run &a, const recorded_run &b) { return order(a) == order(b); });
    if (twice != runs.end())
        throw trace_error(twice->trace.run + ": is there twice");
    return runs;
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* zc-predict: how predictable are the receives of a program? See zc-predict(1). */
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "prediction_report.h"

using namespace zc::report;

namespace {

enum { kDone = 0, kFailed = 1, kUsage = 2 };

struct options {
    std::vector<std::string> paths;
    std::vector<std::string> predictors;
    bool json = false;
    std::string svg;
    std::string lines;
};

void write_file(const std::string &path, const std::string &content)
{
    std::ofstream out(path, std::ios::binary);
    out << content;
    out.flush();
    if (!out)
        throw std::system_error(errno, std::generic_category(), path);
}

void report(const options &options)
{
    std::vector<trace> traces;
    for (const std::string &path : options.paths) {
        auto more = load_traces(path);
        std::move(more.begin(), more.end(), std::back_inserter(traces));
    }
    for (const trace &trace : traces) {
        if (!trace.note.empty())
            fmt::print(stderr, "zc-predict: note: {}\n", trace.note);
    }
    std::vector<subject> subjects;
    subjects.reserve(traces.size());
    for (const trace &trace : traces)
        subjects.push_back(
            measure(trace, options.predictors.empty() ? predictor_names() : options.predictors));

    if (!options.svg.empty())
        write_file(options.svg, to_svg(subjects));
    if (!options.lines.empty())
        append_lines(subjects, options.lines);
    if (options.json)
        fmt::print("{}", to_json(subjects));
    else
        print_tables(subjects, stdout);
    if (std::fflush(stdout) != 0)
        throw std::system_error(errno, std::generic_category(), "standard output");
}

} // namespace

int main(int argc, char **argv)
{
    CLI::App app("How predictable are the receives of an MPI program?", "zc-predict");
    app.require_subcommand(1);
    app.set_version_flag("--version", ZC_VERSION);

    options options;
    CLI::App *command =
        app.add_subcommand("report", "accuracy of every predictor on recorded receives, as tables");
    command
        ->add_option(
            "path", options.paths,
            "folder of one run (r<rank>.csv.gz or r<rank>.zct), folder of such folders, or a "
            "trace file")
        ->required();
    command->add_option("--predictor", options.predictors, "only this one; may be repeated")
        ->check(CLI::IsMember(predictor_names()))
        ->take_all()
        ->allow_extra_args(false);
    command->add_flag("--json", options.json, "one JSON object instead of the tables");
    command->add_option("--svg", options.svg, "draw a picture into this file");
    command->add_option("--out", options.lines, "add benchmark lines (JSON) to this file");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? kDone : kUsage;
    }
    try {
        report(options);
        return kDone;
    } catch (const std::exception &error) {
        fmt::print(stderr, "zc-predict: {}\n", error.what());
        return kFailed;
    }
}

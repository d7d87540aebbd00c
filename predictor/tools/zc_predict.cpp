/* SPDX-License-Identifier: BSD-3-Clause */

/* zc-predict: how predictable are the receives of a program? See zc-predict(1). */
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
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

/** Measures the traces of one path one after the other: of all at once there may be too many to
 * have in memory. Adds them by run and rank. */
void add_subjects(const std::string &path, const std::vector<std::string> &predictors,
                  std::vector<subject> &subjects)
{
    const auto nr_before = static_cast<std::ptrdiff_t>(subjects.size());
    each_trace(path, [&](const trace &trace) { subjects.push_back(measure(trace, predictors)); });
    std::stable_sort(subjects.begin() + nr_before, subjects.end(),
                     [](const subject &a, const subject &b) {
                         return a.run != b.run ? a.run < b.run : a.rank < b.rank;
                     });
}

void report(const options &options)
{
    std::vector<subject> subjects;
    for (const std::string &path : options.paths)
        add_subjects(path, options.predictors.empty() ? predictor_names() : options.predictors,
                     subjects);
    for (const subject &subject : subjects) {
        if (!subject.note.empty())
            fmt::print(stderr, "zc-predict: note: {}\n", subject.note);
    }

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

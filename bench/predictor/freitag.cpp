/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * freitag: Table 1 and Figure 1 of F. Freitag, M. Farreras, T. Cortes and J. Labarta, "Predicting
 * MPI Buffer Addresses" (ICCS 2004), made again from recorded runs: the receives of a process,
 * and how well graph, DPD and zc's default foretell them, 1 to 10 receives ahead.
 *
 * Appends a line per row and point to FOLDER/papers.jsonl, writes FOLDER/freitag-figure1.svg and
 * a picture over all horizons for addresses, sizes and both, and prints tables beside what the
 * paper says. docs/papers/freitag.md has what had to be chosen.
 */
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ahead.h"
#include "recorded_run.h"
#include "stream_table.h"

using namespace zc::report;
using nlohmann::ordered_json;

namespace {

enum { kDone = 0, kFailed = 1, kUsage = 2 };

struct options {
    std::vector<std::string> traces = {"bench/figures/data/npb"};
    std::string folder = "out";
    int rank = 1;
    bool json = false;
};

ordered_json line_for(const recorded_run &run)
{
    return {{"paper", "freitag"},
            {"program", run.program},
            {"class", run.problem ? std::string(1, run.problem) : ""},
            {"ranks", run.processes},
            {"rank", run.trace.rank}};
}

ordered_json to_json(const std::vector<pattern> &patterns)
{
    ordered_json out = ordered_json::array();
    for (const pattern &p : patterns)
        out.push_back({{"period", p.period},
                       {"messages", p.messages},
                       {"addresses", p.addresses},
                       {"sizes", p.sizes}});
    return out;
}

ordered_json row_line(const recorded_run &run, const stream_row &row)
{
    ordered_json line = line_for(run);
    line["table"] = 1;
    line["messages"] = row.messages;
    line["over8k"] = row.over_8k;
    line["addresses"] = row.addresses;
    line["sizes"] = row.sizes;
    line["patterns"] = to_json(row.fitted);
    line["patterns_window_256"] = to_json(row.fixed);
    line["printed"] = nullptr;
    if (const auto in_paper = printed(run))
        line["printed"] = {{"messages", in_paper->messages},
                           {"addresses", in_paper->addresses},
                           {"sizes", in_paper->sizes},
                           {"period", in_paper->period}};
    return line;
}

void add_points(const foretold &f, ordered_json &lines)
{
    ordered_json line = line_for(*f.run);
    line["figure"] = 1;
    for (size_t i = 0; i < kForetellers.size(); i++) {
        line["predictor"] = kForetellers[i].name;
        for (size_t what = 0; what < kParts.size(); what++) {
            line["part"] = kParts[what];
            for (size_t size = 0; size < nr_size_classes; size++) {
                line["messages"] = kClassNames[size];
                for (uint32_t h = 1; h <= kHorizons; h++) {
                    const share &share = f.by[i].parts[what][size][h - 1];
                    line["ahead"] = h;
                    line["right"] = share.right;
                    line["n"] = share.n;
                    lines.push_back(line);
                }
            }
        }
    }
}

ordered_json statement_line(const statement &s)
{
    return {{"paper", "freitag"}, {"figure", 1}, {"statement", s.paper}, {"here", s.here}};
}

/** "105 (1471), 4 (202)": those that lasted for a twentieth of the messages. */
std::string periods(const std::vector<pattern> &patterns, size_t messages)
{
    std::string out;
    for (const pattern &p : patterns) {
        if (p.messages * 20 >= messages)
            out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", p.period, p.messages);
    }
    return out.empty() ? "-" : out;
}

void print_table(const std::vector<recorded_run> &runs, const std::vector<stream_row> &rows)
{
    fmt::print("Table 1: messages received by one process; different addresses and sizes in the\n"
               "pattern, and its length. In brackets: messages while that was the period.\n\n"
               "{:10}{:^32}  zc\n{:10}{:>9}{:>7}{:>7}{:>9}  {:>9}{:>7}{:>7}  {}\n",
               "", "the paper", "", "messages", "addr.", "sizes", "pattern", "messages", "addr.",
               "sizes", "pattern: window fitted; window 256");
    for (size_t i = 0; i < runs.size(); i++) {
        const stream_row &row = rows[i];
        const auto in_paper = printed(runs[i]);
        const auto number = [&](auto member) {
            return in_paper ? fmt::format("{}", (*in_paper).*member) : "-";
        };
        const pattern main = row.fitted.empty() ? pattern{} : row.fitted.front();
        fmt::print("{:10}{:>9}{:>7}{:>7}{:>9}  {:>9}{:>7}{:>7}  {}; {}\n",
                   fmt::format("{} {}", runs[i].program, runs[i].processes),
                   number(&printed_row::messages), number(&printed_row::addresses),
                   number(&printed_row::sizes), number(&printed_row::period), row.messages,
                   main.addresses, main.sizes, periods(row.fitted, row.messages),
                   periods(row.fixed, row.messages));
    }
}

void print_figure(const std::vector<foretold> &all)
{
    fmt::print("\nFigure 1: address and size of messages over 8 KiB foretold, percent right\n\n"
               "{:10}",
               "");
    for (const foreteller &f : kForetellers)
        fmt::print("{:>12} +1{:>8}", f.name, "+10");
    fmt::print("\n");
    for (const foretold &f : all) {
        fmt::print("{:10}", fmt::format("{} {}", f.run->program, f.run->processes));
        for (size_t i = 0; i < kForetellers.size(); i++) {
            const double next = percent(f, i, part::both, over_8k, 1);
            if (next < 0)
                fmt::print("{:>15}{:>8}", "-", "-");
            else
                fmt::print("{:>15.1f}{:>8.1f}", next, percent(f, i, part::both, over_8k, 10));
        }
        fmt::print("\n");
    }
    for (const statement &s : statements(all))
        fmt::print("\nthe paper: {}\n{}\n", s.paper, s.here);
}

void append(const ordered_json &lines, const std::string &path)
{
    std::ofstream out(path, std::ios::app);
    for (const ordered_json &line : lines)
        out << line.dump() << '\n';
    if (!out.flush())
        throw std::runtime_error(path + ": cannot be written");
}

void run(const options &given)
{
    const auto runs = load_runs(given.traces, given.rank);
    for (const recorded_run &each : runs) {
        if (!each.trace.note.empty())
            fmt::print(stderr, "freitag: note: {}\n", each.trace.note);
    }
    std::filesystem::create_directories(given.folder);
    std::vector<stream_row> rows;
    ordered_json lines = ordered_json::array();
    for (const recorded_run &each : runs) {
        rows.push_back(describe_stream(each));
        lines.push_back(row_line(each, rows.back()));
    }
    const auto all = foretell(runs);
    for (const foretold &f : all)
        add_points(f, lines);
    for (const statement &s : statements(all))
        lines.push_back(statement_line(s));

    const std::string name = given.folder + "/freitag-";
    append(lines, given.folder + "/papers.jsonl");
    draw_by_processes(all, name + "figure1.svg");
    draw_by_horizon(all, part::both, name + "ahead.svg");
    draw_by_horizon(all, part::address, name + "ahead-addresses.svg");
    draw_by_horizon(all, part::size, name + "ahead-sizes.svg");
    if (given.json) {
        fmt::print("{}\n", lines.dump());
    } else {
        print_table(runs, rows);
        print_figure(all);
        fmt::print("\n{0}figure1.svg {0}ahead.svg {0}ahead-addresses.svg {0}ahead-sizes.svg\n",
                   name);
    }
    if (std::fflush(stdout) != 0)
        throw std::runtime_error("standard output: cannot be written");
}

} // namespace

int main(int argc, char **argv)
{
    options given;
    CLI::App app("Table 1 and Figure 1 of Freitag et al., made again from recorded runs",
                 "freitag");
    app.add_option("--traces", given.traces,
                   "folder of recorded runs, named PROGRAM-CLASS-PROCESSES; may be repeated")
        ->capture_default_str();
    app.add_option("--rank", given.rank, "the process of each run whose receives are taken")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--folder", given.folder, "where pictures and papers.jsonl go")
        ->capture_default_str();
    app.add_flag("--json", given.json, "print one JSON array, of the lines of papers.jsonl");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? kDone : kUsage;
    }
    try {
        run(given);
        return kDone;
    } catch (const std::exception &problem) {
        fmt::print(stderr, "freitag: {}\n", problem.what());
        return kFailed;
    }
}

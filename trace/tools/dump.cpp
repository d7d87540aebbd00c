/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>

#include "zct/trace.h"

namespace fs = std::filesystem;

namespace zc::zct {

namespace {

constexpr const char *kHelp =
    R"(usage: zc-trace dump FILE.zct                 the receives of one rank, as CSV
       zc-trace dump --events DIR              all sends in order of time, as CSV
       zc-trace dump --meta DIR                the run: ranks, communicators, as JSON
       zc-trace dump -o CSVDIR DIR             all of it, a file each

The files of the other ranks beside FILE.zct are read too: they say when
messages were sent.
)";

struct options {
    fs::path path;
    fs::path folder; /* of the CSV files */
    bool events = false;
    bool meta = false;
    bool help = false;
};

options parse(const std::vector<std::string> &arguments)
{
    options o;
    for (std::size_t i = 0; i < arguments.size(); i++) {
        const std::string &a = arguments[i];
        if (a == "--help" || a == "-h")
            o.help = true;
        else if (a == "--events")
            o.events = true;
        else if (a == "--meta")
            o.meta = true;
        else if ((a == "-o" || a == "--output") && i + 1 < arguments.size())
            o.folder = arguments[++i];
        else if (a.size() > 1 && a[0] == '-')
            throw std::invalid_argument("dump: unknown option " + a);
        else if (o.path.empty())
            o.path = a;
        else
            throw std::invalid_argument("dump: one file or folder at a time");
    }
    if (!o.help && o.path.empty())
        throw std::invalid_argument("dump: which file?");
    return o;
}

void say(const std::vector<std::string> &unreadable)
{
    for (const std::string &why : unreadable)
        std::cerr << "zc-trace: " << why << "; the file is left out\n";
}

/** A run, without those of its files that cannot be read: of these a line is said. */
run load_readable(const fs::path &path)
{
    std::vector<std::string> unreadable;
    run readable = load(path, &unreadable);
    say(unreadable);
    return readable;
}

void report_state(const rank_trace &rank)
{
    if (rank.complete)
        return;
    std::cerr << "zc-trace: rank " << rank.rank << ": the trace was cut off";
    if (rank.cut_bytes)
        std::cerr << ", " << rank.cut_bytes << " bytes of it are an unfinished block";
    std::cerr << "\n";
}

void write_rank(std::ostream &out, const rank_trace &rank)
{
    report_state(rank);
    write_csv(out, rank);
}

/** The rank of a file, and when it was sent what it received: the files beside it know, if they can
 * be read and are of its run. */
rank_trace load_among_others(const fs::path &file)
{
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    run alone = load(file);
    rank_trace &known = alone.ranks.front();
    try {
        std::vector<std::string> unreadable;
        rank_trace among_others;
        const run all = load_in_turn(folder, &unreadable, [&](const rank_trace &rank) {
            if (rank.rank == known.rank)
                among_others = rank;
        });
        say(unreadable);
        if (all.id == alone.id)
            return among_others;
    } catch (const error &e) {
        std::cerr << "zc-trace: " << e.what() << "; times of sending are not known\n";
    }
    return std::move(known);
}

void dump_file(const fs::path &file)
{
    write_rank(std::cout, load_among_others(file));
}

void write_file(const fs::path &file, const std::function<void(std::ostream &)> &write)
{
    std::ofstream out(file);
    write(out);
    out.close();
    if (!out)
        throw error(file.string() + ": " + std::strerror(errno));
}

void dump_folder(const run &run, const fs::path &to)
{
    std::error_code problem;
    fs::create_directories(to, problem);
    if (problem)
        throw error(to.string() + ": " + problem.message());
    for (const rank_trace &rank : run.ranks)
        write_file(to / ("r" + std::to_string(rank.rank) + ".csv"),
                   [&](std::ostream &out) { write_rank(out, rank); });
    write_file(to / "events.csv", [&](std::ostream &out) { write_events_csv(out, run); });
    write_file(to / "meta.json", [&](std::ostream &out) { write_meta_json(out, run); });
}

} // namespace

int dump(const std::vector<std::string> &arguments)
{
    const options o = parse(arguments);
    if (o.help)
        std::cout << kHelp;
    else if (!o.folder.empty())
        dump_folder(load_readable(o.path), o.folder);
    else if (o.events)
        write_events_csv(std::cout, load_readable(o.path));
    else if (o.meta)
        write_meta_json(std::cout, load_readable(o.path));
    else if (fs::is_directory(o.path))
        throw std::invalid_argument("dump: " + o.path.string() +
                                    " is a folder: name a file in it, or -o CSVDIR");
    else
        dump_file(o.path);
    std::cout.flush();
    if (!std::cout)
        throw error("standard output: cannot be written");
    return 0;
}

} // namespace zc::zct

/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>

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
class readable_run : public run_in_turn {
  public:
    explicit readable_run(const fs::path &path) : readable_run(path, {}) {}

  private:
    readable_run(const fs::path &path, std::vector<std::string> unreadable)
        : run_in_turn(path, &unreadable)
    {
        say(unreadable);
    }
};

void report_state(const rank_trace &rank)
{
    if (rank.complete)
        return;
    std::cerr << "zc-trace: rank " << rank.rank << ": the trace was cut off";
    if (rank.cut_bytes)
        std::cerr << ", " << rank.cut_bytes << " bytes of it are an unfinished block";
    std::cerr << "\n";
}

/** Standard output is flushed at the end of the program, where nobody catches. */
struct quiet_again {
    std::ostream &out;
    ~quiet_again() { out.exceptions(std::ios::goodbit); }
};

/** Writes all of it; ends when that fails, not when all rows were made. @name: for the error. */
void write_whole(std::ostream &out, const std::string &name,
                 const std::function<void(std::ostream &)> &write)
{
    const quiet_again later{out};
    errno = 0;
    try {
        out.exceptions(std::ios::badbit | std::ios::failbit);
        write(out);
        out.flush();
    } catch (const std::ios::failure &) {
        throw error(name + ": cannot be written: " + std::strerror(errno ? errno : EIO));
    }
}

void write_output(const std::function<void(std::ostream &)> &write)
{
    write_whole(std::cout, "standard output", write);
}

void write_file(const fs::path &file, const std::function<void(std::ostream &)> &write)
{
    std::ofstream out;
    write_whole(out, file.string(), [&](std::ostream &) {
        out.open(file);
        write(out);
        out.close(); /* some file systems say it only now */
    });
}

/** Writes the receives of a rank, and returns what meta.json says of them. */
rank_figures write_rank(std::ostream &out, run_in_turn &run, std::size_t place)
{
    report_state(run.about().ranks[place]);
    rank_figures figures;
    csv_writer csv(out);
    run.each_receive(place, [&](const receive &r) {
        csv.add(r);
        figures.add(r);
    });
    return figures;
}

/** Of a rank in a run; SIZE_MAX if its file is not one of the run's. */
std::size_t place_of(const run &run, std::int32_t rank)
{
    for (std::size_t i = 0; i < run.ranks.size(); i++)
        if (run.ranks[i].rank == rank)
            return i;
    return SIZE_MAX;
}

/** The run that a file is of, if all of it can be read; NULL: it has to do alone. */
std::unique_ptr<run_in_turn> others_of(const fs::path &file, const run &alone)
{
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    try {
        auto all = std::make_unique<readable_run>(folder);
        if (all->about().id == alone.id)
            return all;
    } catch (const error &e) {
        std::cerr << "zc-trace: " << e.what() << "; times of sending are not known\n";
    }
    return nullptr;
}

/** The rank of a file, and when it was sent what it received: the files beside it know, if they can
 * be read and are of its run. */
void dump_file(const fs::path &file)
{
    run_in_turn alone(file);
    const std::int32_t rank = alone.about().ranks.front().rank;
    const auto others = others_of(file, alone.about());
    const std::size_t place = others ? place_of(others->about(), rank) : SIZE_MAX;
    write_output([&](std::ostream &out) {
        if (place == SIZE_MAX)
            write_rank(out, alone, 0);
        else
            write_rank(out, *others, place);
    });
}

void dump_meta(const fs::path &path)
{
    readable_run run(path);
    std::vector<rank_figures> figures(run.about().ranks.size());
    for (std::size_t i = 0; i < figures.size(); i++)
        run.each_receive(i, [&](const receive &r) { figures[i].add(r); });
    write_output([&](std::ostream &out) { write_meta_json(out, run, figures); });
}

void dump_events(const fs::path &path)
{
    readable_run run(path);
    write_output([&](std::ostream &out) { write_events_csv(out, run); });
}

void dump_folder(const fs::path &path, const fs::path &to)
{
    readable_run run(path);
    std::error_code problem;
    fs::create_directories(to, problem);
    if (problem)
        throw error(to.string() + ": " + problem.message());
    std::vector<rank_figures> figures;
    for (std::size_t i = 0; i < run.about().ranks.size(); i++)
        write_file(to / ("r" + std::to_string(run.about().ranks[i].rank) + ".csv"),
                   [&](std::ostream &out) { figures.push_back(write_rank(out, run, i)); });
    write_file(to / "events.csv", [&](std::ostream &out) { write_events_csv(out, run); });
    write_file(to / "meta.json", [&](std::ostream &out) { write_meta_json(out, run, figures); });
}

} // namespace

int dump(const std::vector<std::string> &arguments)
{
    const options o = parse(arguments);
    if (o.help)
        write_output([](std::ostream &out) { out << kHelp; });
    else if (!o.folder.empty())
        dump_folder(o.path, o.folder);
    else if (o.events)
        dump_events(o.path);
    else if (o.meta)
        dump_meta(o.path);
    else if (fs::is_directory(o.path))
        throw std::invalid_argument("dump: " + o.path.string() +
                                    " is a folder: name a file in it, or -o CSVDIR");
    else
        dump_file(o.path);
    return 0;
}

} // namespace zc::zct

/* SPDX-License-Identifier: BSD-3-Clause */

/* zc-forecast: runs an MPI program and says what it would gain with ch4:zc. */

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <stdexcept>

#include "end_by_signal.h"
#include "forecast.h"
#include "model.h"
#include "zct/launch.h"

namespace fs = std::filesystem;
using namespace zc;

namespace {

struct options {
    fs::path folder; /* keep the recording here */
    fs::path events;
    fs::path html;
    std::string mpi;
    std::size_t nr_sites = 10;
    bool json = false;
    bool force = false;
    std::vector<std::string> command;
};

/** Returns whether one was to end this process. It would leave its folder behind. */
bool ignore_closed_pipes()
{
    static const bool ended_us = std::signal(SIGPIPE, SIG_IGN) != SIG_IGN;
    return ended_us;
}

/* The scratch folder, and what is said if a signal ends us. */
std::string unfinished;
std::string farewell;

void end_by(int signal)
{
    /* It goes if it is empty: then the command had not begun to record. */
    if (rmdir(unfinished.c_str()) != 0) {
        [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, farewell.data(), farewell.size());
    }
    std::signal(signal, SIG_DFL);
    raise(signal);
}

/** How the report of a recording is made again. */
std::string advice(const fs::path &folder)
{
    return "zc-forecast: the recording is kept: zc-forecast report " + folder.string() + "\n";
}

/** A folder for a recording that is not kept, unless its report fails. */
class scratch_folder {
  public:
    scratch_folder()
    {
        /* Where the ranks of other hosts may see it, too. */
        std::string name = fs::absolute(".zc-forecast-XXXXXX").string();
        if (!mkdtemp(name.data()))
            throw std::runtime_error("no folder can be made here for the recording: use -o DIR");
        path_ = name;
        unfinished = name;
        farewell = advice(path_);
        handle(end_by);
    }
    ~scratch_folder()
    {
        if (kept_)
            return;
        handle(SIG_IGN); /* the end is near */
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    scratch_folder(const scratch_folder &) = delete;
    scratch_folder &operator=(const scratch_folder &) = delete;
    const fs::path &path() const { return path_; }
    void keep() { kept_ = true; }

  private:
    /** What is ignored stays so. */
    static void handle(void (*handler)(int))
    {
        for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
            if (std::signal(signal, handler) == SIG_IGN)
                std::signal(signal, SIG_IGN);
    }

    fs::path path_;
    bool kept_ = false;
};

/** Is the file in the folder, or below it? */
bool is_within(const fs::path &file, const fs::path &folder)
{
    std::error_code problem;
    const fs::path inner = fs::weakly_canonical(file, problem);
    const fs::path outer = fs::weakly_canonical(folder, problem);
    return !folder.empty() &&
           std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first ==
               outer.end();
}

/** That a file cannot be written is said before the command runs, not after. @made: the folder that
 * the recording makes. */
void check_writable(const fs::path &file, const fs::path &made)
{
    std::error_code problem;
    const bool exists = fs::exists(file, problem);
    if (file.empty() || (exists && !fs::is_regular_file(file) && !fs::is_directory(file)))
        return; /* who reads a pipe would take this for the end */
    if (!fs::exists(file.parent_path(), problem) && is_within(file, made))
        return;
    const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        throw std::runtime_error(file.string() + ": cannot be written: " + std::strerror(errno));
    close(fd);
    if (!exists)
        fs::remove(fs::canonical(file, problem), problem); /* not the link that names it */
}

void check_outputs(const options &o)
{
    check_writable(o.events, o.folder);
    check_writable(o.html, o.folder);
}

/** Writes a file beside the report. */
template <typename Write>
void write_file(const fs::path &file, Write write)
{
    if (file.empty())
        return;
    errno = 0;
    std::ofstream out(file);
    write(out);
    out.close();
    if (!out)
        throw std::runtime_error(file.string() +
                                 ": cannot be written: " + std::strerror(errno ? errno : EIO));
}

/** Who read the report has gone, and did not want all of it. */
struct reader_gone {};

bool reader_has_gone()
{
    pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/** Frees the rows that messages were made of: they are a third of the memory that a report takes.
 */
void leave_calls(zct::run &run)
{
    for (zct::rank_trace &rank : run.ranks) {
        std::vector<zct::receive>().swap(rank.receives);
        std::vector<zct::send>().swap(rank.sends);
        for (zct::call &call : rank.calls)
            std::vector<std::uint64_t>().swap(call.sends);
    }
}

void report(const fs::path &folder, const options &o)
{
    /* Who reads the text may have enough: the files are written before that ends us. */
    const bool ends_us = ignore_closed_pipes();
    std::vector<std::string> unreadable;
    forecast::prediction prediction;
    zct::run run = zct::load_in_turn(folder, &unreadable, [&](const zct::rank_trace &rank) {
        forecast::predict(rank, forecast::zc_model().announce_local, prediction);
    });
    for (const std::string &why : unreadable)
        std::cerr << "zc-forecast: " << why << "; the file is left out\n";
    const std::vector<forecast::message> messages = forecast::messages_of(run, prediction);
    leave_calls(run);
    const forecast::site_names names(run);
    const forecast::forecast f =
        forecast::make_forecast(run, messages, names, prediction.total, o.nr_sites);
    if (o.json)
        forecast::write_json(std::cout, f);
    else
        forecast::write_text(std::cout, f, o.nr_sites);
    std::cout.flush();
    write_file(o.events,
               [&](std::ostream &out) { forecast::write_trace_events(out, run, messages, names); });
    write_file(o.html,
               [&](std::ostream &out) { forecast::write_html(out, run, messages, names, f); });
    if (!std::cout && ends_us && reader_has_gone())
        throw reader_gone();
    if (!std::cout)
        throw std::runtime_error("standard output: cannot be written");
}

std::string reason_of(const std::exception &e)
{
    if (dynamic_cast<const std::bad_alloc *>(&e))
        return "there is not enough memory for so large a recording (zc-forecast(1), NOTES)";
    return e.what();
}

int record(const options &o)
{
    check_outputs(o);
    zct::launch_options launch;
    std::unique_ptr<scratch_folder> scratch;
    if (o.folder.empty())
        scratch = std::make_unique<scratch_folder>();
    launch.folder = scratch ? scratch->path() : o.folder;
    launch.replace = o.force;
    launch.calls = true;
    launch.command = o.command;
    if (!o.mpi.empty())
        launch.mpi = zct::flavour_parse(o.mpi);
    const zct::launch_result result = zct::launch(launch);
    ignore_closed_pipes();
    if (!zct::is_trace_folder(result.folder)) {
        std::cerr << "zc-forecast: no MPI program ran to MPI_Init: there is nothing to forecast\n";
        return result.exit_code;
    }
    try {
        report(result.folder, o);
    } catch (const std::exception &e) { /* the command need not run again for that */
        if (scratch)
            scratch->keep();
        std::cerr << "zc-forecast: " << reason_of(e) << "\n" << advice(result.folder);
        return zct::kExitFailed;
    }
    return result.exit_code;
}

void add_output_options(CLI::App &app, options &o)
{
    app.add_flag("--json", o.json, "one line of JSON on standard output instead of the table");
    app.add_option(
        "--sites", o.nr_sites,
        "pairs of call sites that are shown, and whose gain is looked for (default: 10)");
    app.add_option("--trace", o.events,
                   "write the run as JSON trace events, for Perfetto and Chrome's trace viewer");
    app.add_option("--html", o.html, "write a page with the ranks' timeline for a browser");
}

int run_report(int argc, char **argv)
{
    options o;
    fs::path folder;
    CLI::App app{"Analyses a recording of zc-forecast -o DIR, or of zc-trace --calls.",
                 "zc-forecast report"};
    add_output_options(app, o);
    app.add_option("folder", folder, "the recording")->required();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) ? zct::kExitFailed : 0;
    }
    check_outputs(o);
    report(folder, o);
    return 0;
}

int run_main(int argc, char **argv)
{
    if (argc > 1 && std::string(argv[1]) == "report")
        return run_report(argc - 1, argv + 1);
    options o;
    CLI::App app{
        "Runs COMMAND (mpiexec -n 4 ./program), records its messages, and says what it would\n"
        "gain with ch4:zc. zc-forecast report DIR says it of a recording.",
        "zc-forecast"};
    app.set_version_flag("--version", std::string("zc-forecast ") + ZC_VERSION);
    app.footer("exit: the command's code; 125 zc-forecast failed, 126 the command cannot be run,\n"
               "127 it was not found");
    add_output_options(app, o);
    app.add_option("-o,--output", o.folder, "keep the recording in this folder");
    app.add_flag("--force", o.force, "replace a recording that is in it");
    app.add_option("--mpi", o.mpi, "the program's MPI (default: as it is linked)")
        ->check(CLI::IsMember({"mpich", "openmpi"}));
    app.prefix_command();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) ? zct::kExitFailed : 0;
    }
    o.command = app.remaining();
    if (!o.command.empty() && o.command.front() == "--")
        o.command.erase(o.command.begin());
    if (o.command.empty())
        throw std::runtime_error("which command? (zc-forecast --help)");
    if (o.command.front().size() > 1 && o.command.front()[0] == '-')
        throw std::runtime_error("unknown option " + o.command.front() + " (zc-forecast --help)");
    return record(o);
}

} // namespace

int main(int argc, char **argv)
{
    try {
        return run_main(argc, argv);
    } catch (const reader_gone &) { /* as any other program */
        zc::end_by_signal(SIGPIPE);
    } catch (const zct::launch_error &e) {
        std::cerr << "zc-forecast: " << e.what() << "\n";
        return e.code;
    } catch (const std::exception &e) {
        std::cerr << "zc-forecast: " << reason_of(e) << "\n";
        return zct::kExitFailed;
    }
}

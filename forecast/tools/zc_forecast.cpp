/* SPDX-License-Identifier: BSD-3-Clause */

/* zc-forecast: runs an MPI program and says what it would gain with ch4:zc. */

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "forecast.h"
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

/** A folder for a recording that is not kept. */
class scratch_folder {
  public:
    scratch_folder()
    {
        /* Where the ranks of other hosts may see it, too. */
        std::string name = fs::absolute(".zc-forecast-XXXXXX").string();
        if (!mkdtemp(name.data()))
            throw std::runtime_error("no folder can be made here for the recording: use -o DIR");
        path_ = name;
    }
    ~scratch_folder()
    {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    scratch_folder(const scratch_folder &) = delete;
    scratch_folder &operator=(const scratch_folder &) = delete;
    const fs::path &path() const { return path_; }

  private:
    fs::path path_;
};

/** Writes a file beside the report. */
template <typename Write>
void write_file(const fs::path &file, Write write)
{
    if (file.empty())
        return;
    std::ofstream out(file);
    write(out);
    out.close();
    if (!out)
        throw std::runtime_error(file.string() + ": cannot be written");
}

void report(const fs::path &folder, const options &o)
{
    const zct::run run = zct::load(folder);
    const std::vector<forecast::message> messages = forecast::messages_of(run);
    const forecast::site_names names(run);
    const forecast::forecast f = forecast::make_forecast(run, messages, names);
    write_file(o.events,
               [&](std::ostream &out) { forecast::write_trace_events(out, run, messages, names); });
    write_file(o.html,
               [&](std::ostream &out) { forecast::write_html(out, run, messages, names, f); });
    if (o.json)
        forecast::write_json(std::cout, f);
    else
        forecast::write_text(std::cout, f, o.nr_sites);
    std::cout.flush();
    if (!std::cout)
        throw std::runtime_error("standard output: cannot be written");
}

int record(const options &o)
{
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
    if (zct::is_trace_folder(result.folder))
        report(result.folder, o);
    else
        std::cerr << "zc-forecast: no MPI program ran to MPI_Init: there is nothing to forecast\n";
    return result.exit_code;
}

void add_output_options(CLI::App &app, options &o)
{
    app.add_flag("--json", o.json, "one line of JSON on standard output instead of the table");
    app.add_option("--sites", o.nr_sites, "lines of the table of call sites (default: 10)");
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
    } catch (const zct::launch_error &e) {
        std::cerr << "zc-forecast: " << e.what() << "\n";
        return e.code;
    } catch (const std::exception &e) {
        std::cerr << "zc-forecast: " << e.what() << "\n";
        return zct::kExitFailed;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* zcm-run: mpiexec with migration switched on. See zcm-run(1). */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "agents_of_job.h"
#include "checkpoint_directory.h"
#include "error.h"
#include "program_file.h"
#include "verify.h"

using namespace zc::migrate;
using zc::error;

namespace {

enum { kFailed = 1, kUsage = 2, kNoCheckpoint = 3 };

/** The command line. */
struct arguments {
    std::string restart, directory, name, mpiexec = "mpiexec";
    bool verifies = false;
    long every = 10;
    double patience_s = 120;
    agents_options agents;
    std::vector<std::string> words; /* of mpiexec */
};

void add_verify_options(CLI::App &app, arguments &a)
{
    app.add_flag("--verify", a.verifies,
                 "run the program without and with moves, and say what was not registered");
    app.add_option("--verify-every", a.every, "safe points from one move to the next")
        ->check(CLI::Range(1L, 1000000000L))
        ->capture_default_str();
    app.add_option("--verify-patience", a.patience_s,
                   "seconds, beyond what the run without moves took, after which the one with "
                   "moves is ended if no rank comes to a safe point")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
}

void add_agents_options(CLI::App &app, arguments &a)
{
    agents_options &o = a.agents;
    CLI::Option *agents =
        app.add_flag("--agents", o.wanted, "with an agent on each host of the job, for this job");
    agents->excludes(app.get_option("--verify"));
    const auto also = [&](const char *name, auto &value, const char *meaning) {
        return app.add_option(name, value, meaning)->needs(agents);
    };
    also("--agents-mode", o.mode, "move, or observe: say what would be moved")
        ->check(CLI::IsMember({"move", "observe"}))
        ->capture_default_str();
    also("--agents-config", o.config, "settings for all agents, as in zcmd.toml(5)");
    app.add_flag("--agents-find", o.finds,
                 "take agents of this user that run on a host already, and do not end them")
        ->needs(agents);
    also("--agents-launcher", o.launcher,
         "command that starts a program on a host, which is %h or comes last (default: srun in a "
         "job of Slurm's, else ssh, as mpiexec is told)");
    also("--agents-dir", o.directory, "where agents make a directory for the job on each host")
        ->capture_default_str();
    also("--agents-log", o.logs, "write what agents log to HOST.log in this directory");
    also("--agents-wait", o.wait_s, "seconds until all agents must have found each other")
        ->check(CLI::Range(1.0, 86400.0))
        ->capture_default_str();
    also("--zcmd", o.program, "the agent's program (default: beside zcm-run)");
}

/** An exit status, if there is nothing to run. */
std::optional<int> parse(int argc, char **argv, arguments &a)
{
    CLI::App app("Run an MPI program that can migrate, or resume it from a checkpoint", "zcm-run");
    app.set_version_flag("--version", ZC_VERSION);
    app.prefix_command();
    app.footer("zcm-run [OPTIONS] [--] mpiexec's own options, program and its arguments\n"
               "exit status: mpiexec's; 1 it cannot be run, or the agents cannot; 2 usage;\n"
               "3 no usable checkpoint;\n"
               "with --verify: 0 all is registered; 4 something is not; 5 nothing can be said");
    app.add_option("--restart", a.restart,
                   "resume from the latest checkpoint in this directory, or from this one");
    app.add_option("--dir", a.directory,
                   "save checkpoints here (default: where that of --restart is)");
    app.add_option("--job", a.name, "name for zcctl");
    app.add_option("--mpiexec", a.mpiexec, "the mpiexec to use")->capture_default_str();
    add_verify_options(app, a);
    add_agents_options(app, a);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem) == 0 ? 0 : kUsage;
    }
    a.words = app.remaining();
    if (!a.words.empty() && a.words[0] == "--")
        a.words.erase(a.words.begin());
    if (a.words.empty()) {
        fmt::print(stderr, "zcm-run: no program given (see --help)\n");
        return kUsage;
    }
    a.words.insert(a.words.begin(), a.mpiexec);
    return {};
}

/** What Open MPI's mpirun needs for ranks that move (zcm(7)), unless the user has chosen. */
void set_for_open_mpi()
{
    setenv("EVENT_NOEPOLL", "1", 0);
    setenv("OMPI_MCA_osc", "pt2pt", 0);
    setenv("OMPI_MCA_orte_allowed_exit_without_sync", "1", 0);
}

/** What Slurm's srun needs: successors are steps of their own, and 60 s after the processes of its
 * own have ended, which they do when the job starts, it ends those. */
void set_for_srun()
{
    setenv("SLURM_OVERLAP", "1", 0);
    const char *const wait = std::getenv("SLURM_WAIT"); /* 0, for ever, is taken for those 60 s */
    setenv("SLURM_WAIT", "100000000", wait && std::atoi(wait) == 0);
}

/** What libzcm reads. An exit status if there is no checkpoint. */
std::optional<int> set_environment(arguments &a)
{
    setenv("ZC_MIGRATE", "1", 1);
    std::error_code none;
    const std::filesystem::path launcher =
        std::filesystem::canonical(zc::program_file(a.mpiexec), none).filename();
    if (launcher == "orterun")
        set_for_open_mpi();
    else if (launcher == "srun")
        set_for_srun();
    if (!a.restart.empty()) {
        try {
            /* Where one checkpoint was named, the next goes beside it. */
            const std::filesystem::path chosen = checkpoint_directory::latest(a.restart).directory;
            if (a.directory.empty())
                a.directory = chosen.parent_path().empty() ? "." : chosen.parent_path().string();
        } catch (const error &problem) {
            fmt::print(stderr, "zcm-run: {}\n", problem.what());
            return kNoCheckpoint;
        }
        setenv("ZC_MIGRATE_RESTART", a.restart.c_str(), 1);
    }
    if (!a.directory.empty())
        setenv("ZC_MIGRATE_DIR", a.directory.c_str(), 1);
    if (!a.name.empty())
        setenv("ZC_MIGRATE_JOB", a.name.c_str(), 1);
    return {};
}

} // namespace

int main(int argc, char **argv)
{
    arguments a;
    if (const auto status = parse(argc, argv, a))
        return *status;
    if (const auto status = set_environment(a))
        return *status;
    if (a.verifies)
        return static_cast<int>(verify(a.words, a.every, a.patience_s));
    if (a.agents.wanted) {
        try {
            return run_with_agents(a.agents, a.words);
        } catch (const error &problem) {
            fmt::print(stderr, "zcm-run: {}\n", problem.what());
            return kFailed;
        }
    }
    std::vector<char *> arguments;
    for (std::string &word : a.words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "zcm-run: {}: {}\n", a.mpiexec, std::strerror(errno));
    return kFailed;
}

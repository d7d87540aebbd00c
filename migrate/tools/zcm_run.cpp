/* SPDX-License-Identifier: BSD-3-Clause */

/* zcm-run: mpiexec with migration switched on. See zcm-run(1). */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "checkpoint_directory.h"
#include "error.h"
#include "verify.h"

using namespace zc::migrate;
using zc::error;

namespace {

enum { kFailed = 1, kUsage = 2, kNoCheckpoint = 3 };

} // namespace

int main(int argc, char **argv)
{
    CLI::App app("Run an MPI program that can migrate, or resume it from a checkpoint", "zcm-run");
    app.set_version_flag("--version", ZC_VERSION);
    app.prefix_command();
    app.footer("zcm-run [OPTIONS] [--] mpiexec's own options, program and its arguments\n"
               "exit status: mpiexec's; 1 it cannot be run; 2 usage; 3 no usable checkpoint;\n"
               "with --verify: 0 all is registered; 4 something is not; 5 nothing can be said");
    std::string restart, directory, name, mpiexec = "mpiexec";
    app.add_option("--restart", restart,
                   "resume from the latest checkpoint in this directory, or from this one");
    app.add_option("--dir", directory,
                   "save checkpoints here (default: where that of --restart is)");
    app.add_option("--job", name, "name for zcctl");
    app.add_option("--mpiexec", mpiexec, "the mpiexec to use")->capture_default_str();
    bool verifies = false;
    long every = 10;
    app.add_flag("--verify", verifies,
                 "run the program without and with moves, and say what was not registered");
    app.add_option("--verify-every", every, "safe points from one move to the next")
        ->check(CLI::Range(1L, 1000000000L))
        ->capture_default_str();
    double patience_s = 120;
    app.add_option("--verify-patience", patience_s,
                   "seconds, beyond what the run without moves took, after which the one with "
                   "moves is ended if no rank comes to a safe point")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem) == 0 ? 0 : kUsage;
    }
    std::vector<std::string> words = app.remaining();
    if (!words.empty() && words[0] == "--")
        words.erase(words.begin());
    if (words.empty()) {
        fmt::print(stderr, "zcm-run: no program given (see --help)\n");
        return kUsage;
    }
    setenv("ZC_MIGRATE", "1", 1);
    if (!restart.empty()) {
        try {
            /* Where one checkpoint was named, the next goes beside it. */
            const std::filesystem::path chosen = checkpoint_directory::latest(restart).directory;
            if (directory.empty())
                directory = chosen.parent_path().empty() ? "." : chosen.parent_path().string();
        } catch (const error &problem) {
            fmt::print(stderr, "zcm-run: {}\n", problem.what());
            return kNoCheckpoint;
        }
        setenv("ZC_MIGRATE_RESTART", restart.c_str(), 1);
    }
    if (!directory.empty())
        setenv("ZC_MIGRATE_DIR", directory.c_str(), 1);
    if (!name.empty())
        setenv("ZC_MIGRATE_JOB", name.c_str(), 1);
    if (verifies) {
        words.insert(words.begin(), mpiexec);
        return static_cast<int>(verify(words, every, patience_s));
    }
    std::vector<char *> arguments{mpiexec.data()};
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "zcm-run: {}: {}\n", mpiexec, std::strerror(errno));
    return kFailed;
}

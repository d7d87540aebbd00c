/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_LAUNCH_H_INCLUDED
#define ZCT_LAUNCH_H_INCLUDED

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "zct/flavour.h"

namespace zc::zct {

/** The command was not run; what() says why, code what to exit with. */
struct launch_error : std::runtime_error {
    launch_error(int exit_code, const std::string &why) : runtime_error(why), code(exit_code) {}
    int code;
};

/* As env(1), timeout(1) and others exit. */
constexpr int kExitFailed = 125;
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

struct launch_options {
    std::filesystem::path folder; /* empty: trace.zct, trace-2.zct, ... */
    bool replace = false;         /* an earlier trace in the folder */
    bool calls = false;           /* record calls and call sites, too */
    std::optional<flavour> mpi;
    std::vector<std::string> command;
};

struct launch_result {
    std::filesystem::path folder; /* absolute */
    flavour mpi;
    int exit_code; /* the command's; 128 + number of the signal that ended it */
};

/**
 * Runs the command with its MPI programs traced. Under Hydra and Open MPI's
 * mpiexec only the ranks are given the tracer. A folder made for the trace is
 * removed if nothing was written.
 */
launch_result launch(const launch_options &options);

} // namespace zc::zct

#endif

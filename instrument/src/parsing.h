/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "program.h"

namespace zc::instrument {

/** How sources are compiled. */
struct compilation {
    std::vector<std::string> flags; /* of the compiler, for all sources */
    std::string database;           /* a folder with compile_commands.json, or empty */
    std::string mpicc;              /* asked for the folders of mpi.h; empty: not asked */
};

/** nullptr: they do not compile, which the compiler has printed. */
std::unique_ptr<program> parse(const std::vector<std::string> &files, const compilation &how);

/** One source in memory, for tests. nullptr: it does not compile. */
std::unique_ptr<program> parse_text(const std::vector<std::pair<std::string, std::string>> &files);

} // namespace zc::instrument

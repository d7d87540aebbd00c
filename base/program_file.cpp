/* SPDX-License-Identifier: BSD-3-Clause */
#include "program_file.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace fs = std::filesystem;

namespace zc {
namespace {

bool is_executable(const fs::path &file)
{
    std::error_code problem;
    return fs::is_regular_file(file, problem) && access(file.c_str(), X_OK) == 0;
}

} // namespace

fs::path program_file(const std::string &name)
{
    if (name.find('/') != name.npos)
        return is_executable(name) ? fs::path(name) : fs::path();
    const char *path = std::getenv("PATH");
    std::istringstream folders(path ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
        if (is_executable(candidate))
            return candidate;
    }
    return {};
}

} // namespace zc

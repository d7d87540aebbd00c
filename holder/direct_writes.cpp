/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_writes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace zc::holder {
namespace {

/* They copy while they are called; so does /dev/zc, which exchanges no page that is tracked. */
constexpr std::array<std::string_view, 8> kHarmless = {"/dev/null",    "/dev/zero",    "/dev/full",
                                                       "/dev/random",  "/dev/urandom", "/dev/tty",
                                                       "/dev/console", "/dev/zc"};

bool is_harmless(std::string target)
{
    constexpr std::string_view kDeleted = " (deleted)"; /* memory shared without a name, too */
    if (target.ends_with(kDeleted))
        target.resize(target.size() - kDeleted.size());
    if (target.starts_with("anon_inode:"))
        return target.find("io_uring") == std::string::npos;
    return !target.starts_with("/dev/") || target.starts_with("/dev/shm/") ||
           target.starts_with("/dev/pts/") ||
           std::find(kHarmless.begin(), kHarmless.end(), target) != kHarmless.end();
}

} // namespace

std::string direct_writer(pid_t pid)
{
    const std::string proc = "/proc/" + std::to_string(pid) + "/";
    for (const auto &entry : std::filesystem::directory_iterator(proc + "fd")) {
        const std::string target = std::filesystem::read_symlink(entry);
        if (!is_harmless(target))
            return target;
    }
    std::ifstream maps(proc + "maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.ends_with("/[aio] (deleted)") || line.ends_with("/[aio]"))
            return "requests of io_submit(2)";
        const std::size_t path = line.find(" /dev/");
        if (path != std::string::npos && !is_harmless(line.substr(path + 1)))
            return line.substr(path + 1);
    }
    return {};
}

} // namespace zc::holder

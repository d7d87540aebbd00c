/* SPDX-License-Identifier: BSD-3-Clause */
#include "room.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace zc::migrate {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/** What follows @key in @path, or the first number there if @key is empty. */
std::optional<std::uint64_t> number_in(const std::string &path, const std::string &key = "")
{
    std::ifstream file(path);
    std::string word;
    if (!key.empty())
        while (file >> word && word != key)
            continue;
    std::uint64_t value = 0;
    return file >> value ? std::optional(value) : std::nullopt;
}

/** What the group in @directory still has; file caches that nothing uses can be had, too. */
std::uint64_t room_of_group(const std::string &directory, const char *most, const char *used)
{
    const auto limit = number_in(directory + most), taken = number_in(directory + used);
    if (!limit || !taken) /* "max", or not there */
        return kUnlimited;
    const std::uint64_t cache =
        std::min(*taken, number_in(directory + "/memory.stat", "inactive_file").value_or(0));
    return *limit - std::min(*limit, *taken - cache);
}

/** Of the group @path below @mount and of all that it is in. */
std::uint64_t room_of_groups(const std::string &mount, std::string path, const char *most,
                             const char *used)
{
    std::uint64_t least = room_of_group(mount, most, used);
    while (!path.empty() && path != "/") {
        least = std::min(least, room_of_group(mount + path, most, used));
        path.erase(path.find_last_of('/'));
    }
    return least;
}

} // namespace

std::uint64_t room_in_memory(const std::string &root)
{
    std::uint64_t least = kUnlimited;
    if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:"))
        least = *kib * 1024;
    std::ifstream groups(root + "/proc/self/cgroup");
    /* NUMBER:CONTROLLERS:PATH; no controllers in version 2 */
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos)
            continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty())
            least = std::min(least, room_of_groups(root + "/sys/fs/cgroup", path, "/memory.max",
                                                   "/memory.current"));
        else if (("," + controllers + ",").find(",memory,") != std::string::npos)
            least =
                std::min(least, room_of_groups(root + "/sys/fs/cgroup/memory", path,
                                               "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
    }
    return least;
}

} // namespace zc::migrate

/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_room.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace zc {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/** The names of files differ between the two versions: Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/memory.rst of Linux. */
struct version {
    const char *mounted, *limit, *used, *cached;
};
constexpr version kFirst = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                            "/memory.usage_in_bytes", "total_inactive_file"};
constexpr version kSecond = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};

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

std::uint64_t room_of_group(const std::string &directory, const version &of)
{
    const auto limit = number_in(directory + of.limit), used = number_in(directory + of.used);
    if (!limit || !used) /* "max", or not there */
        return kUnlimited;
    const std::uint64_t cached =
        std::min(*used, number_in(directory + "/memory.stat", of.cached).value_or(0));
    return *limit - std::min(*limit, *used - cached);
}

/** Of the group @path and of all that it is in. */
std::uint64_t room_of_groups(const std::string &mounted, std::string path, const version &of)
{
    std::uint64_t least = room_of_group(mounted, of);
    while (!path.empty() && path != "/") {
        least = std::min(least, room_of_group(mounted + path, of));
        const std::size_t last = path.find_last_of('/');
        path.erase(last == std::string::npos ? 0 : last);
    }
    return least;
}

} // namespace

std::uint64_t memory_room(const std::string &root)
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
        const bool is_second = controllers.empty();
        if (!is_second && ("," + controllers + ",").find(",memory,") == std::string::npos)
            continue;
        const version &of = is_second ? kSecond : kFirst;
        least = std::min(least, room_of_groups(root + of.mounted, line.substr(second + 1), of));
    }
    return least;
}

} // namespace zc

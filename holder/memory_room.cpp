/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_room.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace zc::holder {
namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

/** The names of files differ between the two versions: Documentation/admin-guide/cgroup-v2.rst,
 * cgroup-v1/memory.rst. */
struct version {
    const char *controllers; /* in /proc/self/cgroup */
    const char *mounted, *limit, *used;
};
constexpr version kVersions[] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}};

/** Of "NAME NUMBER ..." or "NAME: NUMBER ..."; @otherwise: it is not there. */
std::uint64_t number_of(const std::string &path, const std::string &name, std::uint64_t otherwise)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        std::uint64_t number;
        if (words >> word >> number && (word == name || word == name + ":"))
            return number;
    }
    return otherwise;
}

/** "max", or no such file: no limit. */
std::uint64_t number_in(const std::filesystem::path &path)
{
    std::ifstream file(path);
    std::uint64_t number;
    return file >> number ? number : kAll;
}

/** Bytes. What is cached of files makes room. */
std::uint64_t room_of(const std::filesystem::path &group, const version &of)
{
    const std::uint64_t limit = number_in(group / of.limit), used = number_in(group / of.used);
    if (limit == kAll || used == kAll)
        return kAll;
    const std::uint64_t cached = number_of(group / "memory.stat", "inactive_file", 0);
    const std::uint64_t kept = used - std::min(used, cached);
    return limit - std::min(limit, kept);
}

std::uint64_t room_of_groups(const std::string &root)
{
    std::uint64_t room = kAll;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) { /* "NUMBER:CONTROLLERS:PATH" */
        const std::size_t begin = line.find(':') + 1, end = line.find(':', begin);
        for (const version &of : kVersions) {
            if (end == std::string::npos || line.substr(begin, end - begin) != of.controllers)
                continue;
            std::string path = line.substr(end + 1);
            for (bool more = true; more;) {
                room = std::min(room, room_of(root + of.mounted + path, of));
                more = path.size() > 1;
                path.erase(path.find_last_of('/') == std::string::npos ? 0
                                                                       : path.find_last_of('/'));
            }
        }
    }
    return room;
}

} // namespace

std::uint64_t memory_room(const std::string &root)
{
    return std::min(number_of(root + "/proc/meminfo", "MemAvailable", 0),
                    room_of_groups(root) >> 10);
}

} // namespace zc::holder

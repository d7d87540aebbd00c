/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_ID_MAP_H_INCLUDED
#define ZC_HOLDER_ID_MAP_H_INCLUDED

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/types.h>

namespace zc::holder {

/** Numbers of users or groups in the user namespace of a process and in its parent
 * (user_namespaces(7)): three for each range. */
using id_map = std::vector<std::uint64_t>;

/** @which: "uid_map" or "gid_map". Empty if it cannot be read. */
inline id_map id_map_of(pid_t pid, const std::string &which)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/" + which);
    return {std::istream_iterator<std::uint64_t>(file), {}};
}

/** That of a namespace in which one user or group has the number that it has outside. */
inline id_map same_number(std::uint64_t id)
{
    return {id, id, 1};
}

} // namespace zc::holder

#endif

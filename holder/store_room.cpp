/* SPDX-License-Identifier: BSD-3-Clause */
#include "store_room.h"

#include <algorithm>
#include <sys/statvfs.h>

#include "memory_directory.h"
#include "memory_room.h"

namespace zc::holder {
namespace {

std::uint64_t without(std::uint64_t all, std::uint64_t taken)
{
    return all > taken ? all - taken : 0;
}

std::uint64_t store_of(std::uint64_t kib, std::uint64_t room)
{
    return room < kib + kib / 4 ? 0 : std::min(room, 2 * kib);
}

} // namespace

host_memory memory_of_host()
{
    struct statvfs found;
    const bool known = statvfs(memory_directory::kWhere, &found) == 0;
    return {memory_room() >> 10, known ? found.f_bavail * found.f_frsize >> 10 : 0};
}

std::uint64_t room_ahead(std::uint64_t kib, const host_memory &has)
{
    return store_of(kib, without(std::min(has.shared, has.available), kib));
}

std::uint64_t room_to_fill(std::uint64_t kib, const host_memory &has)
{
    return store_of(kib, std::min(without(has.shared, kib), without(has.available, 2 * kib)));
}

} // namespace zc::holder

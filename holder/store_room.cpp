/* SPDX-License-Identifier: BSD-3-Clause */
#include "store_room.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sys/statvfs.h>

#include "memory_directory.h"
#include "memory_room.h"
#include "saturated.h"

namespace zc::holder {
namespace {

std::uint64_t store_of(std::uint64_t kib, std::uint64_t room)
{
    return room < plus(kib, kib / 4) ? 0 : std::min(room, twice(kib));
}

/** MemAvailable of proc(5); the largest number: it does not tell. */
std::uint64_t available_to_kernel()
{
    std::ifstream file("/proc/meminfo");
    std::string word;
    while (file >> word && word != "MemAvailable:")
        continue;
    std::uint64_t kib = 0;
    return file >> kib ? kib : std::numeric_limits<std::uint64_t>::max();
}

std::string mib(std::uint64_t kib)
{
    return std::to_string(kib >> 10) + " MiB";
}

std::string sentence(const std::string &host, const std::string &where, std::uint64_t has,
                     std::uint64_t left, std::uint64_t needed)
{
    const std::string promised =
        has > left ? ", of which " + mib(has - left) + " are promised to other ranks" : "";
    return host + " has " + mib(has) + " of memory" + where + promised + ", and " +
           mib(plus(needed, 1023)) + " are needed";
}

} // namespace

free_memory memory_of_host()
{
    struct statvfs found;
    const bool known = statvfs(memory_directory::kWhere, &found) == 0;
    return {available_to_kernel(), memory_room() >> 10,
            known ? found.f_bavail * found.f_frsize >> 10 : 0};
}

host_memory free_memory::without(const promised_memory &others) const
{
    return {
        std::min(holder::without(of_kernel, others.all), holder::without(allowed, others.in_group)),
        holder::without(shared, others.shared)};
}

std::uint64_t room_ahead(std::uint64_t kib, const host_memory &has)
{
    return store_of(kib, without(std::min(has.shared, has.available), kib));
}

std::uint64_t room_to_fill(std::uint64_t kib, const host_memory &has)
{
    return store_of(kib, std::min(without(has.shared, kib), without(has.available, twice(kib))));
}

room_offer offer_of(const rank_room &rank, const host_memory &has)
{
    const std::uint64_t to_fill = rank.lazy ? room_to_fill(rank.kib, has) : 0;
    const bool lazy = to_fill > 0;
    const std::uint64_t store = !rank.ahead ? 0 : lazy ? to_fill : room_ahead(rank.kib, has);
    const std::uint64_t shared = plus(store, rank.kib);
    /* The rank is there beside all that, or in the place of what was sent ahead. */
    return {
        store, lazy, {lazy ? plus(shared, rank.kib) : std::max(shared, twice(rank.kib)), shared}};
}

std::string why_no_room(const std::string &host, std::uint64_t kib, const host_memory &has,
                        const host_memory &left)
{
    if (twice(kib) > left.available)
        return sentence(host, "", has.available, left.available, twice(kib));
    /* An image may be smaller than the rank: where it would be the only one it may be tried. */
    const bool others_come = left.shared < has.shared;
    if (kib > left.shared && (others_come || kib <= has.shared))
        return sentence(host, std::string(" in ") + memory_directory::kWhere, has.shared,
                        left.shared, kib);
    return {};
}

std::string why_not_yet(const std::string &host, std::uint64_t kib, const host_memory &left,
                        bool others)
{
    const std::uint64_t room = std::min(left.available, left.shared);
    if (!others || kib <= room)
        return {};
    return host + " has " + mib(room) + " of memory for images beside those of other ranks, and " +
           mib(plus(kib, 1023)) + " are needed";
}

} // namespace zc::holder

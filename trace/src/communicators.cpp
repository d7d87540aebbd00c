/* SPDX-License-Identifier: BSD-3-Clause */
#include "communicators.h"

#include <numeric>
#include <string>

namespace zc::zct {

namespace {

/* A file of some bytes can announce communicators of all processes by the million. As many members
 * as this take 1 GiB: 4096 communicators of 65,536 processes. */
constexpr std::uint64_t kMaxMembers = std::uint64_t{1} << 28;

} // namespace

communicator_names::communicator_names(std::int32_t processes)
{
    /* World is number 0 even if no file got as far as saying so. */
    member_list world;
    world.add(0, static_cast<std::uint32_t>(processes));
    communicators_.push_back({with_strangers(world, processes), {}});
    by_groups_[{world, {}}].push_back(0);
}

void communicator_names::add(const file_records &file)
{
    std::map<groups, std::size_t> created;
    std::vector<std::uint32_t> &names = names_[file.rank];
    for (const members_record &members : file.communicators) {
        /* The two sides of an intercommunicator call each other remote. */
        groups key{members.local, members.remote};
        if (members.inter && key.second < key.first)
            std::swap(key.first, key.second);
        std::vector<std::uint32_t> &same = by_groups_[key];
        const std::size_t nth = created[std::move(key)]++;
        if (nth == same.size()) {
            if (members.local.size() + members.remote.size() > kMaxMembers - nr_members_)
                throw error("rank " + std::to_string(file.rank) +
                            ": its communicators are too many and too large");
            same.push_back(static_cast<std::uint32_t>(communicators_.size()));
            communicators_.push_back({with_strangers(members.local, file.processes),
                                      with_strangers(members.remote, file.processes)});
        }
        names.push_back(same[nth]);
    }
}

/** Counts them, too. Processes outside the world have no rank there: they get one behind it. */
std::vector<std::int32_t> communicator_names::with_strangers(const member_list &list,
                                                             std::int32_t processes)
{
    std::vector<std::int32_t> ranks = list.all();
    for (std::size_t i = 0; i < ranks.size(); i++)
        if (ranks[i] < 0)
            ranks[i] = processes + static_cast<std::int32_t>(i);
    nr_members_ += ranks.size();
    return ranks;
}

} // namespace zc::zct
